"""The times of a job's log lines, metrics and checkpoints: unique, and in the order in which they were written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from jobtable.errors import ConditionFailedError, RequestError, TransactionFailedError
from jobtable.jobs.lifecycle.leases import IS_THERE
from jobtable.jobs.stored.entities import Job, JobLog, JobMetric, JobTimeline
from jobtable.model import Selection
from jobtable.store import Backoff, Store, Transaction
from jobtable.store.transactions import MOST_ACTIONS

MOST_RECORDS = MOST_ACTIONS - 2
"""How many records are stored together: the other actions of the transaction are for the timeline and for its job."""
Timed: TypeAlias = JobLog | JobMetric
_MICROSECOND = timedelta(microseconds=1)


class Timeline:
    """Gives the records of one job their times, and stores them.

    Records are stored in one transaction with the move of the timeline, whoever writes them. So no two have the same
    time, whatever the clocks of the writers do, and no record ever appears before one that is there already: who
    reads on behind the last record that they have seen misses nothing.
    """

    def __init__(self, store: Store, job_id: str) -> None:
        self._store = store
        self._job_id = job_id
        self._known: datetime | None = None
        self._has_other_writers = False
        self._begins = False
        """Whether the transaction that is being made begins the timeline."""
        self._unanswered: tuple[Sequence[Timed], Transaction, Timed] | None = None
        """The records that were sent last, how, and the first of them with its time."""
        self._pauses = Backoff(
            attempts=200,
            first_seconds=0.005,
            most_seconds=0.25,
            clock=store.clock,
            random=store.backoff.random,
        )

    def write(self, records: Sequence[Timed]) -> None:
        """Store up to 98 records, in their order, each at its own time or as soon behind it as there is room.

        If the store does not answer, call it again with the same records: they are not stored twice. What is told of
        a job that was deleted is not wanted, and nobody could ever find it: it is not stored.
        """
        if self._unanswered is not None:
            before, sent, first = self._unanswered
            went_through = before is records and self._went_through(sent, first)
            self._unanswered = None
            if went_through:
                return

        def put(tx: Transaction, times: Sequence[datetime]) -> None:
            timed = [
                record if record.timestamp == time else record.replace(timestamp=time)
                for record, time in zip(records, times, strict=True)
            ]
            for record in timed:
                tx.put(record)
            if self._begins:  # a timeline that is gone went with its job
                tx.check(self._job(), IS_THERE)
            self._unanswered = (records, tx, timed[0])

        try:
            self.commit([record.timestamp for record in records], put)
        except TransactionFailedError:
            job = self._store.find(self._job())
            if job is not None and job.deleted_at is None:
                raise
        self._unanswered = None

    def commit(
        self, moments: Sequence[datetime], add: Callable[[Transaction, Sequence[datetime]], None]
    ) -> list[datetime]:
        """Do what `add` puts into a transaction, with times for the moments; gives the times.

        Each time another writer was faster, `add` is called again, with other times. What else of the transaction
        does not hold raises TransactionFailedError.
        """

        def write(free_from: datetime | None) -> list[datetime]:
            times = times_from(free_from, moments)
            until = times[-1] + _MICROSECOND
            self._begins = free_from is None
            tx = self._store.transaction()
            self._move(tx, free_from, until)
            add(tx, times)
            try:
                tx.commit()
            except TransactionFailedError:
                self._has_other_writers = True
                raise
            except RequestError:
                self._known = None  # it may have happened
                raise
            self._known = until
            return times

        return self._store.retrying(
            lambda: (None if self._has_other_writers else self._known) or self._read(),
            write,
            f"write the records of job {self._job_id}",
            retry_if=_was_moved,
            backoff=self._pauses,
        )

    def _went_through(self, sent: Transaction, first: Timed) -> bool:
        """Send a transaction without an answer again: by its token it happens once, but a store forgets that in time.

        Then its first record tells: nobody else writes one at that time.
        """
        try:
            sent.commit()
        except TransactionFailedError:
            return self._store.find(_key_of(first)) == first
        return True

    def _job(self) -> Selection[Job]:
        return Job.key(job_id=self._job_id)

    def _read(self) -> datetime | None:
        found = self._store.find(JobTimeline.key(job_id=self._job_id))
        return None if found is None else found.reserved_until

    def _move(self, tx: Transaction, free_from: datetime | None, until: datetime) -> None:
        moved = JobTimeline(job_id=self._job_id, reserved_until=until)
        if free_from is None:
            tx.add(moved)
        else:
            tx.put(moved, when=JobTimeline.reserved_until == free_from)


def _was_moved(error: ConditionFailedError | TransactionFailedError) -> bool:
    """Whether another writer moved the timeline; what else did not hold may be that writer's doing."""
    return isinstance(error, TransactionFailedError) and any(failure.index == 0 for failure in error.failures)


def _key_of(record: Timed) -> Selection[JobLog] | Selection[JobMetric]:
    if isinstance(record, JobLog):
        return JobLog.key(job_id=record.job_id, timestamp=record.timestamp)
    return JobMetric.key(job_id=record.job_id, metric_name=record.metric_name, timestamp=record.timestamp)


def times_from(free_from: datetime | None, moments: Sequence[datetime]) -> list[datetime]:
    """A time for each moment: the moment itself where it is free and in order, else the first one that is."""
    times = []
    for moment in moments:
        time = moment if free_from is None else max(moment, free_from)
        times.append(time)
        free_from = time + _MICROSECOND
    return times
