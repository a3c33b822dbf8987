"""Log lines and metrics on their way to the store: collected, bounded, given unique times, stored in batches."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Protocol, TypeAlias

from jobtable.errors import (
    ConditionFailedError,
    ConflictError,
    IncompleteBatchError,
    JobtableError,
    RequestError,
    TransactionFailedError,
)
from jobtable.jobs.lifecycle.leases import IS_THERE
from jobtable.jobs.stored.entities import Job, JobLog, JobMetric, JobTimeline
from jobtable.model import Selection
from jobtable.store import Backoff, Store, Transaction
from jobtable.store.transactions import MOST_ACTIONS

MOST_RECORDS = MOST_ACTIONS - 2
"""How many records one transaction stores: it also writes the timeline, and checks the job."""
Timed: TypeAlias = JobLog | JobMetric
_MICROSECOND = timedelta(microseconds=1)


class Timeline:
    """Assigns times to the records of one job, and stores them.

    Every writer stores its records in one transaction with the move of the timeline. So no two have the same time,
    whatever the clocks say, and none appears before a stored one: a reader who continues after the last record misses
    nothing.
    """

    def __init__(self, store: Store, job_id: str) -> None:
        self._store = store
        self._job_id = job_id
        self._known: datetime | None = None
        self._has_other_writers = False
        self._begins = False
        """Whether the current transaction creates the timeline."""
        self._unanswered: tuple[Sequence[Timed], Transaction, Timed] | None = None
        """The records sent last, their transaction, and the first of them with its time."""
        self._pauses = Backoff(
            attempts=200,
            first_seconds=0.005,
            most_seconds=0.25,
            clock=store.clock,
            random=store.backoff.random,
        )

    def write(self, records: Sequence[Timed]) -> None:
        """Store up to 98 records in order, each at its own time or the next free one; drop those of a deleted job.

        If the store does not answer, call it again with the same records: they are not stored twice.
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
            if self._begins:  # a missing timeline was deleted with its job
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
        """Commit what `add` puts into a transaction, with a time for each moment; return the times.

        When another writer was faster, `add` is called again with other times. Any other failure raises
        TransactionFailedError.
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
        """Send a transaction without an answer again; return whether it took effect.

        Its token makes it idempotent; once the store has forgotten that, its first record shows it: no other writer has
        that time.
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
    """Whether another writer moved the timeline; other failures may follow from that."""
    return isinstance(error, TransactionFailedError) and any(failure.index == 0 for failure in error.failures)


def _key_of(record: Timed) -> Selection[JobLog] | Selection[JobMetric]:
    if isinstance(record, JobLog):
        return JobLog.key(job_id=record.job_id, timestamp=record.timestamp)
    return JobMetric.key(job_id=record.job_id, metric_name=record.metric_name, timestamp=record.timestamp)


def times_from(free_from: datetime | None, moments: Sequence[datetime]) -> list[datetime]:
    """Return a time for each moment: the moment itself if it is free and in order, or the next one that is."""
    times = []
    for moment in moments:
        time = moment if free_from is None else max(moment, free_from)
        times.append(time)
        free_from = time + _MICROSECOND
    return times


_LOG = logging.getLogger(__name__)


class Flusher:
    """A thread that flushes at regular intervals, at once when woken, and again after a failure."""

    def __init__(self, flush: Callable[[], None], seconds: float, name: str) -> None:
        self._flush = flush
        self._seconds = seconds
        self._name = name
        self._woken = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    def wake(self) -> None:
        if not self._woken.is_set():
            self._woken.set()

    def close(self) -> None:
        """End the thread after its current flush. The last flush is up to the caller."""
        self._closed.set()
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        is_failing = False
        while not self._closed.is_set():
            self._woken.wait(self._seconds)
            if self._closed.is_set():
                return
            self._woken.clear()
            try:
                self._flush()
            except Exception as error:  # nothing is lost: the last flush raises an error that remains
                if not is_failing:
                    _LOG.warning("could not store the %s; will retry: %s", self._name, error)
                is_failing = True
            else:
                is_failing = False


MOST_BYTES = 8 << 20
"""The most that a buffer holds before `add` waits."""
MOST_SECONDS = 2.0
"""How far the store may lag before `add` waits."""
_MOST_BYTES_TOGETHER = 2 << 20
"""DynamoDB takes 4 MB in one transaction; the sizes here are estimates."""
_BYTES_BESIDE_TEXT = 1_000
"""About how much memory a record takes besides its texts; its item takes less."""


class RecordWriter(Protocol):
    """Stores records: a job's timeline, or a server that has one."""

    def write(self, records: Sequence[Timed]) -> None:
        """Store up to 98 records in order; after a failure, call it again with the same: none is stored twice."""
        ...


class RecordBuffer:
    """The records of one job that are not stored yet: each is stored once, in the order of arrival.

    Any thread may add and flush. A failed flush keeps its records for the next one.
    """

    def __init__(
        self,
        store: Store,
        job_id: str,
        *,
        most_seconds: float = MOST_SECONDS,
        most_bytes: int = MOST_BYTES,
        writer: RecordWriter | None = None,
    ) -> None:
        self._job_id = job_id
        self._writer = writer or Timeline(store, job_id)
        self._clock = store.clock
        self._most_seconds = most_seconds
        self._most_bytes = most_bytes
        self._waiting: deque[tuple[Timed, int, float]] = deque()
        self._bytes = 0
        self._is_failing = False
        self._lock = threading.Lock()
        self._storing = threading.RLock()
        self._batch: list[Timed] = []
        self._batch_bytes = 0
        self._of_thread = threading.local()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._batch)

    @property
    def is_flushing(self) -> bool:
        """Whether this thread is flushing: what it logs then is about the store, not about the job."""
        return getattr(self._of_thread, "is_flushing", False)

    @property
    def is_filling(self) -> bool:
        """Whether the buffer should be flushed before the next interval."""
        return self._bytes >= self._most_bytes // 8

    def add(self, record: Timed) -> None:
        """Add a record; wait while the buffer is full or the store lags."""
        size = _size_of(record)
        now = self._clock.monotonic()
        while self._must_wait(now) and not self.is_flushing:
            try:
                self.flush()
            except JobtableError as error:
                if not (error.retryable or isinstance(error, ConflictError)):
                    raise
                # The store pauses between its attempts; retrying loses no line and keeps the buffer bounded.
        with self._lock:
            self._waiting.append((record, size, now))
            self._bytes += size

    def _must_wait(self, now: float) -> bool:
        with self._lock:
            if self._bytes >= self._most_bytes:
                return True
            # Waiting records would be lost with the process, so the task waits for the store, unless that is away.
            return not self._is_failing and bool(self._waiting) and now - self._waiting[0][2] > self._most_seconds

    def flush(self) -> None:
        """Store all records, or raise and keep what is left."""
        with self._storing:
            if self.is_flushing:
                return
            self._of_thread.is_flushing = True
            try:
                while self._fill_batch():
                    self._writer.write(self._batch)
                    with self._lock:
                        self._batch, self._bytes = [], self._bytes - self._batch_bytes
                self._is_failing = False
            except JobtableError:
                self._is_failing = True
                raise
            finally:
                self._of_thread.is_flushing = False

    def close(self) -> None:
        """Store what is left, or raise IncompleteBatchError and keep it for another close."""
        try:
            self.flush()
        except JobtableError as error:
            left = f"could not store {len(self)} log lines and metrics"
            raise IncompleteBatchError(f"job {self._job_id}: {left} ({error}); close again to retry") from error

    def _fill_batch(self) -> bool:
        """Move the next records into the batch, unless a failed flush left one; return whether there are any."""
        if not self._batch:
            with self._lock:
                batch: list[Timed] = []
                size = 0
                for record, record_size, _ in islice(self._waiting, MOST_RECORDS):
                    if batch and size + record_size > _MOST_BYTES_TOGETHER:
                        break
                    batch.append(record)
                    size += record_size
                # A signal may interrupt here, so records join the batch before they leave the queue.
                self._batch, self._batch_bytes = batch, size
                for _ in batch:
                    self._waiting.popleft()
        return bool(self._batch)


def _size_of(record: Timed) -> int:
    size = _BYTES_BESIDE_TEXT
    if isinstance(record, JobLog):
        size += _bytes_of(record.message) + _bytes_of(record.exception or "")
    return size


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
