"""Checkpoint tokens, callback ids and task tokens: they name what they open, and are signed, so nobody can make one up.

None is stored. A callback id must be shown again at each replay, so it is made again from the store's key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from jobtable.errors import AlreadyExistsError, TokenRefusedError
from jobtable.store import Store
from jobtable.workflows.durable.entities import DurableKey

_SIGNATURE_BYTES = 16


@dataclass(frozen=True)
class CheckpointToken:
    """The right to make one checkpoint."""

    execution_id: str
    invocation: int
    checkpoint: int


@dataclass(frozen=True)
class CallbackId:
    """Names a callback; its holder may answer it."""

    function: str
    execution: str
    execution_id: str
    number: int


class DurableTokens:
    """Makes and reads the tokens of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def _secret(self) -> bytes:
        found = self._store.find(DurableKey.key())
        if found is None:
            with suppress(AlreadyExistsError):  # another process was faster; both read the one that is stored
                self._store.add(DurableKey(secret=secrets.token_bytes(32)))
            found = self._store.get(DurableKey.key())
        return found.secret

    def checkpoint_token(self, token: CheckpointToken) -> str:
        """Return the text of a checkpoint token."""
        return self._signed("checkpoint", token.execution_id, str(token.invocation), str(token.checkpoint))

    def read_checkpoint_token(self, text: str) -> CheckpointToken:
        """Return what a text stands for, or raise TokenRefusedError."""
        execution_id, invocation, checkpoint = self._opened("checkpoint", text, 3)
        return CheckpointToken(execution_id, int(invocation), int(checkpoint))

    def callback_id(self, callback: CallbackId) -> str:
        """Return the id of a callback."""
        return self._signed(
            "callback", callback.function, callback.execution, callback.execution_id, str(callback.number)
        )

    def read_callback_id(self, text: str) -> CallbackId:
        """Return which callback an id names, or raise TokenRefusedError."""
        function, execution, execution_id, number = self._opened("callback", text, 4)
        return CallbackId(function, execution, execution_id, int(number))

    def task_token(self, execution_id: str, frame_id: str, visit: int) -> str:
        """Return the token with which a task of a state machine is answered: the same one however often it is made."""
        return self._signed("task", execution_id, frame_id, str(visit))

    def _signed(self, kind: str, *parts: str) -> str:
        named = "/".join(parts).encode()
        return base64.b64encode(self._signature(kind, named) + named).decode()

    def _opened(self, kind: str, text: str, count: int) -> list[str]:
        try:
            content = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise TokenRefusedError(f"Invalid {kind} {_word(kind)}") from error
        signature, named = content[:_SIGNATURE_BYTES], content[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(kind, named)):
            raise TokenRefusedError(f"Invalid {kind} {_word(kind)}")
        parts = named.decode().split("/")
        if len(parts) != count:
            raise TokenRefusedError(f"Invalid {kind} {_word(kind)}")
        return parts

    def _signature(self, kind: str, named: bytes) -> bytes:
        return hmac.digest(self._secret, kind.encode() + b"/" + named, "sha256")[:_SIGNATURE_BYTES]


def _word(kind: str) -> str:
    return "token" if kind == "checkpoint" else "id"


def digest_of(text: str) -> str:
    """Return the digest by which two inputs are compared."""
    return hashlib.sha256(text.encode()).hexdigest()
