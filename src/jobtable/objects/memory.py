"""Objects in memory: the simplest store that keeps the contract, for tests."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import BinaryIO

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import ObjectNotFoundError
from jobtable.objects.keys import content_type, folder_of, key_parts
from jobtable.objects.object_store import ListedObject, ObjectInfo, Source, check_range, chunks


class MemoryObjectStore:
    """An ObjectStore that is gone with its process."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: dict[str, tuple[bytes, ObjectInfo, datetime]] = {}

    @property
    def bucket(self) -> str:
        return "memory"

    def put(self, key: str, source: Source) -> ObjectInfo:
        key_parts(key)
        data = b"".join(chunks(source))
        info = ObjectInfo(key, len(data), hashlib.sha256(data).hexdigest(), content_type(key))
        with self._lock:
            self._objects[key] = (data, info, self._clock.now())
        return info

    def get(self, key: str) -> bytes:
        return self._found(key)[0]

    def get_range(self, key: str, start: int, length: int) -> bytes:
        check_range(start, length)
        return self._found(key)[0][start : start + length]

    def open(self, key: str) -> BinaryIO:
        return io.BytesIO(self._found(key)[0])

    def head(self, key: str) -> ObjectInfo:
        return self._found(key)[1]

    def describe(self, key: str) -> ListedObject:
        _, info, modified_at = self._found(key)
        return ListedObject(key, info.size, modified_at)

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        folder = folder_of(prefix)
        with self._lock:
            found = sorted(key for key in self._objects if key.startswith(folder))
        for key in found:
            entry = self._objects.get(key)
            if entry is not None:
                yield ListedObject(key, entry[1].size, entry[2])

    def delete(self, key: str) -> None:
        key_parts(key)
        with self._lock:
            self._objects.pop(key, None)

    def url(self, key: str, *, expires_in: timedelta = timedelta(hours=1)) -> str | None:
        key_parts(key)
        return None

    def remove_unfinished(self, before: datetime) -> int:
        return 0

    def close(self) -> None:
        """Nothing is held."""

    def _found(self, key: str) -> tuple[bytes, ObjectInfo, datetime]:
        key_parts(key)
        entry = self._objects.get(key)
        if entry is None:
            raise ObjectNotFoundError(f"there is no object {key!r}")
        return entry
