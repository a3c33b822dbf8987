"""The ObjectStore protocol, and what its parts are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

from jobtable.errors import ValueRefusedError

CHUNK_SIZE = 1 << 20
"""Streams are read and written in pieces of this many bytes."""


class Readable(Protocol):
    """What a put needs of a stream."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""
        ...


Source: TypeAlias = bytes | Path | Readable
"""What can be put: bytes, a file's path, or an open stream, which is read from where it stands to its end."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What the record that names an object keeps of it. `sha256` is 64 lower-case hexadecimal digits."""

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

    - Keys are made by `jobtable.objects.keys.object_key`; anything else is a ValueRefusedError before any I/O.
      No key can name anything outside the store. Keys that differ in case or in Unicode form are different keys.
      A key that is a leading part of another one ("a" and "a/b") may be refused: a folder cannot be a file.
    - When `put` returns, the object is durable. When it fails, or the process dies in it, the key holds what it
      held before or the whole new object. What an unfinished put leaves behind is never listed or read.
    - A reader sees one whole object, the old or the new, never a mixture; also a stream that was opened before
      the object was replaced or deleted.
    - Streams, in and out, take bounded memory whatever the object's size.
    - The content type is told by the ending of the key (`content_type`), so it is the same on every store.
    - A missing object is an ObjectNotFoundError that names the key; everything else that goes wrong is an
      ObjectStoreError that says where and why, and an ObjectStoreUnavailable where the same may succeed later. An
      error of the source of a put comes through as it is.
    - Any thread of any process may call at any time.
    """

    @property
    def bucket(self) -> str:
        """What records name beside the key: the bucket on S3, elsewhere what stands in its place."""
        ...

    def put(self, key: str, source: Source) -> ObjectInfo:
        """Store an object, in place of the one that may be there."""
        ...

    def get(self, key: str) -> bytes:
        """The whole object."""
        ...

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """At most `length` bytes from `start`: fewer at the object's end, none behind it."""
        ...

    def open(self, key: str) -> BinaryIO:
        """The object as a stream to read; the caller closes it."""
        ...

    def head(self, key: str) -> ObjectInfo:
        """What is stored under the key. `sha256` is that of the bytes that are there, which may have to be read."""
        ...

    def describe(self, key: str) -> ListedObject:
        """How large the object is and when it was put, without reading it."""
        ...

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        """Every object whose key continues `prefix` (whole parts, as from `object_key`), lazily, in no fixed order.

        What is put or deleted meanwhile may or may not be seen.
        """
        ...

    def delete(self, key: str) -> None:
        """Remove the object. Removing what is not there is no error."""
        ...

    def url(self, key: str, *, expires_in: timedelta = timedelta(hours=1)) -> str | None:
        """Where anyone can fetch the object for that time, or None: then the caller hands out the bytes itself.

        Whether the object is there is not asked.
        """
        ...

    def remove_unfinished(self, before: datetime) -> int:
        """Remove what puts that were given up before then have left behind; says how many there were."""
        ...

    def close(self) -> None:
        """Release what the store holds. Closing twice is harmless."""
        ...


def chunks(source: Source) -> Iterator[bytes]:
    """The bytes of a source, in bounded pieces."""
    if isinstance(source, bytes):
        for start in range(0, len(source), CHUNK_SIZE):
            yield source[start : start + CHUNK_SIZE]
    elif isinstance(source, Path):
        with source.open("rb") as stream:
            yield from chunks(stream)
    else:
        while chunk := source.read(CHUNK_SIZE):
            yield chunk


def check_range(start: int, length: int) -> None:
    """Refuse a range that no object can have."""
    if start < 0 or length < 0:
        raise ValueRefusedError(f"a range begins at 0 or later and is not negative: {start=}, {length=}")
