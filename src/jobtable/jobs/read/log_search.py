"""Finding a text in the whole log of a job, a bounded part of it at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobtable.errors import CursorError, ObjectNotFoundError, ValueRefusedError
from jobtable.jobs.report.log_text import PART_BYTES
from jobtable.jobs.stored.entities import JobLog, JobLogText
from jobtable.jobs.stored.fields import LogLevel
from jobtable.jobs.stored.locations import log_part_key
from jobtable.model.fields import format_timestamp
from jobtable.objects import ObjectStore
from jobtable.objects.store import CHUNK_SIZE
from jobtable.store import Store
from jobtable.store.cursors import fingerprint, read_cursor, write_cursor

MOST_BYTES = 8 << 20
"""How much of a log is searched for one page; after that a cursor leads on."""
MOST_LINES = 2_000
"""How many lines of the table are searched for one page."""
LONGEST_WANTED = 1_000
"""How many characters the text that is looked for may have."""
_BYTES_OF_A_RUN = 64 << 10
"""What each run counts for besides its text, so that a page does not search too many short ones."""
_LAST_EPOCH = 99_999


@dataclass(frozen=True)
class FoundLine:
    """A line of a log: of the full text of a run, with its number from 1, or, with its time, of the table."""

    epoch: int | None
    number: int | None
    text: str
    timestamp: datetime | None = None
    log_level: LogLevel | None = None


@dataclass(frozen=True)
class FoundPage:
    """Some lines, and the cursor to look on from: also where matches are rare and there are none yet."""

    items: list[FoundLine]
    cursor: str | None


@dataclass(frozen=True)
class _Place:
    """A place in a run's text: this many bytes are before it, and the line with this number comes next."""

    epoch: int
    offset: int = 0
    number: int = 1


class LogSearch:
    """A text that is looked for: in the full texts of all runs, or of one; of a job without any, in its lines."""

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
            raise ValueRefusedError(f"no text is looked for in the log of job {job_id}: give one")
        if len(wanted) > LONGEST_WANTED:
            raise ValueRefusedError(f"at most {LONGEST_WANTED} characters are looked for in a log, not {len(wanted)}")
        self._store = store
        self._objects = objects
        self._job_id = job_id
        self._ignores_case = ignore_case
        self._wanted = self._folded(wanted)
        # A character has four bytes at most, and folding makes no text shorter.
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
        """Up to `limit` lines behind the cursor, oldest first; fewer where much was looked through for them."""
        place = None if cursor is None else _place_in(read_cursor(cursor, self._own))
        if isinstance(place, datetime):
            return self._look_through_lines(place, limit)
        if place is None and self._epoch is None and self._store.query(self._texts).first() is None:
            return self._look_through_lines(None, limit)
        return self._look_through_texts(place or _Place(self._epoch or 0), limit)

    # --- full texts -------------------------------------------------------------------------------------------------

    def _look_through_texts(self, begin: _Place, limit: int) -> FoundPage:
        found: list[FoundLine] = []
        examined = 0
        last = _LAST_EPOCH if self._epoch is None else self._epoch
        runs = self._store.query(self._texts, between=(begin.epoch, last))
        for text in runs.take(-(-MOST_BYTES // _BYTES_OF_A_RUN)):
            place = begin if begin.epoch == text.lease_epoch else _Place(text.lease_epoch)
            while lines := self._read_lines(text, place.offset):
                place = self._look_at(lines, place, found, limit)
                examined += len(lines)
                if len(found) == limit or examined >= MOST_BYTES:
                    return FoundPage(found, write_cursor(vars(place), self._own))
            examined += _BYTES_OF_A_RUN
            if examined >= MOST_BYTES and text.lease_epoch < last:
                return FoundPage(found, write_cursor(vars(_Place(text.lease_epoch + 1)), self._own))
        return FoundPage(found, None)

    def _look_at(self, lines: bytes, place: _Place, found: list[FoundLine], limit: int) -> _Place:
        """Add the lines that have the text, up to the limit; gives the place behind what was looked at."""
        if self._wanted not in self._folded(lines.decode("utf-8", "replace")):
            done = len(lines)
            if done == CHUNK_SIZE and not lines.endswith(b"\n"):  # a piece of a line, in whose end a match may begin
                done -= self._most_bytes_of_match
            return _Place(place.epoch, place.offset + done, place.number + lines.count(b"\n"))
        start, number = 0, place.number
        while start < len(lines) and len(found) < limit:
            end = lines.find(b"\n", start) + 1 or len(lines)
            line = lines[start:end].decode("utf-8", "replace").removesuffix("\n")
            if self._wanted in self._folded(line):
                found.append(FoundLine(place.epoch, number, line))
            number += lines.endswith(b"\n", start, end)
            start = end
        return _Place(place.epoch, place.offset + start, number)

    def _read_lines(self, text: JobLogText, offset: int) -> bytes:
        """Whole lines from a place on, as many as fit; of one that is longer, a piece. None at the end."""
        data = self._read(text, offset)
        return data[: data.rfind(b"\n") + 1] or data if len(data) == CHUNK_SIZE else data

    def _read(self, text: JobLogText, offset: int) -> bytes:
        if text.sha256 is None:
            if data := self._read_parts(text.lease_epoch, offset):
                return data
            # The parts may have become one object meanwhile, which begins with the same bytes.
            text = self._store.get(JobLogText.key(job_id=self._job_id, lease_epoch=text.lease_epoch))
        return self._objects.get_range(text.s3_key, offset, CHUNK_SIZE) if text.sha256 is not None else b""

    def _read_parts(self, epoch: int, offset: int) -> bytes:
        """What a run that goes on has uploaded, from a place on."""
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

    def _look_through_lines(self, behind: datetime | None, limit: int) -> FoundPage:
        found: list[FoundLine] = []
        examined = 0
        lines = self._store.query(JobLog.key(job_id=self._job_id), after=behind, limit=MOST_LINES)
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


def _place_in(told: dict[str, Any]) -> _Place | datetime:
    """Where a cursor leads: into a text, or behind a line of the table."""
    try:
        if "behind" in told:
            return datetime.fromisoformat(told["behind"])
        return _Place(int(told["epoch"]), int(told["offset"]), int(told["number"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CursorError("this is no cursor of a log; start again without one") from error
