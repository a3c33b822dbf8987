"""What a task logs, on its way to its worker: among what the task prints, so that all of it has one order."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import select
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from queue import SimpleQueue
from typing import TextIO, TypeAlias

from pydantic_core import from_json

from jobtable.errors import IncompleteBatchError, JobtableError
from jobtable.jobs.report.lines import OWN_LINE
from jobtable.jobs.report.log_lines import as_full_text, log_line
from jobtable.jobs.stored.entities import JobLog
from jobtable.model.fields import format_timestamp

_PIECE_BYTES = 3000
"""A piece is written at once, so nothing that others print gets into it: pipes promise that for 4,096 bytes."""
_MOST_UNFINISHED = 64
_LINE, _TEXT, _MORE_TEXT, _FLUSH = "l", "t", "m", "f"
_PIECE_OF_LINE = re.compile(r"(?P<number>\d+)(?P<has_more>[+.])(?P<piece>.*)")


@dataclass(frozen=True)
class SentLine:
    """A line of the log; `is_whole` unless the text that follows has more of its message."""

    line: JobLog
    is_whole: bool


@dataclass(frozen=True)
class SentText:
    """Whole lines for the full text alone, in pieces; `begins` with the first of them."""

    data: bytes
    begins: bool


@dataclass(frozen=True)
class FlushWish:
    """The task waits until all that it has sent before is stored."""

    number: int


@dataclass(frozen=True)
class Flushed:
    """The worker's answer to a wish, or, without a number, to every wish there will be; picklable."""

    number: int | None
    problem: str | None = None
    is_passing: bool = True


Sent: TypeAlias = SentLine | SentText | FlushWish


class LineSender:
    """The end in the process of a job. Any thread may use it.

    `key` is what the worker knows the lines by: what a program prints by chance, or passes on, is never taken for one.
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
        """Send a line, which has the message whole or cut; whether the worker stores it.

        It does not store those of a forked process, which could not hear its answers; their text alone is sent.
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
        """Return when the worker has stored all that was sent, or raise; it keeps what it could not store."""
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
        """Take an answer of the worker."""
        if answer.number is None:
            self._broken = answer
        for number, answers in list(self._wishes.items()):
            if answer.number in (None, number):
                answers.put(answer)

    def _send_line(self, line: JobLog, is_whole: bool) -> None:
        sent = (
            is_whole,
            format_timestamp(line.timestamp),
            line.log_level.value,
            line.message,
            line.source,
            line.exception,
            line.time_to_live,
        )
        text, number = json.dumps(sent), next(self._numbers)
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
    """The worker's end: makes lines of what comes among the output of a job."""

    def __init__(self, job_id: str, key: str) -> None:
        self._job_id = job_id
        self._key = key
        self._unfinished: dict[str, list[str]] = {}

    def is_sent(self, marked: str) -> bool:
        """Whether a marked line comes from the sender, and not from a program that uses the same mark."""
        return marked.startswith(self._key)

    def take(self, marked: str) -> Sent | None:
        """What a marked line says; None while there is more to come, and for what no sender says."""
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
        sent = from_json("".join(self._unfinished.pop(found["number"])))
        is_whole, moment, level, message, source, exception, expiry = sent
        line = log_line(
            self._job_id,
            datetime.fromisoformat(moment),
            level,
            message,
            source=source,
            exception=exception,
            time_to_live=expiry,
        )
        return SentLine(line, is_whole)
