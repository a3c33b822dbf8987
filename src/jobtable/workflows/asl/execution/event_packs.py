"""The events of executions in items: those of one change are packed when they are written, and read one by one.

An item that is part of a change's transaction is valid for ever. One that was written ahead of a large change may
belong to a change that was never made: another item before it then has the events with its ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, cast

from jobtable.errors import CursorError
from jobtable.model import Selection
from jobtable.store import Store
from jobtable.store.queries import Page, Paged
from jobtable.workflows.asl.entities import Execution, ExecutionEvent
from jobtable.workflows.asl.interpreter.strand import dump
from jobtable.workflows.asl.run import Event

_MOST_BYTES = 60_000
"""Of a pack: an item has 400 KB, and a transaction 4 MB."""
_EVENT_BYTES = 60
"""The size of an event without its details."""
_MICROSECOND = timedelta(microseconds=1)
_DENSE = 8
"""Events are read as a range if at least every eighth of it is wanted."""


def pack_events(execution: Execution, events: Iterable[Event]) -> list[ExecutionEvent]:
    """Return the items of the events of a change."""
    packs: list[list[Event]] = []
    size = 0
    for event in events:
        added = size_of(event)
        if not packs or size + added > _MOST_BYTES:
            packs.append([])
            size = 0
        packs[-1].append(event)
        size += added
    return [_item(execution, first, more) for first, *more in packs]


def size_of(event: Event) -> int:
    """Return about how many bytes an event has."""
    return _EVENT_BYTES + len(dump(event.details).encode(errors="surrogatepass"))


def event_item(execution: Execution, event: Event, *, is_ahead: bool = False) -> ExecutionEvent:
    """Return the item of a single event."""
    item = _item(execution, event, [])
    return item.model_copy(update={"is_ahead": True}) if is_ahead else item


def _item(execution: Execution, first: Event, more: Sequence[Event]) -> ExecutionEvent:
    following = [[each.type, each.previous_id, (each.at - first.at) // _MICROSECOND, each.details] for each in more]
    return ExecutionEvent(
        machine=execution.machine,
        name=execution.name,
        event_id=first.event_id,
        previous_id=first.previous_id,
        type=first.type,
        at=first.at,
        details=dict(first.details) or None,
        more=following or None,
    )


# --- reading ----------------------------------------------------------------------------------------------------------


class History(Paged[ExecutionEvent]):
    """The events of an execution, lazily: each iteration reads them again."""

    def __init__(self, store: Store, machine: str, name: str, last: int, *, newest_first: bool = False) -> None:
        self._store = store
        self._machine = machine
        self._name = name
        self._last = last
        self._newest_first = newest_first

    def __iter__(self) -> Iterator[ExecutionEvent]:
        return self.between(1, self._last)

    def between(self, first: int, last: int) -> Iterator[ExecutionEvent]:
        """Yield the events from one id to another, both included."""
        if last < first:
            return
        yield from self._descending(first, last) if self._newest_first else self._ascending(first, last)

    def page(
        self, cursor: str | None = None, size: int = 50, *, most_examined: int | None = None
    ) -> Page[ExecutionEvent]:
        """Return so many events after a cursor; fewer only on the last page."""
        start = self._read_cursor(cursor)
        # The ids have no gap, so a page is a range of them.
        newest_first, oldest_first = (max(1, start - size + 1), start), (start, min(self._last, start + size - 1))
        events = list(self.between(*(newest_first if self._newest_first else oldest_first)))
        following = 0 if not events else events[-1].event_id + (-1 if self._newest_first else 1)
        is_over = len(events) < size or not 1 <= following <= self._last
        return Page(events, None if is_over else f"{self._fingerprint()}.{following}")

    def pick(self, ids: Sequence[int]) -> list[ExecutionEvent]:
        """Return the events with these ids, in their order."""
        wanted = {each for each in ids if 1 <= each <= self._last}
        if wanted and max(wanted) - min(wanted) < _DENSE * len(wanted):
            found = {each.event_id: each for each in self._ascending(min(wanted), max(wanted))}
        else:
            found = {}
            for each in sorted(wanted):
                if each not in found:
                    found |= {event.event_id: event for event in _expanded(self._covering(each))}
        return [found[each] for each in ids if each in found]

    def _ascending(self, first: int, last: int) -> Iterator[ExecutionEvent]:
        start = following = self._start_of(first)
        for item in self._store.query(self._key(), between=(start, max(last, start))):
            if item.event_id < following:
                continue  # it was written ahead of a change that was not made
            for event in _expanded(item):
                following = event.event_id + 1
                if first <= event.event_id <= last:
                    yield event

    def _start_of(self, first: int) -> int:
        """Return the id of the item that has an event."""
        covering = None if first == 1 else self._covering(first)
        return first if covering is None else covering.event_id

    def _descending(self, first: int, last: int) -> Iterator[ExecutionEvent]:
        """Yield the events of a range, the newest first."""
        for event in self._packs_descending(self._start_of(first), last):
            if event.event_id < first:
                return
            yield event

    def _packs_descending(self, start: int, last: int) -> Iterator[ExecutionEvent]:
        ahead: list[ExecutionEvent] = []
        for item in self._store.query(self._key(), between=(start, max(last, start)), newest_first=True):
            if item.is_ahead:
                ahead.append(item)
                continue
            events = list(_expanded(item))
            yield from (each for each in ahead if each.event_id > events[-1].event_id)
            ahead = []
            yield from (each for each in reversed(events) if each.event_id <= last)
        yield from ahead

    def _covering(self, event_id: int) -> ExecutionEvent | None:
        """Return the item that has an event, or the last one before it."""
        before = self._store.query(self._key(), between=(1, event_id), newest_first=True)
        nearest = before.first()
        if nearest is None or not nearest.is_ahead:
            return nearest
        made = next((item for item in before if not item.is_ahead), None)
        covers = made is not None and made.event_id + len(made.more or ()) >= event_id
        return made if covers else nearest

    def _key(self) -> Selection[ExecutionEvent]:
        return ExecutionEvent.key(machine=self._machine, name=self._name)

    def _fingerprint(self) -> str:
        what = f"{self._machine}\n{self._name}\n{self._newest_first}"
        return hashlib.sha256(what.encode()).hexdigest()[:16]

    def _read_cursor(self, cursor: str | None) -> int:
        if cursor is None:
            return self._last if self._newest_first else 1
        fingerprint, _, number = cursor.partition(".")
        if fingerprint != self._fingerprint() or not (number.isascii() and number.isdigit() and len(number) < 8):
            raise CursorError("invalid cursor of a history; start again without one")
        return int(number)


def _expanded(item: ExecutionEvent | None) -> Iterator[ExecutionEvent]:
    """Yield the events of an item."""
    if item is None:
        return
    yield item.model_copy(update={"more": None})
    following = cast("list[Any]", item.more or [])
    for number, (kind, previous_id, after, details) in enumerate(following, 1):
        changes = {
            "event_id": item.event_id + number,
            "previous_id": previous_id,
            "type": kind,
            "details": details or None,
        }
        yield item.model_copy(update={**changes, "at": item.at + after * _MICROSECOND, "more": None})
