"""Log lines: split from what a program prints, taken from its logging, and as the table holds them."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import datetime
from traceback import format_exception
from typing import TYPE_CHECKING

from jobtable.errors import ValueRefusedError
from jobtable.jobs.stored.entities import JobLog
from jobtable.jobs.stored.fields import LogLevel
from jobtable.model.fields import format_timestamp

if TYPE_CHECKING:
    from jobtable.jobs.report.context import JobContext

LONGEST_LINE = 16 << 10
"""A line with more bytes is given in pieces."""
OWN_LINE = b"\x1e"
"""Marks the beginning of what the job's context sends among what the job prints."""
_LINE_END = re.compile(rb"[\r\n\x1e]")
_LAST_BYTES = 4 << 10
_RETURN, _FEED, _MARK = b"\r\n\x1e"


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end."""

    text: str
    is_overwritten: bool = False
    """It ended with a carriage return: on a terminal the next line takes its place, as in a progress bar."""
    is_marked: bool = False
    """It began with the mark of what the job's context sends."""


class LineSplitter:
    """Takes bytes as they come and gives lines. It holds back at most one unfinished line of bounded length."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._held = b""
        self._start = 0
        self._taken = 0
        self._last_line = 0

    def feed(self, data: bytes) -> None:
        """Take more bytes."""
        self._held = self._held[self._taken :] + data
        self._start -= self._taken
        self._taken = 0

    def consumed(self) -> bytes:
        """The bytes of the lines that were given or left out since the last call, as they came."""
        data = self._held[self._taken : self._start]
        self._taken = self._start
        return data

    def consumed_before_line(self) -> bytes:
        """The same, without those of the line that was given last."""
        data = self._held[self._taken : self._last_line]
        self._taken = self._start
        return data

    def next(self) -> Line | None:
        """The next whole line, or the next piece of one that is too long; None if more bytes are needed."""
        begin = self._last_line = self._start
        # A mark at the beginning belongs to this line; only the next one ends it.
        look_from = begin + self._held.startswith(OWN_LINE, begin)
        found = _LINE_END.search(self._held, look_from, begin + self._longest + 1)
        if found is None:
            return self._piece(begin) if len(self._held) - begin > self._longest else None
        end = found.start()
        is_return = self._held[end] == _RETURN
        if is_return and end + 1 == len(self._held):
            return None  # a line feed may follow
        ends_with_feed = is_return and self._held[end + 1] == _FEED
        self._start = end + 1 + ends_with_feed if self._held[end] != _MARK else end
        return self._line(begin, end, is_overwritten=is_return and not ends_with_feed)

    def skip(self) -> tuple[int, list[str]]:
        """Leave out what is there up to the next mark, or the last line feed: how many lines, and the last of them.

        That is many times faster than to take them one by one.
        """
        mark = self._held.find(OWN_LINE, self._start)
        end = mark if mark >= 0 else self._held.rfind(b"\n") + 1
        if end <= self._start:
            return 0, []
        is_unended = self._held[end - 1] != _FEED
        count = self._held.count(b"\n", self._start, end) + is_unended
        last = self._held[max(self._start, end - _LAST_BYTES) : end - (not is_unended)].split(b"\n")
        if end - _LAST_BYTES > self._start:
            last.pop(0)  # its beginning is missing
        self._start = end
        return count, [line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace") for line in last]

    def end(self) -> Line | None:
        """The last line, which nothing ended; None if there is none."""
        begin, self._start = self._start, len(self._held)
        rest = self._held[begin:].rstrip(b"\r")
        return self._line(begin, begin + len(rest)) if rest else None

    def _piece(self, begin: int) -> Line:
        """The beginning of a line that is too long."""
        self._start = self._boundary(begin + self._longest)
        return self._line(begin, self._start)

    def _line(self, begin: int, end: int, *, is_overwritten: bool = False) -> Line:
        is_marked = self._held.startswith(OWN_LINE, begin)
        return Line(self._held[begin + is_marked : end].decode("utf-8", "replace"), is_overwritten, is_marked)

    def _boundary(self, at: int) -> int:
        """The end of a character at or just before a place; the place itself where the bytes are no UTF-8."""
        for place in range(at, at - 4, -1):
            if self._held[place] & 0xC0 != 0x80:
                return place
        return at


LONGEST_MESSAGE_BYTES = 256 << 10
"""Longer messages are cut in the table; the full text has them whole."""
LONGEST_EXCEPTION_BYTES = 64 << 10
LONGEST_PROGRESS_BYTES = 16 << 10
"""The message of a job's progress stands in the job's own item, which has to hold its params and its result as well."""
_LONGEST_SOURCE_BYTES = 1 << 10
_LEVELS = {level.value: level for level in LogLevel}


def log_line(
    job_id: str,
    moment: datetime,
    level: str,
    message: str,
    *,
    source: str | None = None,
    exception: str | BaseException | None = None,
    time_to_live: int | None = None,
) -> JobLog:
    """A line to store: texts that are too long are cut with a note, lone surrogates are written out."""
    return JobLog(
        job_id=job_id,
        timestamp=moment,
        log_level=level_of(level),
        message=cut(clean(message), LONGEST_MESSAGE_BYTES),
        source=None if source is None else cut(clean(source), _LONGEST_SOURCE_BYTES),
        exception=None if exception is None else cut(clean(_told(exception)), LONGEST_EXCEPTION_BYTES),
        time_to_live=time_to_live,
    )


def level_of(level: str) -> LogLevel:
    """The level that a text names, in any case; ValueRefusedError for one that does not exist."""
    found = _LEVELS.get(level.upper())
    if found is None:
        raise ValueRefusedError(f"{level!r} is no log level; there are {', '.join(_LEVELS)}")
    return found


def levels_from(level: str) -> frozenset[LogLevel]:
    """A level and all that are more urgent."""
    levels = list(LogLevel)
    return frozenset(levels[levels.index(level_of(level)) :])


def clean(text: str) -> str:
    """The text as valid Unicode: lone surrogates are written out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def cut(text: str, longest_bytes: int) -> str:
    """The text, cut to at most that many bytes, with a note where it was longer."""
    if len(text) * 4 <= longest_bytes:
        return text
    data = text.encode()
    if len(data) <= longest_bytes:
        return text
    note = f" ... [cut here: {len(data):,} bytes]"
    return data[: longest_bytes - len(note)].decode("utf-8", "ignore") + note


def as_text(line: JobLog, message: str | None = None) -> str:
    """A line as people read it, with its exception below it; with the whole message where the line has a cut one."""
    source = f" {line.source}:" if line.source else ""
    told = line.message if message is None else message
    text = f"{format_timestamp(line.timestamp)} {line.log_level.value:<8}{source} {told}"
    return text if line.exception is None else f"{text}\n{line.exception}"


def as_full_text(line: JobLog, message: str | None = None) -> bytes:
    """The same as whole lines of the full text."""
    return "".join(f"{part}\n" for part in as_text(line, message).splitlines()).encode()


def headline_and_trace(message: str) -> tuple[str, str | None]:
    """What is logged of a failure: its headline as the message, and what follows an empty line as the exception."""
    headline, _, trace = message.partition("\n\n")
    return headline, trace or None


def _told(exception: str | BaseException) -> str:
    if isinstance(exception, str):
        return exception
    return "".join(format_exception(exception)).rstrip("\n")


_FORMATTER = logging.Formatter()


class JobLogHandler(logging.Handler):
    """Logs into a job: the logger's name is the source, the text of an exception comes along."""

    def __init__(self, context: JobContext, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._context = context

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record."""
        if self._context.is_flushing:
            return  # the store itself speaks: to log that would make it speak again
        try:
            exception = record.exc_text
            if record.exc_info and record.exc_info[1] is not None:
                exception = exception or _FORMATTER.formatException(record.exc_info)
            self._context.log(record.getMessage(), _level_of(record.levelno), source=record.name, exception=exception)
        except Exception:  # as every handler does: logging never ends the program that logs
            self.handleError(record)


def _level_of(number: int) -> LogLevel:
    if number < logging.INFO:
        return LogLevel.DEBUG
    if number < logging.WARNING:
        return LogLevel.INFO
    if number < logging.ERROR:
        return LogLevel.WARNING
    return LogLevel.ERROR if number < logging.CRITICAL else LogLevel.CRITICAL
