"""The right of a worker to run a job, what may be written under it, and how a run ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from jobtable.errors import ConflictError, LeaseLostError, TransactionFailedError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.model import Condition, Json
from jobtable.store.transactions import Transaction

if TYPE_CHECKING:
    from jobtable.jobs.verbs import JobVerbs

STOPPING_SECONDS = 30.0
"""How long a worker has to notice that its job is to stop: it reads that with each heartbeat."""
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Lease:
    """The right of one worker to run a job, from a claim until the job ends or the worker is taken for dead.

    Every claim raises the epoch of the job; writes under an older epoch are refused.
    """

    job: Job
    """The job as it was when the lease was last read."""
    instance_id: str
    is_recorded: bool = False
    """Whether InstanceJob and JobResource items record it."""

    @property
    def epoch(self) -> int:
        return self.job.lease_epoch

    def is_held_in(self, job: Job | None) -> bool:
        """Return whether this worker still holds the job, as it is now."""
        if job is None or job.status is not Status.RUNNING or not has_lease(job):
            return False
        return (job.lease_epoch, job.instance_id) == (self.epoch, self.instance_id)

    def lost(self) -> LeaseLostError:
        """Return the error to raise if it does not."""
        return LeaseLostError(
            f"job {self.job.job_id} is no longer held by {self.instance_id} (epoch {self.epoch}): "
            "nothing was written; stop running the job"
        )


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    kind: Literal["completed", "failed", "stopped", "cancelled", "suspended"]
    result: Json = None
    message: str | None = None
    retryable: bool = True
    until: datetime | None = None
    """When a suspended job starts again by itself."""

    @staticmethod
    def completed(result: Json = None, message: str | None = None) -> Outcome:
        """The task returned."""
        return Outcome("completed", result, message)

    @staticmethod
    def failed(message: str, *, retryable: bool = True, result: Json = None) -> Outcome:
        """The task raised or its process failed; the run is retried only if it is retryable."""
        return Outcome("failed", result, message, retryable)

    @staticmethod
    def stopped(message: str | None = None, result: Json = None) -> Outcome:
        """The task ended because it was asked to."""
        return Outcome("stopped", result, message)

    @staticmethod
    def cancelled(message: str | None = None) -> Outcome:
        """The task was ended because nobody wants its result."""
        return Outcome("cancelled", None, message)

    @staticmethod
    def suspended(until: datetime | None, message: str | None = None) -> Outcome:
        """The task waits for an instant, or to be woken."""
        return Outcome("suspended", None, message, until=until)

    def without(self, lost: str) -> Outcome:
        """Return the same outcome with a message about what could not be recorded."""
        return replace(self, message="\n\n".join(filter(None, [self.message, lost])))


def has_lease(job: Job) -> bool:
    """Return whether a worker holds the job; a group that waits for its children runs without one."""
    return job.lease_seconds is not None


def holds(lease: Lease) -> Condition:
    """Return the condition under which a worker may write about its job.

    A job with the id of a deleted one repeats its epochs, but not with the same worker.
    """
    return (Job.lease_epoch == lease.epoch) & (Job.instance_id == lease.instance_id) & _RUNS_WITH_A_LEASE


IS_THERE = Job.status.exists() & Job.deleted_at.missing()
"""The condition under which records of a job may be written: those of a deleted job would never be removed."""
_RUNS_WITH_A_LEASE = (Job.status == Status.RUNNING) & Job.lease_seconds.exists()


def check_lease(tx: Transaction, lease: Lease) -> None:
    """Make a transaction fail unless the lease is held."""
    tx.check(Job.key(job_id=lease.job.job_id), holds(lease))


def is_known(lease: Lease) -> Condition:
    """Return the condition under which a worker may record more of a run that it may have lost."""
    return (Job.created_at == lease.job.created_at) & IS_THERE


@contextmanager
def lost_if_refused(lease: Lease) -> Iterator[None]:
    """Raise LeaseLostError if a transaction with `check_lease` failed because the lease is not held."""
    try:
        yield
    except TransactionFailedError as error:
        about_job = [each for each in error.failures if (each.verb, each.entity) == ("check", Job.__name__)]
        if any(failure.code == "ConditionalCheckFailed" for failure in about_job):
            raise lease.lost() from error
        raise


def await_workers(
    jobs: JobVerbs, awaited: Iterable[Job], what: str, *, patience_seconds: float = STOPPING_SECONDS
) -> None:
    """Return when no worker holds one of the jobs, or or raise ConflictError naming `what` they block."""
    until = jobs.clock.monotonic() + patience_seconds
    for each in awaited:
        job: Job | None = each
        while job is not None and has_lease(job):
            if jobs.clock.monotonic() >= until:
                hint = "stop it and wait for it to end"
                raise ConflictError(f"cannot {what}: a worker runs job {job.job_id}", hint=hint)
            jobs.clock.sleep(_LOOK_SECONDS)
            job = jobs.store.find(Job.key(job_id=job.job_id))
