"""The keys of a job's objects, and the records that refer to them."""

from __future__ import annotations

import contextlib
from typing import Any

from jobtable.errors import ObjectStoreError
from jobtable.jobs.stored.entities import Job, JobArtifact, JobCheckpoint, JobLogText
from jobtable.objects import ObjectInfo, ObjectStore, key_parts, object_key
from jobtable.store import Store

ROOT = "jobs"
"""The first part of every key of a job's objects."""


def job_prefix(job_id: str) -> str:
    return object_key(ROOT, job_id)


def checkpoint_key(job_id: str, name: str) -> str:
    return object_key(ROOT, job_id, "checkpoints", name)


def artifact_key(job_id: str, version: str, name: str) -> str:
    """Return the key of one version of an artifact; a slash in its name makes a folder."""
    return object_key(ROOT, job_id, "artifacts", version, *name.split("/"))


def log_text_key(job_id: str, epoch: int) -> str:
    """Return the key of the full text of a run that its worker finished."""
    return object_key(ROOT, job_id, "log", f"{epoch}.txt")


def merged_text_key(job_id: str, epoch: int) -> str:
    """Return the key of the text that a lost worker had uploaded."""
    return object_key(ROOT, job_id, "log", f"{epoch}.merged.txt")


def log_parts_prefix(job_id: str, epoch: int) -> str:
    return object_key(ROOT, job_id, "log", f"{epoch}.parts")


def log_part_key(job_id: str, epoch: int, number: int) -> str:
    """Return the key of one part of a text, numbered from 0."""
    return object_key(ROOT, job_id, "log", f"{epoch}.parts", f"{number:05d}")


def named_in_records(objects: ObjectStore, info: ObjectInfo) -> dict[str, Any]:
    """Return the fields by which a record names an object."""
    return {"s3_bucket": objects.bucket, "s3_key": info.key, "size_bytes": info.size, "sha256": info.sha256}


def discard(objects: ObjectStore, key: str) -> None:
    """Delete an object that no record names; if that fails, `objects sweep` deletes it later."""
    with contextlib.suppress(ObjectStoreError):
        objects.delete(key)


class JobObjects:
    """Lookup, for `objects sweep`, of the job objects that records name."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._checkpoints_of: tuple[str, frozenset[str]] = ("", frozenset())

    def is_referenced(self, key: str) -> bool:
        """Return whether a record names the object or will; parts of a text stay until they are merged.

        True for a key outside jobs, so that its object is not swept.
        """
        match key_parts(key):
            case (root, *_) if root != ROOT:
                return True
            case (_, job_id, "log", folder, _) if folder.endswith(".parts"):
                return self._is_part_wanted(job_id, folder.removesuffix(".parts"))
            case (_, job_id, "log", name):
                text = self._text(job_id, name.partition(".")[0])
                return text is not None and text.s3_key == key
            case (_, job_id, "artifacts", _, *name) if name:
                artifact = self._store.find(JobArtifact.key(job_id=job_id, name="/".join(name)))
                return artifact is not None and artifact.s3_key == key
            case (_, job_id, "checkpoints", _):
                return key in self._checkpoint_keys(job_id)
        return False

    def _is_part_wanted(self, job_id: str, epoch: str) -> bool:
        text = self._text(job_id, epoch)
        if text is not None and text.sha256 is not None:
            return False
        return self._store.find(Job.key(job_id=job_id)) is not None

    def _text(self, job_id: str, epoch: str) -> JobLogText | None:
        if not (epoch.isdecimal() and len(epoch) <= 5):
            return None  # not a run: epochs have at most five digits
        return self._store.find(JobLogText.key(job_id=job_id, lease_epoch=int(epoch)))

    def _checkpoint_keys(self, job_id: str) -> frozenset[str]:
        """Return the object keys of a job's checkpoints; read once, because objects are listed job by job.

        Later records do not matter: the objects in question are older than the grace time.
        """
        if self._checkpoints_of[0] != job_id:
            records = self._store.query(JobCheckpoint.key(job_id=job_id))
            self._checkpoints_of = (job_id, frozenset(record.s3_key for record in records))
        return self._checkpoints_of[1]
