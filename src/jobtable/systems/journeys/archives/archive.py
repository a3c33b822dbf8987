"""The archive of a whole journey, and how it is written; `check` verifies it before it is read.

An archive is a ZIP file that any tool can open:

    items.jsonl      every item of the journey in DynamoDB's wire form, one per line, in key order
    jobs.jsonl       every item of the jobs that ran it, likewise; archives of version 1 have none
    objects/0000001  every object of both
    manifest.json    the id of the journey, and the size and SHA-256 of each of the above

Its comment, the last 64 bytes of the file, is the SHA-256 of all bytes before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, BinaryIO, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from jobtable.errors import ValueRefusedError
from jobtable.files import whole_file
from jobtable.objects import ObjectStore
from jobtable.objects.object_store import measured
from jobtable.store.backend import Item

ITEMS = "items.jsonl"
JOBS = "jobs.jsonl"
MANIFEST = "manifest.json"
MOST_OBJECTS = 200_000
DIGEST_BYTES = 64
CHUNK = 1 << 20
_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Size = Annotated[int, Field(ge=0)]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ItemsEntry(_Checked):
    """The manifest's entry of a file of items."""

    count: _Size
    size: _Size
    sha256: _Sha256


class ObjectEntry(_Checked):
    """The manifest's entry of one object."""

    name: Annotated[str, Field(pattern="^objects/[0-9]{7}$")]
    key: str
    size: _Size
    sha256: _Sha256


class Manifest(_Checked):
    """The contents of an archive."""

    format: Literal["jobtable-journey"] = "jobtable-journey"
    version: Literal[1, 2] = 2
    journey_id: str
    items: ItemsEntry
    jobs: ItemsEntry | None = None
    objects: Annotated[list[ObjectEntry], Field(max_length=MOST_OBJECTS)]

    @model_validator(mode="after")
    def _has_jobs_since_version_2(self) -> Self:
        if (self.version == 1) != (self.jobs is None):
            raise ValueError("an archive has the items of jobs from version 2 on")
        return self

    @property
    def item_count(self) -> int:
        """The number of items of the journey and its jobs."""
        return self.items.count + (0 if self.jobs is None else self.jobs.count)

    def exported(self) -> Exported:
        """Return the counts of an export."""
        return Exported(self.journey_id, self.item_count, len(self.objects))


@dataclass(frozen=True)
class Exported:
    """What an export wrote."""

    journey_id: str
    items: int
    """Of the journey and its jobs."""
    objects: int


@dataclass(frozen=True)
class ArchiveContents:
    """What goes into an archive."""

    journey_id: str
    items: Iterable[Item]
    jobs: Iterable[Item]
    keys: Iterable[str]
    """Of the objects."""


@dataclass(frozen=True)
class Archive:
    """An archive that was checked from its first byte to its last."""

    manifest: Manifest
    digest: str
    members: zipfile.ZipFile
    execution_ids: frozenset[str] = frozenset()
    """The job ids of the executions."""
    job_ids: frozenset[str] = frozenset()
    """The jobs in the archive."""
    queues: frozenset[str] = frozenset()
    """The queues of those jobs."""

    def items(self) -> Iterator[Item]:
        """Yield the items of the journey, in key order."""
        return self._lines(ITEMS)

    def job_items(self) -> Iterator[Item]:
        """Yield the items of its jobs, in key order."""
        return iter(()) if self.manifest.jobs is None else self._lines(JOBS)

    def _lines(self, name: str) -> Iterator[Item]:
        with self.members.open(name) as stream:
            for line in stream:
                yield json.loads(line)

    def open_object(self, entry: ObjectEntry) -> IO[bytes]:
        """Open an object as a stream."""
        return self.members.open(entry.name)


def write_archive(path: Path, contents: ArchiveContents, objects: ObjectStore, check: Callable[[], None]) -> Exported:
    """Write an archive, whole or not at all, and not if `check` raises after everything was read.

    Only its user can read it, like every file that Jobtable stores.
    """
    with whole_file(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            items = _write_items(archive, ITEMS, contents.items)
            jobs = _write_items(archive, JOBS, contents.jobs)
            manifest = Manifest(journey_id=contents.journey_id, items=items, jobs=jobs, objects=[])
            count = _write_objects(archive, manifest, contents.keys, objects)
            archive.comment = b"0" * DIGEST_BYTES
        file.flush()
        seal(Path(file.name))
        check()
    return Exported(contents.journey_id, manifest.item_count, count)


def _write_items(archive: zipfile.ZipFile, name: str, items: Iterable[Item]) -> ItemsEntry:
    digest, size, count = hashlib.sha256(), 0, 0
    with archive.open(name, "w", force_zip64=True) as stream:
        for item in items:
            line = json.dumps(item, ensure_ascii=False).encode() + b"\n"
            stream.write(line)
            digest.update(line)
            size += len(line)
            count += 1
    return ItemsEntry(count=count, size=size, sha256=digest.hexdigest())


def _write_objects(archive: zipfile.ZipFile, manifest: Manifest, keys: Iterable[str], objects: ObjectStore) -> int:
    """Write the objects, then the manifest. A journey may have many objects, so their entries wait on disk."""
    count = 0
    with tempfile.SpooledTemporaryFile(CHUNK) as entries:
        for key in keys:
            count += 1
            if count > MOST_OBJECTS:
                raise ValueRefusedError(
                    f"journey {manifest.journey_id} has more than {MOST_OBJECTS:,} objects, the limit of an archive"
                )
            entry = _write_object(archive, count, key, objects)
            entries.write(f"{',' if count > 1 else ''}\n{entry.model_dump_json()}".encode())
        entries.seek(0)
        with archive.open(MANIFEST, "w") as stream:
            stream.write(manifest.model_dump_json().removesuffix("]}").encode())
            shutil.copyfileobj(entries, stream)
            stream.write(b"]}\n")
    return count


def _write_object(archive: zipfile.ZipFile, number: int, key: str, objects: ObjectStore) -> ObjectEntry:
    name = f"objects/{number:07d}"
    with objects.open(key) as source, archive.open(name, "w", force_zip64=True) as target:
        digest, size = measured(source, target)
    return ObjectEntry(name=name, key=key, size=size, sha256=digest.hex())


def seal(path: Path) -> None:
    """Write the SHA-256 of the file into its comment."""
    with path.open("r+b") as file:
        digest = digest_of(file, path.stat().st_size - DIGEST_BYTES)
        file.seek(-DIGEST_BYTES, os.SEEK_END)
        file.write(digest.encode())
        file.flush()
        os.fsync(file.fileno())


def digest_of(file: BinaryIO, length: int) -> str:
    """Return the SHA-256 of the first bytes of a file."""
    digest = hashlib.sha256()
    file.seek(0)
    while length > 0 and (chunk := file.read(min(CHUNK, length))):
        digest.update(chunk)
        length -= len(chunk)
    return digest.hexdigest()
