"""The check of an archive, from its first byte to its last, before any of it is stored.

No byte can be cut off or altered unnoticed. Malicious archives are rejected too: nothing is unpacked to a path, items
and objects must belong to the journey or to a job that ran it, and no member is read beyond the size in the manifest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, BinaryIO

from pydantic import ValidationError

from jobtable.errors import ArchiveError, ItemShapeError, ValueRefusedError
from jobtable.jobs.stored.entities import InstanceJob, Job, main
from jobtable.jobs.stored.locations import ROOT as JOBS_ROOT
from jobtable.model import Entity, Table
from jobtable.objects import key_parts
from jobtable.store.backend import Item
from jobtable.store.collections import entity_of
from jobtable.store.foreign_items import ItemCheck
from jobtable.systems.journeys.archives.archive import (
    CHUNK,
    DIGEST_BYTES,
    ITEMS,
    JOBS,
    MANIFEST,
    Archive,
    ItemsEntry,
    Manifest,
    digest_of,
)
from jobtable.systems.journeys.entities import JobExecution, Journey, journeys
from jobtable.systems.journeys.object_keys import journey_prefix
from jobtable.systems.journeys.raw_items import position
from jobtable.systems.journeys.running.stage_jobs import is_job_of, other_job_of

MOST_BYTES = 1 << 40
"""The default limit of the unpacked contents."""
_MOST_MANIFEST_BYTES = 128 << 20
_LONGEST_LINE = 4 << 20
"""An item has at most 400 KB; as JSON, with everything escaped, it stays under this."""
_MOST_EPOCHS = 99_999
"""The keys of a job's output have five digits for the epoch."""
_END_JOB = re.compile("(.+)-end-[0-9]{1,5}")
_ENCRYPTED = 1
_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, ArithmeticError)
"""What reading a ZIP file with manipulated headers may raise."""


@contextmanager
def checked_archive(path: Path, *, most_bytes: int = MOST_BYTES) -> Iterator[Archive]:
    """Open an archive after checking every byte and every item of it; ArchiveError says what is wrong."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            digest = _check_digest(file, path.name)
            members = stack.enter_context(zipfile.ZipFile(file))
            archive = _checked(Archive(_read_manifest(members), digest, members), most_bytes)
        except _NO_ARCHIVE as error:
            raise ArchiveError(f"{path.name} is not an exported journey: {error}") from error
        except OSError as error:
            raise ArchiveError(f"cannot read {path.name}: {error.strerror or error}") from error
        yield archive


def _check_digest(file: BinaryIO, name: str) -> str:
    size = file.seek(0, os.SEEK_END)
    if size <= DIGEST_BYTES:
        raise ArchiveError(f"{name} is not an exported journey: it has {size} bytes")
    digest = digest_of(file, size - DIGEST_BYTES)
    if file.read() != digest.encode():
        raise ArchiveError(f"{name} was cut or altered: its SHA-256 differs from the one at its end")
    file.seek(0)
    return digest


def _read_manifest(members: zipfile.ZipFile) -> Manifest:
    names = members.namelist()
    if len(set(names)) < len(names) or MANIFEST not in names:
        raise ArchiveError("the file has no manifest, or two members with the same name")
    if any(info.flag_bits & _ENCRYPTED or info.compress_type not in _PLAIN_METHODS for info in members.infolist()):
        raise ArchiveError("a member of the file is encrypted, or compressed in an unusual way")
    if members.getinfo(MANIFEST).file_size > _MOST_MANIFEST_BYTES:
        raise ArchiveError("the manifest is too large")
    with members.open(MANIFEST) as stream:
        text = stream.read(_MOST_MANIFEST_BYTES + 1)
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        raise ArchiveError(f"the manifest is invalid: {error.errors()[0]['msg']}") from error
    expected = {MANIFEST, ITEMS, *(entry.name for entry in manifest.objects)}
    expected |= set() if manifest.jobs is None else {JOBS}
    named_twice = len({entry.name for entry in manifest.objects}) < len(manifest.objects)
    if set(names) != expected or named_twice:
        raise ArchiveError("the manifest does not match the members of the file")
    return manifest


def _checked(archive: Archive, most_bytes: int) -> Archive:
    manifest = archive.manifest
    total = manifest.items.size + sum(entry.size for entry in manifest.objects)
    total += 0 if manifest.jobs is None else manifest.jobs.size
    if total > most_bytes:
        raise ArchiveError(f"the file contains {total:,} bytes; at most {most_bytes:,} are allowed")
    execution_ids = _check_items(archive)
    jobs = _check_jobs(archive, execution_ids)
    _check_keys(manifest, jobs.ids)
    for entry in manifest.objects:
        with archive.open_object(entry) as stream:
            _check_member(stream, entry.name, entry.size, entry.sha256)
    return replace(
        archive, execution_ids=frozenset(execution_ids), job_ids=frozenset(jobs.ids), queues=frozenset(jobs.queues)
    )


def _check_keys(manifest: Manifest, job_ids: set[str]) -> None:
    """Check that every object belongs to the journey or to one of its jobs, and occurs once."""
    try:
        prefix = key_parts(journey_prefix(manifest.journey_id))
        for entry in manifest.objects:
            parts = key_parts(entry.key)
            is_of_job = len(parts) > 2 and parts[0] == JOBS_ROOT and parts[1] in job_ids
            is_of_journey = parts[: len(prefix)] == prefix and len(parts) > len(prefix)
            if not (is_of_job or is_of_journey):
                raise ArchiveError(f"object {entry.key!r} does not belong to journey {manifest.journey_id}")
    except ValueRefusedError as error:
        raise ArchiveError(f"the manifest names an impossible object: {error}") from error
    if len({entry.key for entry in manifest.objects}) < len(manifest.objects):
        raise ArchiveError("the manifest names an object twice")


def _check_member(stream: IO[bytes], name: str, size: int, sha256: str) -> None:
    digest, read = hashlib.sha256(), 0
    while chunk := stream.read(min(CHUNK, size - read + 1)):
        digest.update(chunk)
        read += len(chunk)
        if read > size:
            break
    if read != size or digest.hexdigest() != sha256:
        raise ArchiveError(f"{name} does not match the manifest")


def _checked_items(archive: Archive, name: str, entry: ItemsEntry, table: Table) -> Iterator[tuple[Item, Entity]]:
    """Yield the items of a member with their entities; they must match the manifest and be in key order."""
    digest, size, count = hashlib.sha256(), 0, 0
    last = (b"", b"")
    item_check = ItemCheck(table)
    with archive.members.open(name) as stream:
        while line := stream.readline(_LONGEST_LINE + 1):
            size += len(line)
            count += 1
            if len(line) > _LONGEST_LINE or size > entry.size:
                raise ArchiveError(f"item {count} of {name} is too large")
            digest.update(line)
            item, entity = _item_of(line, table, item_check, f"item {count} of {name}")
            place = position(item)
            if place <= last:
                raise ArchiveError(f"item {count} of {name} is out of order or a duplicate")
            last = place
            yield item, entity
    if (size, count, digest.hexdigest()) != (entry.size, entry.count, entry.sha256):
        raise ArchiveError(f"the items of {name} do not match the manifest")


def _item_of(line: bytes, table: Table, item_check: ItemCheck, what: str) -> tuple[Item, Entity]:
    try:
        item: dict[str, Any] = json.loads(line)
        item_check.check(item)
        return item, entity_of(table, item)
    except (ValueError, RecursionError, KeyError, ItemShapeError) as error:
        raise ArchiveError(f"{what} is not an item of a journey: {str(error)[:300]}") from error


def _check_items(archive: Archive) -> set[str]:
    """Check that every item belongs to the journey; return the job ids of its executions."""
    journey_id = archive.manifest.journey_id
    partition = Journey.key(journey_id=journey_id).equal["PK"]
    execution_ids: set[str] = set()
    has_journey = False
    for item, entity in _checked_items(archive, ITEMS, archive.manifest.items, journeys):
        if item["PK"] != partition:
            raise ArchiveError(f"{item['SK']['S']!r} does not belong to journey {journey_id}")
        if isinstance(entity, JobExecution):
            execution_ids.add(entity.job_id)
        has_journey = has_journey or isinstance(entity, Journey)
    if not has_journey:
        raise ArchiveError("the items do not match the manifest: the journey itself is missing")
    return execution_ids


@dataclass
class _Jobs:
    ids: set[str] = field(default_factory=set)
    queues: set[str] = field(default_factory=set)
    partitions: set[str] = field(default_factory=set)
    """Of the jobs whose own item was found."""
    named: set[str] = field(default_factory=set)
    """The partitions whose jobs must be there, because items of them or of their end jobs are."""
    assigned: set[str] = field(default_factory=set)
    """The jobs that an instance ran."""


def _check_jobs(archive: Archive, execution_ids: set[str]) -> _Jobs:
    """Check that every item belongs to an ended job of an execution, or says which instance ran such a job."""
    found, manifest = _Jobs(), archive.manifest
    if manifest.jobs is None:
        return found
    allowed = {_partition_of(job_id) for job_id in execution_ids}
    for item, entity in _checked_items(archive, JOBS, manifest.jobs, main):
        if isinstance(entity, InstanceJob) and position(InstanceJob.__schema__.codec.encode(entity)) == position(item):
            found.assigned.add(entity.job_id)
            continue
        partition = item["PK"]["S"]
        found.named |= {partition, _stage_of(partition, allowed)}
        if _stage_of(partition, allowed) not in allowed:
            raise ArchiveError(f"an item of {partition!r} does not belong to journey {manifest.journey_id}")
        tied = other_job_of(entity)
        if tied is not None and _partition_of(tied) not in allowed:
            raise ArchiveError(f"{partition!r} names job {tied!r}, which does not belong to the journey")
        if isinstance(entity, Job):
            if not (is_job_of(entity, manifest.journey_id) and entity.is_final and entity.lease_epoch <= _MOST_EPOCHS):
                raise ArchiveError(f"job {entity.job_id} is not an ended job of journey {manifest.journey_id}")
            found.ids.add(entity.job_id)
            found.partitions.add(partition)
            found.queues |= set() if entity.queue_name is None else {entity.queue_name}
    if not (found.named <= found.partitions and found.assigned <= found.ids):
        raise ArchiveError(f"{JOBS} has items of jobs that are missing")
    return found


def _partition_of(job_id: str) -> str:
    text: str = Job.key(job_id=job_id).equal["PK"]["S"]
    return text


def _stage_of(partition: str, allowed: set[str]) -> str:
    """Return the partition of the stage's job, for it and for its end jobs."""
    match = _END_JOB.fullmatch(partition)
    return partition if partition in allowed or match is None else match[1]
