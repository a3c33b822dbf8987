"""The file that holds a whole journey: how it is written, and how it is checked before anything is read from it.

It is a ZIP file that any tool can open:

    items.jsonl      every item in DynamoDB's wire form, one a line, in key order
    objects/0000001  every object, as it is
    manifest.json    the journey's id, and the size and SHA-256 of each of the above

Its comment, the last 64 bytes of the file, is the SHA-256 of all bytes before it. So no byte can be cut off or altered
unnoticed. Files that were made to do harm are refused too: nothing is ever unpacked to a path, keys must belong
to the journey, and nothing is read beyond the size that the manifest names.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jobtable.errors import ArchiveError, ItemShapeError, ValueRefusedError
from jobtable.journeys.entities import Journey, journeys
from jobtable.journeys.locations import journey_prefix
from jobtable.objects import ObjectStore, key_parts
from jobtable.store.backend import Item
from jobtable.store.collections import entity_of

ITEMS = "items.jsonl"
MANIFEST = "manifest.json"
MOST_OBJECTS = 200_000
MOST_BYTES = 1 << 40
"""How large the contents may be, unpacked, unless the caller says otherwise."""
_DIGEST_BYTES = 64
_MOST_MANIFEST_BYTES = 128 << 20
_LONGEST_LINE = 4 << 20
"""An item has 400 KB at most; as JSON, with everything escaped, it stays under this."""
_CHUNK = 1 << 20
_ENCRYPTED = 1
_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, ArithmeticError)
"""What reading a ZIP file raises when someone has laid hands on its headers."""
_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Size = Annotated[int, Field(ge=0)]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ItemsEntry(_Checked):
    """What the manifest says of the items."""

    count: Annotated[int, Field(ge=1)]
    size: _Size
    sha256: _Sha256


class ObjectEntry(_Checked):
    """What the manifest says of one object."""

    name: Annotated[str, Field(pattern="^objects/[0-9]{7}$")]
    key: str
    size: _Size
    sha256: _Sha256


class Manifest(_Checked):
    """What is in the file."""

    format: Literal["jobtable-journey"] = "jobtable-journey"
    version: Literal[1] = 1
    journey_id: str
    items: ItemsEntry
    objects: Annotated[list[ObjectEntry], Field(max_length=MOST_OBJECTS)]


@dataclass(frozen=True)
class Archive:
    """A file that was checked from its first byte to its last."""

    manifest: Manifest
    digest: str
    _zip: zipfile.ZipFile

    def items(self) -> Iterator[Item]:
        """The items, in key order."""
        with self._zip.open(ITEMS) as stream:
            for line in stream:
                yield json.loads(line)

    def open_object(self, entry: ObjectEntry) -> IO[bytes]:
        """An object as a stream."""
        return self._zip.open(entry.name)


def write_archive(
    path: Path, journey_id: str, items: Iterable[Item], keys: Iterable[str], objects: ObjectStore
) -> Manifest:
    """Write a file, which is there as a whole or not at all."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
            items_entry = _write_items(archive, items)
            entries = [_write_object(archive, number, key, objects) for number, key in enumerate(sorted(keys), 1)]
            manifest = Manifest(journey_id=journey_id, items=items_entry, objects=entries)
            archive.writestr(MANIFEST, manifest.model_dump_json(indent=1))
            archive.comment = b"0" * _DIGEST_BYTES
        _seal(unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return manifest


@contextmanager
def checked_archive(path: Path, *, most_bytes: int = MOST_BYTES) -> Iterator[Archive]:
    """A file to read from, after every byte and every item of it was checked; ArchiveError says what is wrong."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            digest = _check_digest(file)
            members = stack.enter_context(zipfile.ZipFile(file))
            archive = _checked(Archive(_read_manifest(members), digest, members), most_bytes)
        except _NO_ARCHIVE as error:
            raise ArchiveError(f"{path} is no journey that was exported: {error}") from error
        except OSError as error:
            raise ArchiveError(f"{path} cannot be read: {error.strerror or error}") from error
        yield archive


# --- writing ----------------------------------------------------------------------------------------------------------


def _write_items(archive: zipfile.ZipFile, items: Iterable[Item]) -> ItemsEntry:
    digest, size, count = hashlib.sha256(), 0, 0
    with archive.open(ITEMS, "w", force_zip64=True) as stream:
        for item in items:
            line = json.dumps(item, ensure_ascii=False).encode() + b"\n"
            stream.write(line)
            digest.update(line)
            size += len(line)
            count += 1
    return ItemsEntry(count=count, size=size, sha256=digest.hexdigest())


def _write_object(archive: zipfile.ZipFile, number: int, key: str, objects: ObjectStore) -> ObjectEntry:
    name = f"objects/{number:07d}"
    digest, size = hashlib.sha256(), 0
    with objects.open(key) as source, archive.open(name, "w", force_zip64=True) as target:
        while chunk := source.read(_CHUNK):
            target.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return ObjectEntry(name=name, key=key, size=size, sha256=digest.hexdigest())


def _seal(path: Path) -> None:
    """Put the SHA-256 of the file into its comment."""
    with path.open("r+b") as file:
        digest = _digest_of(file, path.stat().st_size - _DIGEST_BYTES)
        file.seek(-_DIGEST_BYTES, os.SEEK_END)
        file.write(digest.encode())
        file.flush()
        os.fsync(file.fileno())


# --- checking ---------------------------------------------------------------------------------------------------------


def _digest_of(file: BinaryIO, length: int) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    while length > 0 and (chunk := file.read(min(_CHUNK, length))):
        digest.update(chunk)
        length -= len(chunk)
    return digest.hexdigest()


def _check_digest(file: BinaryIO) -> str:
    size = file.seek(0, os.SEEK_END)
    if size <= _DIGEST_BYTES:
        raise ArchiveError(f"{file.name} is no journey that was exported: it has {size} bytes")
    digest = _digest_of(file, size - _DIGEST_BYTES)
    if file.read() != digest.encode():
        raise ArchiveError(f"{file.name} was cut or altered: its SHA-256 is not the one at its end")
    file.seek(0)
    return digest


def _read_manifest(archive: zipfile.ZipFile) -> Manifest:
    names = archive.namelist()
    if len(set(names)) < len(names) or MANIFEST not in names:
        raise ArchiveError("the file has no manifest, or two members of one name")
    if any(info.flag_bits & _ENCRYPTED or info.compress_type not in _PLAIN_METHODS for info in archive.infolist()):
        raise ArchiveError("the file has a member that is encrypted or packed by an unusual method")
    if archive.getinfo(MANIFEST).file_size > _MOST_MANIFEST_BYTES:
        raise ArchiveError("the manifest is too large")
    with archive.open(MANIFEST) as stream:
        text = stream.read(_MOST_MANIFEST_BYTES + 1)
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        raise ArchiveError(f"the manifest is not understood: {error.errors()[0]['msg']}") from error
    expected = {MANIFEST, ITEMS, *(entry.name for entry in manifest.objects)}
    if set(names) != expected or len(names) != len(manifest.objects) + 2:
        raise ArchiveError("the manifest and the members of the file are not the same")
    return manifest


def _checked(archive: Archive, most_bytes: int) -> Archive:
    manifest = archive.manifest
    total = manifest.items.size + sum(entry.size for entry in manifest.objects)
    if total > most_bytes:
        raise ArchiveError(f"the file holds {total:,} bytes; {most_bytes:,} are allowed")
    _check_keys(manifest)
    _check_items(archive)
    for entry in manifest.objects:
        with archive.open_object(entry) as stream:
            _check_member(stream, entry.name, entry.size, entry.sha256)
    return archive


def _check_keys(manifest: Manifest) -> None:
    """Every object must belong to the journey, and be there once."""
    try:
        prefix = key_parts(journey_prefix(manifest.journey_id))
        for entry in manifest.objects:
            if key_parts(entry.key)[: len(prefix)] != prefix or entry.key == "/".join(prefix):
                raise ArchiveError(f"the object {entry.key!r} does not belong to journey {manifest.journey_id}")
    except ValueRefusedError as error:
        raise ArchiveError(f"the manifest names an object that cannot be: {error}") from error
    if len({entry.key for entry in manifest.objects}) < len(manifest.objects):
        raise ArchiveError("the manifest names an object twice")


def _check_member(stream: IO[bytes], name: str, size: int, sha256: str) -> None:
    digest, read = hashlib.sha256(), 0
    while chunk := stream.read(min(_CHUNK, size - read + 1)):
        digest.update(chunk)
        read += len(chunk)
        if read > size:
            break
    if read != size or digest.hexdigest() != sha256:
        raise ArchiveError(f"{name} is not what the manifest says")


def _check_items(archive: Archive) -> None:
    """Every item must be one of the journey's, in key order, and of the shape that its entity has."""
    entry = archive.manifest.items
    digest, size, count, last = hashlib.sha256(), 0, 0, b""
    has_journey = False
    with archive._zip.open(ITEMS) as stream:
        while line := stream.readline(_LONGEST_LINE + 1):
            size += len(line)
            count += 1
            if len(line) > _LONGEST_LINE or size > entry.size:
                raise ArchiveError(f"item {count} is larger than it can be")
            digest.update(line)
            item = _item_of(line, count)
            position = _sort_key(item, archive.manifest.journey_id, count)
            if position <= last:
                raise ArchiveError(f"item {count} is out of order, or there twice")
            last = position
            has_journey = has_journey or isinstance(entity_of(journeys, item), Journey)
    if (size, count, digest.hexdigest()) != (entry.size, entry.count, entry.sha256) or not has_journey:
        raise ArchiveError("the items are not what the manifest says")


def _item_of(line: bytes, number: int) -> Item:
    try:
        item = json.loads(line)
        entity_of(journeys, item)
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError, ItemShapeError) as error:
        raise ArchiveError(f"item {number} is no item of a journey: {str(error)[:300]}") from error
    return dict(item)


def _sort_key(item: dict[str, Any], journey_id: str, number: int) -> bytes:
    partition = Journey.key(journey_id=journey_id).equal["PK"]
    sort = item.get("SK")
    text = sort.get("S") if isinstance(sort, dict) else None
    if item.get("PK") != partition or not isinstance(text, str) or not text:
        raise ArchiveError(f"item {number} does not belong to journey {journey_id}")
    return text.encode("utf-8", "surrogatepass")
