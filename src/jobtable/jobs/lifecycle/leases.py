"""A worker's right to run a job, what may be written in its name, and how a run ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from jobtable.errors import LeaseLostError, TransactionFailedError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.fields import Status
from jobtable.model import Condition, Json
from jobtable.store.transactions import Transaction


@dataclass(frozen=True)
class Lease:
    """The right of one worker to run a job, from one claim until the job ends or the worker is taken for dead.

    Every claim raises the job's epoch. Whatever is written in the name of an older one is refused.
    """

    job: Job
    """The job as it was when the lease was last looked at."""
    instance_id: str
    is_recorded: bool = False
    """Whether InstanceJob and JobResource items tell of it."""

    @property
    def epoch(self) -> int:
        """The epoch of the claim."""
        return self.job.lease_epoch

    def is_held_in(self, job: Job | None) -> bool:
        """Whether the job, as it is now, is still this worker's."""
        if job is None or job.status is not Status.RUNNING or not has_lease(job):
            return False
        return (job.lease_epoch, job.instance_id) == (self.epoch, self.instance_id)

    def lost(self) -> LeaseLostError:
        """What to raise when it is not."""
        return LeaseLostError(
            f"job {self.job.job_id} is not held by {self.instance_id} any more (epoch {self.epoch}): "
            "nothing was written; give the job up"
        )


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    kind: Literal["completed", "failed", "stopped", "cancelled"]
    result: Json = None
    message: str | None = None
    retryable: bool = True

    @staticmethod
    def completed(result: Json = None, message: str | None = None) -> Outcome:
        """The task returned."""
        return Outcome("completed", result, message)

    @staticmethod
    def failed(message: str, *, retryable: bool = True) -> Outcome:
        """The task raised, or its process ended badly; one that is not retryable is not tried again."""
        return Outcome("failed", None, message, retryable)

    @staticmethod
    def stopped(message: str | None = None, result: Json = None) -> Outcome:
        """The task ended because it was asked to."""
        return Outcome("stopped", result, message)

    @staticmethod
    def cancelled(message: str | None = None) -> Outcome:
        """The task was ended because nobody wants its result."""
        return Outcome("cancelled", None, message)

    def without(self, lost: str) -> Outcome:
        """The same, which also says what of the run could not be kept: how it ended counts all the same."""
        return replace(self, message="\n\n".join(filter(None, [self.message, lost])))


def has_lease(job: Job) -> bool:
    """Whether a worker holds the job; a group that waits for its children runs without one."""
    return job.lease_seconds is not None


def holds(lease: Lease) -> Condition:
    """The condition under which a worker may write about its job.

    A job that has the id of one that was deleted has its epochs again, but not in the name of the same worker.
    """
    return (Job.lease_epoch == lease.epoch) & (Job.instance_id == lease.instance_id) & _RUNS_WITH_A_LEASE


IS_THERE = Job.status.exists() & Job.deleted_at.missing()
"""The condition under which anything may be told of a job: of one that is gone nobody would find it, or remove it."""
_RUNS_WITH_A_LEASE = (Job.status == Status.RUNNING) & Job.lease_seconds.exists()


def check_lease(tx: Transaction, lease: Lease) -> None:
    """Let a transaction happen only while the lease is held."""
    tx.check(Job.key(job_id=lease.job.job_id), holds(lease))


def is_known(lease: Lease) -> Condition:
    """The condition under which a worker may tell more of a run, which it may have lost: nobody deletes the job."""
    return (Job.created_at == lease.job.created_at) & IS_THERE


@contextmanager
def lost_if_refused(lease: Lease) -> Iterator[None]:
    """Raise LeaseLostError where a transaction with `check_lease` did not happen because the lease is not held."""
    try:
        yield
    except TransactionFailedError as error:
        about_job = [each for each in error.failures if (each.verb, each.entity) == ("check", Job.__name__)]
        if any(failure.code == "ConditionalCheckFailed" for failure in about_job):
            raise lease.lost() from error
        raise
