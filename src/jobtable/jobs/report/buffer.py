"""Log lines and metrics on their way to the store: collected, bounded, stored in batches."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from jobtable.errors import ConflictError, IncompleteBatchError, JobtableError
from jobtable.jobs.report.timeline import MOST_RECORDS, Timed, Timeline
from jobtable.jobs.stored.entities import JobLog
from jobtable.store import Store

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
            left = f"{len(self)} log lines and metrics could not be stored"
            raise IncompleteBatchError(f"job {self._job_id}: {left} ({error}); close again to try again") from error

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
