"""Changes of status, each in one transaction with its history item and the counts of the queues."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from jobtable.clock import Clock, wall_time
from jobtable.errors import AlreadyExistsError, TransactionFailedError
from jobtable.jobs.lifecycle.last_acts import JobEnd, add_last_act
from jobtable.jobs.stored.entities import DEFAULT_CONCURRENCY, Job, JobDependency, JobStatus, Queue, QueueJob
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import refusing
from jobtable.model import Condition, Json, Update, unchanged
from jobtable.store import Store, TryAgain
from jobtable.store.transactions import MOST_ACTIONS, PACKED_BYTES

_MICROSECOND = timedelta(microseconds=1)
SETTLING_TIME = timedelta(seconds=5)
"""After this time another process notifies the dependents of an ended job."""
_BYTES_BESIDE = 2_000
"""The size of a job without its configuration and result, but with its history and queue entry."""
MOST_JOBS = (MOST_ACTIONS - 1) // 3
"""How many jobs fit into one transition, each with its history and queue entry, and the queue itself."""


@dataclass
class _Counts:
    jobs: int = 0
    running: int = 0
    when: Condition | None = None


class Refused(TryAgain):
    """A transition did not happen, because these jobs or queues have changed. It never leaves this folder."""

    def __init__(self, job_ids: set[str], queue_names: set[str], error: TransactionFailedError) -> None:
        super().__init__()
        self.job_ids = job_ids
        self.queue_names = queue_names
        self.error = error


class Transition:
    """Status changes that happen together or not at all; each is refused if its job has changed since it was read."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.tx = store.transaction()
        self._store = store
        self._clock = clock
        self._counts: dict[str, _Counts] = {}
        self._owners: dict[int, str] = {}

    def time_for(self, job: Job) -> datetime:
        """Return now, or just after the job's last change, so that history sorts even if a clock went back."""
        return later(self._clock.now(), job.changed_at)

    def change(
        self,
        job: Job,
        status: Status,
        at: datetime,
        *updates: Update,
        message: str | None = None,
        progress: float | None = None,
        by: str | None = None,
        instance_id: str | None = None,
        when: Condition | None = None,
    ) -> None:
        """Give a job a status and a line of history."""
        changes = [Job.status.set(status), Job.changed_at.set(at)]
        if message != job.message:
            changes.append(Job.message.set(message))
        self._own(job.job_id, actions=2)
        seen = unchanged(job, Job.status, Job.lease_epoch, Job.changed_at)
        self.tx.update(job, *changes, *updates, when=seen if when is None else seen & when)
        self.tx.add(
            JobStatus(
                job_id=job.job_id,
                status=status,
                updated_at=at,
                message=message,
                progress=progress,
                updated_by=by,
                instance_id=instance_id,
            )
        )

    def leave_ready(self, entry: QueueJob) -> None:
        """Hide a ready job from other workers."""
        self._own(entry.job_id)
        self.tx.update(entry, QueueJob.rank.set(None), when=QueueJob.rank.exists())

    def leave_queue(self, job: Job, *, are_notified: bool = False) -> None:
        """Remove an ended job from its queue, or keep its entry until its dependents are notified."""
        if job.queue_name is None:
            return
        entry = QueueJob.key(queue_name=job.queue_name, job_id=job.job_id)
        self._own(job.job_id)
        if job.dependents and not are_notified:
            due = wall_time(self._clock) + SETTLING_TIME
            self.tx.update(entry, QueueJob.rank.set(None), QueueJob.not_before.set(due))
        else:
            self.tx.delete(entry, when=QueueJob.priority.exists())
            self.count(job.queue_name, jobs=-1)

    def add_last_act(self, job: Job, status: Status, message: str | None, result: Json) -> None:
        """Let happen with the end of a job what its definition says."""
        if job.on_end is not None:
            add_last_act(JobEnd(self._store, self._clock, self.tx, job, status, message, result), job.on_end)

    def close(self, edge: JobDependency, status: Status) -> None:
        """Close an edge to a job that ends; the gates that count it must change in the same transaction."""
        self._own(edge.dependency_job_id)
        self.tx.update(edge, JobDependency.outcome.set(status), when=JobDependency.outcome.missing())

    def count(self, queue_name: str, *, jobs: int = 0, running: int = 0, when: Condition | None = None) -> None:
        counts = self._counts.setdefault(queue_name, _Counts())
        counts.jobs += jobs
        counts.running += running
        counts.when = when if when is not None else counts.when

    def commit(self) -> None:
        """Commit everything, or raise Refused and change nothing."""
        first_queue = len(self.tx)
        for name, counts in self._counts.items():
            self.tx.update(Queue.key(queue_name=name), *_updates(counts), when=counts.when)
        try:
            self._commit(first_queue)
        except TransactionFailedError as error:
            names = list(self._counts)
            indexes = [failure.index for failure in error.failures]
            raise Refused(
                {self._owners[index] for index in indexes if index in self._owners},
                {names[index - first_queue] for index in indexes if index >= first_queue},
                error,
            ) from error

    def _commit(self, first_queue: int) -> None:
        """Commit; a queue that was deleted after its last job left is recreated for a job that returns."""
        try:
            self.tx.commit()
        except TransactionFailedError as error:
            deleted = {failure.index - first_queue for failure in error.failures if failure.current is None}
            names = [
                name for number, name in enumerate(self._counts) if number in deleted and self._counts[name].jobs > 0
            ]
            if not names:
                raise
            for name in names:
                ensure_queue(self._store, self._clock, name)
            self.tx.commit()

    def _own(self, job_id: str, actions: int = 1) -> None:
        first = len(self.tx)
        self._owners.update(dict.fromkeys(range(first, first + actions), job_id))


def add_queue(store: Store, clock: Clock, name: str, **settings: Any) -> Queue:
    """Add a queue with the default settings, except these; AlreadyExistsError if it exists."""
    with refusing(f"queue {name!r}"):
        settings = {"max_concurrent_jobs": DEFAULT_CONCURRENCY, **settings}
        queue = Queue(queue_name=name, created_at=clock.now(), **settings)
    store.add(queue)
    return queue


def ensure_queue(store: Store, clock: Clock, name: str) -> None:
    with suppress(AlreadyExistsError):
        add_queue(store, clock, name)


def length_of(job: Job, result: Json = None) -> int:
    """Return the approximate size of a job with its result, for transactions that change many."""
    try:
        large = [job.job_config, job.result if result is None else result]
        return _BYTES_BESIDE + sum(len(to_json(each)) for each in large if each is not None)
    except PydanticSerializationError:  # no item can hold it: it gets a transaction of its own
        return PACKED_BYTES


def later(now: datetime, last: datetime | None) -> datetime:
    """Return now, or just after the last instant if that is not earlier."""
    return now if last is None or now > last else last + _MICROSECOND


def _updates(counts: _Counts) -> list[Update]:
    updates = []
    if counts.jobs:
        updates.append(Queue.job_count.increment(counts.jobs))
    if counts.running or not updates:
        updates.append(Queue.running_count.increment(counts.running))
    return updates
