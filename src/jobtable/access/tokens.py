"""Tokens: created, checked, listed and revoked."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from jobtable.access.entities import AccessToken, Role
from jobtable.clock import SYSTEM_CLOCK, Clock, wall_time
from jobtable.errors import ValueRefusedError
from jobtable.store import Query, Store

TokenState: TypeAlias = Literal["valid", "expired", "revoked"]
_KEPT = timedelta(days=90)
"""How long the list still shows a token that has expired or was revoked."""
_FORM = re.compile(r"jt_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class NewToken:
    """A new token: its record, and its text, which is not stored."""

    record: AccessToken
    text: str


class Tokens:
    """The tokens of one store."""

    def __init__(
        self, store: Store, *, clock: Clock = SYSTEM_CLOCK, random_bytes: Callable[[int], bytes] = secrets.token_bytes
    ) -> None:
        self._store = store
        self._clock = clock
        self._random_bytes = random_bytes

    def create(
        self, role: Role, *, name: str = "", expires_in: timedelta | None = None, created_by: str = "local"
    ) -> NewToken:
        """Create a token. Only a digest of its secret is stored."""
        if expires_in is not None and expires_in <= timedelta(0):
            raise ValueRefusedError(f"expires_in must be positive, not {expires_in}")
        token_id = self._random_bytes(8).hex()
        secret = base64.urlsafe_b64encode(self._random_bytes(32)).decode().rstrip("=")
        now = wall_time(self._clock)
        expires_at = None if expires_in is None else now + expires_in
        record = AccessToken(
            token_id=token_id,
            name=name,
            role=role,
            secret_sha256=_digest(secret),
            created_at=now,
            created_by=created_by,
            expires_at=expires_at,
            time_to_live=None if expires_at is None else _seen_until(expires_at),
        )
        self._store.add(record)
        return NewToken(record, f"jt_{token_id}_{secret}")

    def find_valid(self, text: str) -> AccessToken | None:
        """Return the record of a valid token, or None."""
        form = _FORM.fullmatch(text)
        if form is None:
            return None
        record = self._store.find(AccessToken.key(token_id=form[1]))
        if record is None or not hmac.compare_digest(record.secret_sha256, _digest(form[2])):
            return None
        return record if self.state_of(record) == "valid" else None

    def state_of(self, record: AccessToken) -> TokenState:
        """Return whether a token is valid, expired or revoked."""
        if record.revoked_at is not None:
            return "revoked"
        is_expired = record.expires_at is not None and record.expires_at <= wall_time(self._clock)
        return "expired" if is_expired else "valid"

    def list(self) -> Query[AccessToken]:
        """List all tokens, in no particular order."""
        return self._store.query(AccessToken.by_type())

    def revoke(self, token_id: str) -> AccessToken:
        """Revoke a token, or raise NotFoundError. Repeating the call changes nothing."""
        record = self._store.get(AccessToken.key(token_id=token_id))
        if record.revoked_at is not None:
            return record
        now = self._clock.now()
        updates = (AccessToken.revoked_at.set(now), AccessToken.time_to_live.set(_seen_until(now)))
        return self._store.update(AccessToken.key(token_id=token_id), *updates)


def _seen_until(ended_at: datetime) -> int:
    return int(ended_at.timestamp() + _KEPT.total_seconds())


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
