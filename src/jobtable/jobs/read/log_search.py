"""Finding a text in the whole log of a job, a bounded part at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobtable.errors import CursorError, ObjectNotFoundError, ValueRefusedError
from jobtable.jobs.report.log_text import PART_BYTES
from jobtable.jobs.stored.entities import JobLog, JobLogText
from jobtable.jobs.stored.field_types import LogLevel
from jobtable.jobs.stored.locations import log_part_key
from jobtable.model.fields import format_timestamp
from jobtable.objects import ObjectStore
from jobtable.objects.object_store import CHUNK_SIZE
from jobtable.store import Store
from jobtable.store.cursors import fingerprint, read_cursor, write_cursor

MOST_BYTES = 8 << 20
"""How many bytes of a log are searched for one page."""
MOST_LINES = 2_000
"""How many lines of the table are searched for one page."""
LONGEST_WANTED = 1_000
"""How many characters a search text may have."""
_BYTES_OF_A_RUN = 64 << 10
"""What each run counts besides its text, so that a page does not search too many short ones."""
_LAST_EPOCH = 99_999


@dataclass(frozen=True)
class FoundLine:
    """A line of the full text of a run, with its number from 1, or of the table, with its time."""

    epoch: int | None
    number: int | None
    text: str
    timestamp: datetime | None = None
    log_level: LogLevel | None = None


@dataclass(frozen=True)
class FoundPage:
    """Some lines, possibly none if matches are rare, and the cursor of the next page."""

    items: list[FoundLine]
    cursor: str | None


@dataclass(frozen=True)
class _Position:
    """A position in the text of a run: its offset in bytes and the number of the next line."""

    epoch: int
    offset: int = 0
    number: int = 1


class LogSearch:
    """A search for a text in the full texts of all runs or of one; of a job without any, in its lines."""

    def __init__(
        self,
        store: Store,
        objects: ObjectStore,
        job_id: str,
        wanted: str,
        *,
        epoch: int | None = None,
        ignore_case: bool = False,
    ) -> None:
        if not wanted:
            raise ValueRefusedError(f"cannot search the log of job {job_id} for an empty text")
        if len(wanted) > LONGEST_WANTED:
            raise ValueRefusedError(f"a search text has at most {LONGEST_WANTED} characters, not {len(wanted)}")
        self._store = store
        self._objects = objects
        self._job_id = job_id
        self._ignores_case = ignore_case
        self._wanted = self._folded(wanted)
        # A character has at most four bytes, and folding makes no text shorter.
        self._most_bytes_of_match = 4 * len(self._wanted)
        self._epoch = epoch
        self._texts = JobLogText.key(job_id=job_id)
        self._own = fingerprint({"job": job_id, "text": wanted, "run": epoch, "ignore_case": ignore_case})

    def __iter__(self) -> Iterator[FoundLine]:
        cursor: str | None = None
        while True:
            page = self.page(cursor, 1_000)
            yield from page.items
            cursor = page.cursor
            if cursor is None:
                return

    def page(self, cursor: str | None = None, limit: int = 100) -> FoundPage:
        """Return up to `limit` lines after the cursor, oldest first; fewer if much was searched for them."""
        position = None if cursor is None else _position_in(read_cursor(cursor, self._own))
        if isinstance(position, datetime):
            return self._search_lines(position, limit)
        if position is None and self._epoch is None and self._store.query(self._texts).first() is None:
            return self._search_lines(None, limit)
        return self._search_texts(position or _Position(self._epoch or 0), limit)

    # --- full texts -------------------------------------------------------------------------------------------------

    def _search_texts(self, begin: _Position, limit: int) -> FoundPage:
        found: list[FoundLine] = []
        examined = 0
        last = _LAST_EPOCH if self._epoch is None else self._epoch
        runs = self._store.query(self._texts, between=(begin.epoch, last))
        for text in runs.take(-(-MOST_BYTES // _BYTES_OF_A_RUN)):
            position = begin if begin.epoch == text.lease_epoch else _Position(text.lease_epoch)
            while lines := self._read_lines(text, position.offset):
                position = self._search(lines, position, found, limit)
                examined += len(lines)
                if len(found) == limit or examined >= MOST_BYTES:
                    return FoundPage(found, write_cursor(vars(position), self._own))
            examined += _BYTES_OF_A_RUN
            if examined >= MOST_BYTES and text.lease_epoch < last:
                return FoundPage(found, write_cursor(vars(_Position(text.lease_epoch + 1)), self._own))
        return FoundPage(found, None)

    def _search(self, lines: bytes, position: _Position, found: list[FoundLine], limit: int) -> _Position:
        """Add the lines that contain the text, up to the limit; return the position after what was searched."""
        if self._wanted not in self._folded(lines.decode("utf-8", "replace")):
            done = len(lines)
            if done == CHUNK_SIZE and not lines.endswith(b"\n"):  # part of a line, whose end may start a match
                done -= self._most_bytes_of_match
            return _Position(position.epoch, position.offset + done, position.number + lines.count(b"\n"))
        start, number = 0, position.number
        while start < len(lines) and len(found) < limit:
            end = lines.find(b"\n", start) + 1 or len(lines)
            line = lines[start:end].decode("utf-8", "replace").removesuffix("\n")
            if self._wanted in self._folded(line):
                found.append(FoundLine(position.epoch, number, line))
            number += lines.endswith(b"\n", start, end)
            start = end
        return _Position(position.epoch, position.offset + start, number)

    def _read_lines(self, text: JobLogText, offset: int) -> bytes:
        """Return as many whole lines as fit, or part of a longer one; nothing at the end."""
        data = self._read(text, offset)
        return data[: data.rfind(b"\n") + 1] or data if len(data) == CHUNK_SIZE else data

    def _read(self, text: JobLogText, offset: int) -> bytes:
        if text.sha256 is None:
            if data := self._read_parts(text.lease_epoch, offset):
                return data
            # The parts may have been merged meanwhile into an object that starts with the same bytes.
            text = self._store.get(JobLogText.key(job_id=self._job_id, lease_epoch=text.lease_epoch))
        return self._objects.get_range(text.s3_key, offset, CHUNK_SIZE) if text.sha256 is not None else b""

    def _read_parts(self, epoch: int, offset: int) -> bytes:
        """Return what a running run has uploaded, from an offset on."""
        data = b""
        while len(data) < CHUNK_SIZE:
            number, within = divmod(offset + len(data), PART_BYTES)
            try:
                part = self._objects.get_range(log_part_key(self._job_id, epoch, number), within, PART_BYTES - within)
            except ObjectNotFoundError:
                break
            data += part
            if within + len(part) < PART_BYTES:  # the last one, which grows
                break
        return data[:CHUNK_SIZE]

    # --- lines of the table -----------------------------------------------------------------------------------------

    def _search_lines(self, after: datetime | None, limit: int) -> FoundPage:
        found: list[FoundLine] = []
        examined = 0
        lines = self._store.query(JobLog.key(job_id=self._job_id), after=after, limit=MOST_LINES)
        for count, line in enumerate(lines, start=1):
            text = line.message if line.exception is None else f"{line.message}\n{line.exception}"
            if self._wanted in self._folded(text):
                found.append(FoundLine(None, None, text, line.timestamp, line.log_level))
            examined += len(text)
            if len(found) == limit or examined >= MOST_BYTES or count == MOST_LINES:
                return FoundPage(found, write_cursor({"behind": format_timestamp(line.timestamp)}, self._own))
        return FoundPage(found, None)

    def _folded(self, text: str) -> str:
        return text.casefold() if self._ignores_case else text


def _position_in(cursor: dict[str, Any]) -> _Position | datetime:
    """Return where a cursor leads: into a text, or after a line of the table."""
    try:
        if "behind" in cursor:
            return datetime.fromisoformat(cursor["behind"])
        return _Position(int(cursor["epoch"]), int(cursor["offset"]), int(cursor["number"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CursorError("invalid log cursor; start again without one") from error
