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
from jobtable.jobs.stored.field_types import LogLevel
from jobtable.model.fields import format_timestamp

if TYPE_CHECKING:
    from jobtable.jobs.report.context import JobContext

LONGEST_LINE = 16 << 10
"""A line with more bytes is split."""
OWN_LINE = b"\x1e"
"""Marks the start of what the job's context sends among what the job prints."""
_LINE_END = re.compile(rb"[\r\n\x1e]")
_LAST_BYTES = 4 << 10
_RETURN, _FEED, _MARK = b"\r\n\x1e"


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line without its end."""

    text: str
    is_overwritten: bool = False
    """It ended with a carriage return: on a terminal the next line replaces it, as in a progress bar."""
    is_marked: bool = False
    """It starts with the mark of what the job's context sends."""


class LineSplitter:
    """Splits bytes into lines; holds back at most one unfinished line of bounded length."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._held = b""
        self._start = 0
        self._taken = 0
        self._last_line = 0

    def feed(self, data: bytes) -> None:
        self._held = self._held[self._taken :] + data
        self._start -= self._taken
        self._taken = 0

    def consumed(self) -> bytes:
        """Return the bytes of the lines returned or skipped since the last call, unchanged."""
        data = self._held[self._taken : self._start]
        self._taken = self._start
        return data

    def consumed_before_line(self) -> bytes:
        """The same, without those of the last line returned."""
        data = self._held[self._taken : self._last_line]
        self._taken = self._start
        return data

    def next(self) -> OutputLine | None:
        """Return the next whole line, or the next piece of a long one; None if more bytes are needed."""
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
        """Skip to the next mark or the last line feed; return how many lines that were, and the last of them.

        Many times faster than taking them one by one.
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

    def end(self) -> OutputLine | None:
        """Return the last, unfinished line, or None."""
        begin, self._start = self._start, len(self._held)
        rest = self._held[begin:].rstrip(b"\r")
        return self._line(begin, begin + len(rest)) if rest else None

    def _piece(self, begin: int) -> OutputLine:
        self._start = self._boundary(begin + self._longest)
        return self._line(begin, self._start)

    def _line(self, begin: int, end: int, *, is_overwritten: bool = False) -> OutputLine:
        is_marked = self._held.startswith(OWN_LINE, begin)
        return OutputLine(self._held[begin + is_marked : end].decode("utf-8", "replace"), is_overwritten, is_marked)

    def _boundary(self, at: int) -> int:
        """The end of a character at or just before a position; the position itself if this is not UTF-8."""
        for place in range(at, at - 4, -1):
            if self._held[place] & 0xC0 != 0x80:
                return place
        return at


LONGEST_MESSAGE_BYTES = 256 << 10
"""Longer messages are cut in the table; the full text has them whole."""
LONGEST_EXCEPTION_BYTES = 64 << 10
LONGEST_PROGRESS_BYTES = 16 << 10
"""The progress message is part of the job's item, which also holds its params and result."""
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
    """Return a line to store: long texts are cut with a note, lone surrogates are escaped."""
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
    """Return the level that a text names, in any case; ValueRefusedError if it is unknown."""
    found = _LEVELS.get(level.upper())
    if found is None:
        raise ValueRefusedError(f"unknown log level {level!r}; choose one of {', '.join(_LEVELS)}")
    return found


def levels_from(level: str) -> frozenset[LogLevel]:
    """Return a level and all more urgent ones."""
    levels = list(LogLevel)
    return frozenset(levels[levels.index(level_of(level)) :])


def clean(text: str) -> str:
    """Return the text as valid Unicode, with lone surrogates escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def cut(text: str, longest_bytes: int) -> str:
    """Cut the text to at most so many bytes, with a note."""
    if len(text) * 4 <= longest_bytes:
        return text
    data = text.encode()
    if len(data) <= longest_bytes:
        return text
    note = f" ... [cut here: {len(data):,} bytes]"
    return data[: longest_bytes - len(note)].decode("utf-8", "ignore") + note


def as_text(line: JobLog, message: str | None = None) -> str:
    """Return a line as people read it, followed by its exception; `message` replaces a cut one."""
    source = f" {line.source}:" if line.source else ""
    told = line.message if message is None else message
    text = f"{format_timestamp(line.timestamp)} {line.log_level.value:<8}{source} {told}"
    return text if line.exception is None else f"{text}\n{line.exception}"


def as_full_text(line: JobLog, message: str | None = None) -> bytes:
    """Return the same as whole lines of the full text."""
    return "".join(f"{part}\n" for part in as_text(line, message).splitlines()).encode()


def headline_and_trace(message: str) -> tuple[str, str | None]:
    """Split a failure into its headline, for the message, and what follows an empty line, for the exception."""
    headline, _, trace = message.partition("\n\n")
    return headline, trace or None


def _told(exception: str | BaseException) -> str:
    if isinstance(exception, str):
        return exception
    return "".join(format_exception(exception)).rstrip("\n")


_FORMATTER = logging.Formatter()


class JobLogHandler(logging.Handler):
    """Sends Python's log records to a job's log: the source is the logger's name; exceptions are included."""

    def __init__(self, context: JobContext, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._context = context

    def emit(self, record: logging.LogRecord) -> None:
        if self._context.is_flushing:
            return  # the store logs this itself; logging it again would never end
        try:
            exception = record.exc_text
            if record.exc_info and record.exc_info[1] is not None:
                exception = exception or _FORMATTER.formatException(record.exc_info)
            self._context.log(record.getMessage(), _level_of(record.levelno), source=record.name, exception=exception)
        except Exception:  # like every handler: logging never ends the program
            self.handleError(record)


def _level_of(number: int) -> LogLevel:
    if number < logging.INFO:
        return LogLevel.DEBUG
    if number < logging.WARNING:
        return LogLevel.INFO
    if number < logging.ERROR:
        return LogLevel.WARNING
    return LogLevel.ERROR if number < logging.CRITICAL else LogLevel.CRITICAL
