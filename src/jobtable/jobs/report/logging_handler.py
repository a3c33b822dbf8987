"""Python's logging, as lines of a job's log."""

from __future__ import annotations

import logging

from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.fields import LogLevel

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
