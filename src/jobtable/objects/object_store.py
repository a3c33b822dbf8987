"""The ObjectStore protocol and its types."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, BinaryIO, Protocol, TypeAlias

from jobtable.errors import ValueRefusedError

CHUNK_SIZE = 1 << 20
"""Streams are read and written in pieces of this many bytes."""


class Readable(Protocol):
    """What a put needs of a stream."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        ...


Source: TypeAlias = bytes | Path | Readable
"""What can be stored: bytes, a file's path, or an open stream, which is read from its position to its end."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a record stores about its object. `sha256` is 64 lower-case hexadecimal digits."""

    key: str
    size: int
    sha256: str
    content_type: str


@dataclass(frozen=True, slots=True)
class ListedObject:
    """What is known of an object without reading it."""

    key: str
    size: int
    modified_at: datetime


class ObjectStore(Protocol):
    """Keeps bytes under keys. Every store keeps this contract, and `jobtable.testing.object_contract` checks it:

    - Keys come from `jobtable.objects.keys.object_key`; any other text raises ValueRefusedError before any I/O. No key
      can name anything outside the store. Keys that differ in case or in Unicode form are different keys. A key that is
      a leading part of another one ("a" and "a/b") may be refused, because a folder cannot be a file.
    - When `put` returns, the object is durable. If it fails, or the process dies during it, the key holds its old
      content or the whole new object. The remains of an unfinished put are never listed or read.
    - A reader sees one whole object, the old or the new, never a mixture; also through a stream that was opened before
      the object was replaced or deleted.
    - Streams, in and out, use bounded memory for objects of any size.
    - The suffix of the key determines the content type (`content_type`), so it is the same on every store.
    - A missing object raises ObjectNotFoundError with the key; any other failure raises ObjectStoreError with the place
      and the cause, or ObjectStoreUnavailable if the same call may succeed later. An error of the source of a put is
      passed on.
    - Any thread of any process may call at any time.
    """

    @property
    def bucket(self) -> str:
        """What records name besides the key: the bucket on S3, elsewhere its equivalent."""
        ...

    def put(self, key: str, source: Source) -> ObjectInfo:
        """Store an object, replacing an existing one."""
        ...

    def get(self, key: str) -> bytes:
        """Return the whole object."""
        ...

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Return at most `length` bytes from `start`: fewer at the object's end, none after it."""
        ...

    def open(self, key: str) -> BinaryIO:
        """Return the object as a readable stream; the caller closes it."""
        ...

    def head(self, key: str) -> ObjectInfo:
        """Describe the stored object, with the `sha256` of its actual bytes, which may have to be read."""
        ...

    def describe(self, key: str) -> ListedObject:
        """Return the size and the time of the object, without reading it."""
        ...

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        """Yield every object whose key continues `prefix` (whole parts, as from `object_key`), in no fixed order.

        Objects that are stored or deleted meanwhile may or may not appear.
        """
        ...

    def delete(self, key: str) -> None:
        """Delete the object; a missing one is not an error."""
        ...

    def url(self, key: str, *, expires_in: timedelta = timedelta(hours=1)) -> str | None:
        """Return a URL at which anyone can fetch the object for that time; None if the caller must serve the bytes.

        Does not check that the object exists.
        """
        ...

    def remove_unfinished(self, before: datetime) -> int:
        """Delete the remains of puts that were abandoned before then; return their number."""
        ...

    def close(self) -> None:
        """Release all resources. Closing twice is harmless."""
        ...


def chunks(source: Source) -> Iterator[bytes]:
    """Yield the bytes of a source in bounded pieces."""
    if isinstance(source, bytes):
        for start in range(0, len(source), CHUNK_SIZE):
            yield source[start : start + CHUNK_SIZE]
    elif isinstance(source, Path):
        with source.open("rb") as stream:
            yield from chunks(stream)
    else:
        while chunk := source.read(CHUNK_SIZE):
            yield chunk


def measured(stream: Readable, copy: IO[bytes] | None = None) -> tuple[bytes, int]:
    """Return the SHA-256 and the size of what is left of a stream, and perhaps write that to a copy."""
    digest = hashlib.sha256()
    size = 0
    for chunk in chunks(stream):
        digest.update(chunk)
        size += len(chunk)
        if copy is not None:
            copy.write(chunk)
    return digest.digest(), size


def check_range(start: int, length: int) -> None:
    """Reject a range that no object can have."""
    if start < 0 or length < 0:
        raise ValueRefusedError(f"start and length of a range must be at least 0, not {start=}, {length=}")
