"""Log lines as the table holds them: whatever a program says, in a form that an item can have."""

from __future__ import annotations

from datetime import datetime
from traceback import format_exception

from jobtable.errors import ValueRefusedError
from jobtable.jobs.stored.entities import JobLog
from jobtable.jobs.stored.fields import LogLevel
from jobtable.model.fields import format_timestamp

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
