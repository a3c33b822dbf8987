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


_LOG = logging.getLogger(__name__)


class Flusher:
    """Flushes at regular intervals, and at once when it is woken. A flush that fails is tried again."""

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
        """Whether it is this thread."""
        return threading.current_thread() is self._thread

    def wake(self) -> None:
        """Flush soon."""
        if not self._woken.is_set():
            self._woken.set()

    def close(self) -> None:
        """End the thread; the flush that it is in comes to its end. The last flush is the caller's."""
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
            except Exception as error:  # whatever it is, nothing is lost by it: the last flush raises what stays
                if not is_failing:
                    _LOG.warning("could not store the %s; will retry: %s", self._name, error)
                is_failing = True
            else:
                is_failing = False


MOST_BYTES = 8 << 20
"""What a buffer holds at most; then whoever adds waits."""
MOST_SECONDS = 2.0
"""How far the store may be behind before whoever adds waits."""
_MOST_BYTES_TOGETHER = 2 << 20
"""DynamoDB takes 4 MB in one transaction; the sizes here are estimates."""
_BYTES_BESIDE_TEXT = 1_000
"""About how much memory a record takes beside its texts; the item takes less."""


class RecordWriter(Protocol):
    """Stores records: a job's timeline, or a server that has one."""

    def write(self, records: Sequence[Timed]) -> None:
        """Store up to 98 records, in their order. After a failure call it again with the same: none is stored twice."""
        ...


class RecordBuffer:
    """The records of one job that are not stored yet. They are stored in the order in which they came, each once.

    Any thread may add and flush. What a failed flush leaves stays for the next one.
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
        """Whether this thread is within a flush: what it says there is about the store, not about the job."""
        return getattr(self._of_thread, "is_flushing", False)

    @property
    def is_filling(self) -> bool:
        """Whether it is time to flush, however recent the last flush was."""
        return self._bytes >= self._most_bytes // 8

    def add(self, record: Timed) -> None:
        """Take a record. If the buffer is full, or the store is behind, wait until it has taken what is there."""
        size = _size_of(record)
        now = self._clock.monotonic()
        while self._must_wait(now) and not self.is_flushing:
            try:
                self.flush()
            except JobtableError as error:
                if not (error.retryable or isinstance(error, ConflictError)):
                    raise
                # The store has paused between its own tries. Trying again loses no line and keeps the buffer bounded.
        with self._lock:
            self._waiting.append((record, size, now))
            self._bytes += size

    def _must_wait(self, now: float) -> bool:
        with self._lock:
            if self._bytes >= self._most_bytes:
                return True
            # What waits would be lost if the process died, so the task waits for the store; but not while that is away.
            return not self._is_failing and bool(self._waiting) and now - self._waiting[0][2] > self._most_seconds

    def flush(self) -> None:
        """Store all that is there, or raise and keep what is left."""
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
        """Store what is left, or raise IncompleteBatchError and keep it: it may be called again."""
        try:
            self.flush()
        except JobtableError as error:
            left = f"could not store {len(self)} log lines and metrics"
            raise IncompleteBatchError(f"job {self._job_id}: {left} ({error}); close again to retry") from error

    def _fill_batch(self) -> bool:
        """Take what is stored next out of what waits, unless a failed flush has left a batch."""
        if not self._batch:
            with self._lock:
                batch: list[Timed] = []
                size = 0
                for record, record_size, _ in islice(self._waiting, MOST_RECORDS):
                    if batch and size + record_size > _MOST_BYTES_TOGETHER:
                        break
                    batch.append(record)
                    size += record_size
                # A signal may interrupt here: what is taken must be in the batch before it is out of the queue.
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
