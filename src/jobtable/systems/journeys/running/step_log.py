"""The log of one step while it runs: every line goes to a file, and the few for the catalogue stay in memory."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import IO, Any, Self

from pydantic_core import to_jsonable_python

from jobtable.errors import ValueRefusedError
from jobtable.model.plain_values import wire_form
from jobtable.objects import ObjectInfo, ObjectStore
from jobtable.systems.journeys.entities import JobExecution, LogEntry
from jobtable.systems.journeys.object_keys import DEFAULT_BUCKETS, location
from jobtable.systems.journeys.parts import LogCounts, LogEntryLevel

RECENT_LINES = 100
"""The last lines of a step that go to the catalogue."""
NOTED_LINES = 100
"""The first warnings and errors before those lines that also do."""
LONGEST_MESSAGE = 1_000
"""Longer messages are cut in the catalogue, not in the full log."""
_IN_MEMORY = 1 << 20
_NOTED = {LogEntryLevel.WARNING, LogEntryLevel.ERROR}
_TIMESTAMP = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True)
class NotedLine:
    """A line for the catalogue."""

    number: int
    level: LogEntryLevel
    message: str
    timestamp: datetime
    source: str | None
    details: dict[str, Any]


class StepLog:
    """Collects the lines of one step in bounded memory, as a JSON array with one entry per line."""

    def __init__(self, job_id: str, step_id: str) -> None:
        self._job_id = job_id
        self._step_id = step_id
        self._file: IO[bytes] | None = None
        self._recent: deque[NotedLine] = deque(maxlen=RECENT_LINES)
        self._noted: list[NotedLine] = []
        self._levels: Counter[LogEntryLevel] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        return self._levels.total()

    def write(
        self, level: LogEntryLevel, message: str, at: datetime, *, source: str | None = None, details: Mapping[str, Any]
    ) -> None:
        """Add a line."""
        entry = {
            "jobId": self._job_id,
            "step_id": self._step_id,
            "level": level.name,
            "message": message,
            "timestamp": at.strftime(_TIMESTAMP),
            **({"source": source} if source else {}),
            "details": to_jsonable_python(dict(details), fallback=repr, inf_nan_mode="strings"),
        }
        self._append(entry, level, at)

    def take_over(self, objects: ObjectStore, key: str, lines: int) -> None:
        """Start with the first lines of a stored log: those that the step has kept."""
        for entry in islice(read_lines(objects, key), lines):
            at = datetime.strptime(entry["timestamp"], _TIMESTAMP).replace(tzinfo=UTC)
            self._append(entry, LogEntryLevel[entry["level"]], at)

    def _append(self, entry: dict[str, Any], level: LogEntryLevel, at: datetime) -> None:
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed with the log
        self._file.write(b",\n" if self._levels else b"[\n")
        self._file.write(json.dumps(entry, ensure_ascii=False).encode("utf-8", "backslashreplace"))
        line = NotedLine(len(self), level, _cut(entry["message"]), at, entry.get("source"), _small(entry["details"]))
        self._levels[level] += 1
        if len(self._recent) == RECENT_LINES and self._recent[0].level in _NOTED and len(self._noted) < NOTED_LINES:
            self._noted.append(self._recent[0])
        self._recent.append(line)

    def counts(self) -> LogCounts:
        """Count the lines of each level."""
        return LogCounts(
            total_logs=len(self),
            error_count=self._levels[LogEntryLevel.ERROR],
            warning_count=self._levels[LogEntryLevel.WARNING],
            info_count=self._levels[LogEntryLevel.INFO],
            debug_count=self._levels[LogEntryLevel.DEBUG],
        )

    def catalogue(self) -> list[NotedLine]:
        """Return the lines for the catalogue: the first warnings and errors, then the last lines."""
        return [*self._noted, *self._recent]

    def store(self, objects: ObjectStore, key: str) -> ObjectInfo:
        """Store the full log as an object; after more lines it can be stored again."""
        if self._file is None:
            return objects.put(key, b"[]\n")
        end = self._file.tell()
        self._file.write(b"\n]\n")
        self._file.seek(0)
        info = objects.put(key, self._file)
        self._file.seek(end)
        self._file.truncate()
        return info

    def entries(self, execution: JobExecution, key: str) -> Iterator[LogEntry]:
        """Yield the records of the catalogue's lines, which name the object with all lines."""
        buckets = execution.s3_config or DEFAULT_BUCKETS
        for line in self.catalogue():
            yield LogEntry(
                journey_id=execution.journey_id,
                job_id=execution.job_id,
                step=self._step_id,
                timestamp=line.timestamp,
                log_id=f"LOG-{line.number:07d}",
                level=line.level,
                message=line.message,
                source=line.source,
                s3_location=location(buckets.logs_bucket, key),
                details=line.details,
                created_at=line.timestamp,
            )


def read_lines(objects: ObjectStore, key: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of a full log, oldest first; a log that StepLog wrote is read in bounded memory."""
    with objects.open(key) as stream:
        if stream.readline(64) == b"[\n":
            entries = _entries(stream)
            first = next(entries, None)
            if first is not None:
                yield first
                yield from entries
                return
    yield from json.loads(objects.get(key))  # from another program, in another layout


def _entries(stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the entry of each line; nothing if the first line is not an entry."""
    for number, line in enumerate(stream):
        bare = line.strip().removesuffix(b",")
        if bare == b"]":
            return
        try:
            yield json.loads(bare)
        except ValueError:
            if number == 0:
                return
            raise


def _cut(message: str) -> str:
    message = message.encode("utf-8", "backslashreplace").decode()
    if len(message) <= LONGEST_MESSAGE:
        return message
    return f"{message[:LONGEST_MESSAGE]}... ({len(message):,} characters; see the full log)"


def _small(details: dict[str, Any]) -> dict[str, Any]:
    """Return the details for the catalogue: as they are, unless they are long or no item can hold them."""
    text = json.dumps(details)
    with suppress(ValueRefusedError):
        wire_form(details)
        if len(text) <= LONGEST_MESSAGE:
            return details
    return {"text": text[:LONGEST_MESSAGE]}
