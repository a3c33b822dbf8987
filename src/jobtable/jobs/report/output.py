"""What a job's process writes to its standard output: recent lines to the table, all of it to the full text."""

from __future__ import annotations

import math
import secrets
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Self

from jobtable.clock import Clock
from jobtable.errors import JobtableError, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.flusher import Flusher
from jobtable.jobs.report.lines import Line, LineSplitter
from jobtable.jobs.report.log_lines import as_full_text, headline_and_trace, log_line
from jobtable.jobs.report.log_text import TextSpool
from jobtable.jobs.report.reports import ReportRules
from jobtable.jobs.report.sent_lines import Flushed, FlushWish, LineReceiver, SentLine, SentText
from jobtable.jobs.stored.entities import JobLog, JobLogText
from jobtable.jobs.worker.patience import is_passing

if TYPE_CHECKING:
    from jobtable.jobs.verbs import WorkVerbs

LINES_AT_ONCE = 1_000
LINES_PER_SECOND = 100.0
"""How many lines of output become JobLog items: a thousand at once, then a hundred a second, of up to 1 KB each."""
_BYTES_OF_A_LINE = 1 << 10
"""A longer line counts for several."""
_LAST_LINES = 20
"""How many of the last lines are stored at the end in any case, and, once a second, before a line that is logged."""
Stream = Literal["stdout", "stderr"]


class OutputCapture:
    """Takes the output of one run of a job, as bytes in pieces of any size.

    Lines become JobLog items within a budget, and one item says how many were left out; of a progress bar the last
    state of each flush counts. What the job's context sends among the output is stored in any case, in its place; the
    sender is made with `key`, and `on_flushed` gets the answers that it waits for. The full text has everything, up
    to its documented size. Memory is bounded: `feed` waits when the store is slower than the job. Close it before
    the job is finished, so that who follows the log sees all of it.
    """

    def __init__(
        self,
        jobs: WorkVerbs,
        lease: Lease,
        *,
        flush_seconds: float = 1.0,
        lines_at_once: int = LINES_AT_ONCE,
        lines_per_second: float = LINES_PER_SECOND,
        spool: TextSpool | None = None,
    ) -> None:
        self.key = secrets.token_hex(8)
        self.on_flushed: Callable[[Flushed], None] | None = None
        self._job_id = lease.job.job_id
        self._receiver = LineReceiver(self._job_id, self.key)
        self._wishes: list[FlushWish] = []
        self._clock = jobs.clock
        self._kept_seconds = _kept_seconds(lease)
        self._budget = Budget(jobs.clock, lines_at_once, lines_per_second)
        self._last_lines_budget = Budget(jobs.clock, 1, 1.0)
        self._buffer = jobs.recording.buffer(lease, self._job_id, most_seconds=2 * flush_seconds)
        self._text = jobs.recording.log_text(lease, spool)
        self._new_text: list[bytes] = []
        self._is_text_within_line = False
        self._splitters: dict[Stream, LineSplitter] = {}
        self._bars: dict[Stream, Line] = {}
        self._left_out = 0
        self._last_left_out: deque[tuple[str, Stream]] = deque(maxlen=_LAST_LINES)
        self._lock = threading.Lock()
        self._record: JobLogText | None = None
        self._is_closed = False
        self._flusher = Flusher(self._flush, flush_seconds, f"output of job {self._job_id}")
        # Apart from the lines, which must not wait for object storage that does not answer.
        self._uploader = Flusher(self._text.upload, flush_seconds, f"full text of job {self._job_id}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def feed(self, data: bytes, stream: Stream = "stdout") -> None:
        """Take bytes that the job has written."""
        with self._lock:
            splitter = self._splitters.setdefault(stream, LineSplitter())
            splitter.feed(data)
            while (line := splitter.next()) is not None:
                if line.is_marked and self._receiver.is_sent(line.text):
                    self._append(splitter.consumed_before_line())
                    self._take_sent(line.text)
                elif not self._take(line, stream):
                    count, last = splitter.skip()
                    self._left_out += count
                    self._last_left_out.extend((text, stream) for text in last if text.strip())
            self._append(splitter.consumed())
            self._write_text()
        if self._buffer.is_filling or self._wishes:
            self._flusher.wake()

    def fail(self, message: str) -> None:
        """Tell why the task failed, behind all that it has printed."""
        headline, trace = headline_and_trace(message)
        line = self._line(headline, "ERROR", exception=trace)
        with self._lock:
            self._tell_end()
            self._append_lines(as_full_text(line))
            self._write_text()
            self._buffer.add(line)

    def close(self) -> JobLogText | None:
        """Store what is left and finish the full text; gives its record, None where there was no output.

        If it raises, what was not stored is kept: close it again.
        """
        if self._is_closed:
            return self._record
        self._flusher.close()
        self._uploader.close()
        with self._lock:
            self._tell_end()
            self._write_text()
        self._buffer.close()
        self._record = self._text.finish()
        self._text.close()
        self._is_closed = True
        return self._record

    def give_up(self) -> None:
        """Let go of what could not be stored."""
        self._text.close()
        self._is_closed = True

    def _flush(self) -> None:
        with self._lock:
            for stream, bar in self._bars.items():
                if self._budget.take():
                    self._add(bar.text, stream)
            self._bars.clear()
            self._tell_left_out()
            wishes, self._wishes = self._wishes, []
        try:
            self._buffer.flush()
        except Exception as error:  # whatever it is, the task must not wait for ever
            self._answer(wishes, error)
            raise
        self._answer(wishes)

    def _answer(self, wishes: list[FlushWish], error: Exception | None = None) -> None:
        problem = None if error is None else f"job {self._job_id}: what it has logged could not be stored: {error}"
        may_pass = isinstance(error, JobtableError) and is_passing(error)
        for wish in wishes:
            if self.on_flushed is not None:
                self.on_flushed(Flushed(wish.number, problem, may_pass))

    def _take_sent(self, marked: str) -> None:
        """Take what the job's context has sent."""
        match self._receiver.take(marked):
            case SentLine(line, is_whole):
                if self._last_left_out and self._last_lines_budget.take():
                    self._tell_last_left_out()
                self._tell_left_out()
                self._last_left_out.clear()
                self._buffer.add(line)
                if is_whole:
                    self._append_lines(as_full_text(line))
            case SentText(data, begins):
                (self._append_lines if begins else self._append)(data)
            case FlushWish() as wish:
                self._wishes.append(wish)

    def _append(self, data: bytes) -> None:
        if data:
            self._new_text.append(data)
            self._is_text_within_line = data[-1:] not in (b"\r", b"\n")

    def _append_lines(self, data: bytes) -> None:
        """Add whole lines to the text, on a line of their own."""
        self._append(b"\n" + data if self._is_text_within_line else data)

    def _write_text(self) -> None:
        """Hand on what was added, all at once."""
        self._text.append(b"".join(self._new_text))
        self._new_text.clear()

    def _take(self, line: Line, stream: Stream) -> bool:
        """Tell a line; False where there is no budget left for it."""
        if line.is_overwritten:
            if line.text:
                self._bars[stream] = line
            return True
        self._bars.pop(stream, None)
        if not line.text.strip():
            return True
        if not self._budget.take(1 + len(line.text) // _BYTES_OF_A_LINE):
            self._left_out += 1
            self._last_left_out.append((line.text, stream))
            return False
        self._tell_left_out()
        self._last_left_out.clear()
        self._add(line.text, stream)
        return True

    def _tell_left_out(self) -> None:
        if self._left_out > 0:
            self._add(f"{self._left_out:,} lines of output were left out here; the full text has them", "jobtable")
        self._left_out = 0

    def _tell_end(self) -> None:
        """Take what no line feed ended, and tell the last lines even if the budget is spent: often they say why."""
        for stream, splitter in self._splitters.items():
            if (line := splitter.end()) is not None:
                self._take(line, stream)
                self._append(splitter.consumed())
        self._tell_last_left_out()

    def _tell_last_left_out(self) -> None:
        self._left_out -= len(self._last_left_out)
        self._tell_left_out()
        for text, stream in self._last_left_out:
            self._add(text, stream)
        self._last_left_out.clear()

    def _add(self, text: str, source: str) -> None:
        self._buffer.add(self._line(text, "INFO", source=source))

    def _line(self, text: str, level: str, *, source: str | None = None, exception: str | None = None) -> JobLog:
        kept = self._kept_seconds
        expiry = None if kept is None else math.ceil(self._clock.seconds() + kept)
        now = self._clock.now()
        return log_line(self._job_id, now, level, text, source=source, exception=exception, time_to_live=expiry)


def _kept_seconds(lease: Lease) -> float | None:
    try:
        return ReportRules.of(lease.job).logs_ttl_seconds
    except ValueRefusedError:  # the job fails of it, and what it says then is to be kept
        return None


class Budget:
    """How many lines may be stored: some at once, then a number of them every second."""

    def __init__(self, clock: Clock, at_once: int, per_second: float) -> None:
        self._clock = clock
        self._most = float(at_once)
        self._per_second = per_second
        self._left = self._most
        self._last = clock.monotonic()

    def take(self, lines: int = 1) -> bool:
        """Whether one more line may be stored now; a long one counts for several."""
        now = self._clock.monotonic()
        self._left = min(self._most, self._left + (now - self._last) * self._per_second)
        self._last = now
        if self._left < 1:
            return False
        self._left -= lines
        return True
