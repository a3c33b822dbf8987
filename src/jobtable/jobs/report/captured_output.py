"""What a job prints and logs in its process: recent lines to the table, all of it to the full text."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import re
import secrets
import select
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Literal, Self, TextIO, TypeAlias

from pydantic_core import from_json

from jobtable.clock import Clock
from jobtable.errors import IncompleteBatchError, JobtableError, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.buffer import Flusher
from jobtable.jobs.report.log_lines import (
    OWN_LINE,
    LineSplitter,
    OutputLine,
    as_full_text,
    headline_and_trace,
    log_line,
)
from jobtable.jobs.report.log_text import TextSpool
from jobtable.jobs.report.recording import ReportRules
from jobtable.jobs.stored.entities import JobLog, JobLogText
from jobtable.store.retries import is_passing

if TYPE_CHECKING:
    from jobtable.jobs.verbs import WorkVerbs

_PIECE_BYTES = 3000
"""Pipes write up to 4,096 bytes atomically, so nothing that others print gets into a piece."""
_MOST_UNFINISHED = 64
_LINE, _TEXT, _MORE_TEXT, _FLUSH = "l", "t", "m", "f"
_PIECE_OF_LINE = re.compile(r"(?P<number>\d+)(?P<has_more>[+.])(?P<piece>.*)")


@dataclass(frozen=True)
class SentLine:
    """A log line; `is_whole` unless the text that follows has the rest of its message."""

    line: JobLog
    is_whole: bool


@dataclass(frozen=True)
class SentText:
    """Lines for the full text alone, in pieces; `begins` marks the first."""

    data: bytes
    begins: bool


@dataclass(frozen=True)
class FlushWish:
    """A request of the task for an answer when all that it sent is stored."""

    number: int


@dataclass(frozen=True)
class Flushed:
    """The worker's answer to a wish, or without a number to every future wish; picklable."""

    number: int | None
    problem: str | None = None
    is_passing: bool = True


Sent: TypeAlias = SentLine | SentText | FlushWish


class LineSender:
    """The end in the process of a job; any thread may use it.

    The worker recognises lines by `key`, so nothing that a program prints or forwards is mistaken for one.
    """

    def __init__(self, streams: Iterable[TextIO], key: str) -> None:
        self._streams = tuple(streams)
        self._fd = os.dup(self._streams[0].fileno())  # a task may put a file in the place of its standard output
        self._prefix = OWN_LINE + key.encode()
        self._process_id = os.getpid()
        self._numbers = count(1)
        self._wishes: dict[int, SimpleQueue[Flushed]] = {}
        self._lock = threading.RLock()  # a handler of a signal may log, too
        self._sent = self._stored = 0
        self._broken: Flushed | None = None

    def send(self, line: JobLog, message: str) -> bool:
        """Send a line, whose message may be cut; return whether the worker stores it.

        A forked process could not receive the answers, so it sends only the text.
        """
        for stream in self._streams:
            with contextlib.suppress(ValueError):  # the task has closed it
                stream.flush()
        is_stored_there = os.getpid() == self._process_id
        is_whole = is_stored_there and message == line.message
        if is_stored_there:
            try:
                self._send_line(line, is_whole)
            finally:
                with self._lock:
                    self._sent += 1
        if not is_whole:
            self._send_text(as_full_text(line, message))
        return is_stored_there

    def flush(self) -> None:
        """Wait until the worker has stored all that was sent, or raise; the worker keeps what it could not store."""
        sent = self._sent
        if os.getpid() != self._process_id or self._stored >= sent:
            return
        number, answers = next(self._numbers), SimpleQueue[Flushed]()
        self._wishes[number] = answers
        try:
            if self._broken is None:
                self._write(f"{_FLUSH}{number}")
            answer = self._broken or answers.get()
        finally:
            del self._wishes[number]
        if answer.problem is not None:
            raise IncompleteBatchError(answer.problem) if answer.is_passing else JobtableError(answer.problem)
        with self._lock:
            self._stored = max(self._stored, sent)

    def hear(self, answer: Flushed) -> None:
        if answer.number is None:
            self._broken = answer
        for number, answers in list(self._wishes.items()):
            if answer.number in (None, number):
                answers.put(answer)

    def _send_line(self, line: JobLog, is_whole: bool) -> None:
        sent = line.model_dump(mode="json", exclude={"job_id"}, exclude_none=True)
        text, number = json.dumps([is_whole, sent]), next(self._numbers)
        for start in range(0, len(text), _PIECE_BYTES):
            end = start + _PIECE_BYTES
            self._write(f"{_LINE}{number}{'.' if end >= len(text) else '+'}{text[start:end]}")

    def _send_text(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE_BYTES):
            piece = base64.b64encode(data[start : start + _PIECE_BYTES]).decode()
            self._write(f"{_MORE_TEXT if start else _TEXT}{piece}")

    def _write(self, piece: str) -> None:
        data = self._prefix + piece.encode() + b"\n"
        while True:
            try:
                os.write(self._fd, data)
            except BlockingIOError:  # a program that shares the pipe has told it not to wait
                room = select.poll()
                room.register(self._fd, select.POLLOUT)
                room.poll()
            else:
                return


class LineReceiver:
    """The worker's end: restores the lines sent among the output of a job."""

    def __init__(self, job_id: str, key: str) -> None:
        self._job_id = job_id
        self._key = key
        self._unfinished: dict[str, list[str]] = {}

    def is_sent(self, marked: str) -> bool:
        """Whether a marked line comes from the sender, not from a program that uses the same mark."""
        return marked.startswith(self._key)

    def take(self, marked: str) -> Sent | None:
        """Return what a marked line contains; None if it is unfinished or malformed."""
        kind, said = marked[len(self._key) : len(self._key) + 1], marked[len(self._key) + 1 :]
        try:
            if kind == _FLUSH:
                return FlushWish(int(said))
            if kind in (_TEXT, _MORE_TEXT):
                return SentText(base64.b64decode(said, validate=True), kind == _TEXT)
            return self._line(said)
        except (ValueError, LookupError, TypeError):
            return None

    def _line(self, said: str) -> SentLine | None:
        found = _PIECE_OF_LINE.fullmatch(said)
        if found is None:
            return None
        pieces = self._unfinished.setdefault(found["number"], [])
        pieces.append(found["piece"])
        if found["has_more"] == "+":
            if len(self._unfinished) > _MOST_UNFINISHED:  # of threads that were ended in the middle of a line
                del self._unfinished[next(iter(self._unfinished))]
            return None
        is_whole, sent = from_json("".join(self._unfinished.pop(found["number"])))
        return SentLine(JobLog(job_id=self._job_id, **sent), is_whole)


LINES_AT_ONCE = 1_000
LINES_PER_SECOND = 100.0
"""How many lines of output become JobLog items: a thousand at once, then a hundred a second, of up to 1 KB each."""
_BYTES_OF_A_LINE = 1 << 10
"""A longer line counts for several."""
_LAST_LINES = 20
"""How many last lines are always stored at the end, and once a second before a logged line."""
Stream = Literal["stdout", "stderr"]


class OutputCapture:
    """Captures the output of one run of a job, as bytes in pieces of any size.

    Lines become JobLog items within a budget, and one item says how many were skipped; of a progress bar the last state
    before each flush counts. What the job's context sends among the output is always stored, in order; its sender has
    `key`, and `on_flushed` gets the answers for it. The full text has everything, up to its documented size. Memory is
    bounded: `feed` waits while the store is slower than the job. Close it before the job is finished, so that those who
    follow the log see all of it.
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
        self._bars: dict[Stream, OutputLine] = {}
        self._left_out = 0
        self._last_left_out: deque[tuple[str, Stream]] = deque(maxlen=_LAST_LINES)
        self._lock = threading.Lock()
        self._record: JobLogText | None = None
        self._is_closed = False
        self._flusher = Flusher(self._flush, flush_seconds, f"output of job {self._job_id}")
        # In a thread of its own: lines must not wait for object storage.
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
        """Log why the task failed, after all that it printed."""
        headline, trace = headline_and_trace(message)
        line = self._line(headline, "ERROR", exception=trace)
        with self._lock:
            self._tell_end()
            self._append_lines(as_full_text(line))
            self._write_text()
            self._buffer.add(line)

    def close(self) -> JobLogText | None:
        """Store what is left and finish the full text; return its record, or None without output.

        If it raises, it keeps what was not stored for another close.
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
        """Discard what could not be stored."""
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
        except Exception as error:  # the task must not wait forever
            self._answer(wishes, error)
            raise
        self._answer(wishes)

    def _answer(self, wishes: list[FlushWish], error: Exception | None = None) -> None:
        problem = None if error is None else f"could not store the log of job {self._job_id}: {error}"
        may_pass = isinstance(error, JobtableError) and is_passing(error)
        for wish in wishes:
            if self.on_flushed is not None:
                self.on_flushed(Flushed(wish.number, problem, may_pass))

    def _take_sent(self, marked: str) -> None:
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
        self._append(b"\n" + data if self._is_text_within_line else data)

    def _write_text(self) -> None:
        self._text.append(b"".join(self._new_text))
        self._new_text.clear()

    def _take(self, line: OutputLine, stream: Stream) -> bool:
        """Store a line; return False if no budget is left."""
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
        """Store the unfinished and the last lines even beyond the budget: often they say why a job failed."""
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
    except ValueRefusedError:  # this fails the job; keep what it says then
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
        """Return whether one more line may be stored now; a long one counts for several."""
        now = self._clock.monotonic()
        self._left = min(self._most, self._left + (now - self._last) * self._per_second)
        self._last = now
        if self._left < 1:
            return False
        self._left -= lines
        return True
