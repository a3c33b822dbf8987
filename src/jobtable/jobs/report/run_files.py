"""Files that a run keeps in object storage; among them artifacts, which a job made and which have names."""

from __future__ import annotations

import uuid
from pathlib import Path

from jobtable.clock import Clock
from jobtable.errors import ConflictError, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease, check_lease, lost_if_refused
from jobtable.jobs.stored.entities import JobArtifact
from jobtable.jobs.stored.locations import artifact_key, discard, named_in_records
from jobtable.objects import ObjectStore, Source
from jobtable.store import Query, Store


class RunFiles:
    """Files of the job of a run: the objects, and the records that name them. Writing fails once the lease is lost."""

    def __init__(self, store: Store, objects: ObjectStore, clock: Clock, lease: Lease) -> None:
        self._store = store
        self._objects = objects
        self._clock = clock
        self._lease = lease
        self._job_id = lease.job.job_id


class Artifacts(RunFiles):
    """The artifacts of the job of a run."""

    def list(self) -> Query[JobArtifact]:
        """All artifacts, by name."""
        return self._store.query(JobArtifact.key(job_id=self._job_id))

    def get(self, name: str) -> JobArtifact:
        """The artifact with a name, or NotFoundError; its bytes are the object `s3_key`."""
        return self._store.get(JobArtifact.key(job_id=self._job_id, name=name))

    def put(self, name: str, source: Source) -> JobArtifact:
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
            **named_in_records(self._objects, kept),
            content_type=kept.content_type,
            created_at=self._clock.now(),
        )
        try:
            with lost_if_refused(self._lease), self._store.transaction() as tx:
                check_lease(tx, self._lease)
                tx.put(artifact)
        except ConflictError:
            discard(self._objects, kept.key)
            raise
        if before is not None:
            discard(self._objects, before.s3_key)
        return artifact
