"""Vectors as they are recorded: packed, batch by batch, and found again by the digests of their texts."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from jobtable.assist.call_texts import answer_of
from jobtable.assist.entities import AssistCall, AssistVectors, CallStatus
from jobtable.errors import ObjectNotFoundError
from jobtable.objects import ObjectStore
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern

DIGEST_BYTES = 16
MOST_BATCHES = 1_000
"""How many batches are searched for the vectors of a text, the newest first."""
LARGEST = 3.4028234e38
"""Number in a vector."""
_FLOAT_BYTES = 4
_FEW = 32
_SLACK = timedelta(seconds=10)
"""By how much an index may be late, and the clocks of two workers apart."""


def digest_of(text: str) -> bytes:
    """Return what identifies a text among all."""
    return hashlib.sha256(text.encode()).digest()[:DIGEST_BYTES]


def packed(vector: Sequence[float]) -> bytes:
    """Return a vector as 32-bit floats, the least significant byte first."""
    return struct.pack(f"<{len(vector)}f", *vector)


def unpacked(data: bytes) -> list[float]:
    """Return the numbers of a packed vector."""
    return list(struct.unpack(f"<{len(data) // _FLOAT_BYTES}f", data))


def recorded_vectors(vectors: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return vectors of the same length as a record holds them."""
    data = b"".join(map(packed, vectors))
    return {"dimensions": len(vectors[0]), "float32": base64.b64encode(data).decode()}


def split_vectors(recorded: Any) -> list[bytes]:
    """Return each vector of a record, packed."""
    size = recorded["dimensions"] * _FLOAT_BYTES
    data = base64.b64decode(recorded["float32"])
    return [data[start : start + size] for start in range(0, len(data), size)]


class SharedVectors:
    """The vectors that one model has made for jobs of the store. What was read is kept for the next search."""

    def __init__(self, store: Store, objects: ObjectStore, provider: str, model: str) -> None:
        self._store = store
        self._objects = objects
        self._provider = provider
        self._model = model
        self._batches: dict[tuple[str, str], AssistVectors] = {}

    def find(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the packed vectors of those texts that have one."""
        self._read_newer()
        wanted = set(digests)
        found: dict[bytes, bytes] = {}
        for batch in self._batches.values():
            if not wanted:
                break
            places = _places(batch.digests, wanted)
            vectors = self._vectors_of(batch) if places else []
            for digest, at in places:
                if at < len(vectors):
                    found[digest] = vectors[at]
                    wanted.discard(digest)
        return found

    def _read_newer(self) -> None:
        newest = next(iter(self._batches.values()), None)
        since = None if newest is None else newest.created_at - _SLACK
        read = self.list_batches(since=since)
        newer = {(each.job_id, each.call_id): each for each in read}
        self._batches = dict(list((newer | self._batches).items())[:MOST_BATCHES])

    @access_pattern("Vectors that a model has made", index="GSI1")
    def list_batches(self, *, since: datetime | None = None) -> Query[AssistVectors]:
        """List the newest batches of vectors of the model, the newest first."""
        batches = AssistVectors.by_model(provider=self._provider, model=self._model)
        return self._store.query(batches, newest_first=True, after=since, limit=MOST_BATCHES, consistent=False)

    def _vectors_of(self, batch: AssistVectors) -> list[bytes]:
        call = self._store.find(AssistCall.key(job_id=batch.job_id, call_id=batch.call_id))
        if call is None or call.status is not CallStatus.ANSWERED:
            return []
        try:
            return split_vectors(answer_of(self._objects, call))
        except ObjectNotFoundError:  # its job is being deleted
            return []


def _places(digests: bytes, wanted: set[bytes]) -> list[tuple[bytes, int]]:
    """Return which wanted texts a batch has, and where."""
    if len(wanted) <= _FEW:  # searching the bytes takes a hundredth of the time
        found = ((each, _place(digests, each)) for each in wanted)
        return [(each, at) for each, at in found if at is not None]
    each_digest = (digests[start : start + DIGEST_BYTES] for start in range(0, len(digests), DIGEST_BYTES))
    return [(each, at) for at, each in enumerate(each_digest) if each in wanted]


def _place(digests: bytes, wanted: bytes) -> int | None:
    at = digests.find(wanted)
    while at % DIGEST_BYTES and at != -1:  # it begins in the middle of another one
        at = digests.find(wanted, at + 1)
    return None if at == -1 else at // DIGEST_BYTES
