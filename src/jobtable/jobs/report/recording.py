"""What is recorded of a run beside its status: lines and metrics, the full output, checkpoints, artifacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jobtable.clock import Clock
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.artifacts import Artifacts
from jobtable.jobs.report.buffer import RecordBuffer
from jobtable.jobs.report.checkpoints import Checkpoints
from jobtable.jobs.report.log_text import LogText, RunText, TextSpool
from jobtable.jobs.worker.patience import insist
from jobtable.objects import ObjectStore
from jobtable.store import Store

T = TypeVar("T")


class Recording:
    """Where the runs of jobs record what they tell and keep: the store and the object store themselves."""

    def __init__(self, store: Store, objects: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._objects = objects
        self._clock = clock

    def insist(self, call: Callable[[], T], what: str) -> T:
        """Do what a task must wait for, although the store or object storage may be away for a while."""
        return insist(call, what, self._clock)

    def buffer(self, lease: Lease, job_id: str, *, most_seconds: float) -> RecordBuffer:
        """What collects the lines and metrics that a run tells of a job: its own, or the one of its roll-up rule."""
        return RecordBuffer(self._store, job_id, most_seconds=most_seconds)

    def log_text(self, lease: Lease, spool: TextSpool | None = None) -> LogText:
        """What takes the full output of a run."""
        return LogText(self.run_text(lease), self._clock, spool)

    def run_text(self, lease: Lease) -> RunText:
        """Where the full output of a run is kept."""
        return RunText(self._store, self._objects, self._clock, lease)

    def checkpoints(self, lease: Lease) -> Checkpoints:
        """The checkpoints of a run's job."""
        return Checkpoints(self._store, self._objects, lease.job.job_id)

    def artifacts(self, lease: Lease) -> Artifacts:
        """The artifacts of a run's job."""
        return Artifacts(self._store, self._objects, lease.job.job_id)
