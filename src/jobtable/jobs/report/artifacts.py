"""Artifacts: files that a job made, in object storage, under a name."""

from __future__ import annotations

import uuid
from pathlib import Path

from jobtable.clock import Clock
from jobtable.errors import ConflictError, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease, check_lease, lost_if_refused
from jobtable.jobs.stored.entities import JobArtifact
from jobtable.jobs.stored.locations import artifact_key, discard
from jobtable.objects import ObjectStore, Source
from jobtable.store import Query, Store


class Artifacts:
    """The artifacts of one job."""

    def __init__(self, store: Store, objects: ObjectStore, job_id: str) -> None:
        self._store = store
        self._objects = objects
        self._job_id = job_id

    def list(self) -> Query[JobArtifact]:
        """All artifacts, by name."""
        return self._store.query(JobArtifact.key(job_id=self._job_id))

    def get(self, name: str) -> JobArtifact:
        """The artifact with a name, or NotFoundError; its bytes are the object `s3_key`."""
        return self._store.get(JobArtifact.key(job_id=self._job_id, name=name))

    def put(self, lease: Lease, name: str, source: Source, clock: Clock) -> JobArtifact:
        """Store a file under a name, replacing what had it; LeaseLostError if the lease is lost.

        The object is stored first, then its record, then the object that it replaces is deleted.
        """
        if isinstance(source, Path) and source.is_dir():
            raise ValueRefusedError(f"{source} is a folder; keep its files one by one, or pack it into one file")
        before = self._store.find(JobArtifact.key(job_id=self._job_id, name=name))
        kept = self._objects.put(artifact_key(self._job_id, uuid.uuid4().hex[:12], name), source)
        artifact = JobArtifact(
            job_id=self._job_id,
            name=name,
            s3_bucket=self._objects.bucket,
            s3_key=kept.key,
            size_bytes=kept.size,
            sha256=kept.sha256,
            content_type=kept.content_type,
            created_at=clock.now(),
        )
        try:
            with lost_if_refused(lease), self._store.transaction() as tx:
                check_lease(tx, lease)
                tx.put(artifact)
        except ConflictError:
            discard(self._objects, kept.key)
            raise
        if before is not None:
            discard(self._objects, before.s3_key)
        return artifact
