"""Histories are read as they were recorded, however their events were stored: alone, packed, or ahead of a change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import CursorError
from jobtable.store import Store
from jobtable.workflows.asl.entities import Execution, ExecutionEvent
from jobtable.workflows.asl.execution.event_packs import History, event_item, pack_events
from jobtable.workflows.asl.run import Event
from jobtable.workflows.table_and_queues import workflows

START = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
EXECUTION = Execution(
    machine="m",
    name="n",
    job_id="job",
    definition_sha256="",
    region="us-east-1",
    account="000000000000",
    input="{}",
    started_at=START,
)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["packed", "one by one", "ahead", "abandoned"]),
        st.integers(1, 7),
        st.integers(0, 7),
    ),
    min_size=1,
    max_size=8,
)
"""How a change stored its events, how many it has, and how many of them the last item has if others were ahead."""


@pytest.fixture(scope="module")
def tables() -> Iterator[Store]:
    with Store(EmbeddedBackend(None, durability="normal")) as store:
        store.tables.create(workflows)
        yield store


def events_of(first: int, count: int, size: int = 3, kind: str = "kept") -> list[Event]:
    at = START + timedelta(microseconds=first * 1_237)
    return [
        Event(
            number,
            number - 1,
            f"{kind}StateEntered",
            at + timedelta(microseconds=7 * (number - first)),
            {"stateEnteredEventDetails": {"input": "x" * size}} if number % 3 else {},
        )
        for number in range(first, first + count)
    ]


def record(store: Store, changes: list[tuple[str, int, int]], size: int = 3) -> list[Event]:
    """Store changes as the engine does, and return the events that were made."""
    store.batch_delete(store.query(ExecutionEvent.key(machine="m", name="n")))
    made: list[Event] = []
    for how, count, packed in changes:
        events = events_of(len(made) + 1, count, size, kind="kept" if how != "abandoned" else "lost")
        split = max(count - packed, 0)
        if how in ("ahead", "abandoned"):
            store.batch_put(event_item(EXECUTION, each, is_ahead=True) for each in events[:split])
        if how == "one by one":
            store.batch_put(event_item(EXECUTION, each) for each in events)
        elif how != "abandoned":
            store.batch_put(pack_events(EXECUTION, events if how == "packed" else events[split:]))
        made += [] if how == "abandoned" else events
    return made


def plain(found: Any) -> list[Event]:
    return [Event(each.event_id, each.previous_id, each.type, each.at, each.details or {}) for each in found]


@settings(max_examples=40)
@given(changes=CHANGES, size=st.integers(1, 4))
def test_a_history_is_read_as_it_was_recorded(tables: Store, changes: list[tuple[str, int, int]], size: int) -> None:
    made = record(tables, changes)
    for newest_first in (False, True):
        ordered = made[::-1] if newest_first else made
        history = History(tables, "m", "n", len(made), newest_first=newest_first)
        assert plain(history) == ordered
        paged: list[Event] = []
        cursor = None
        while True:
            page = history.page(cursor, size)
            paged += plain(page.items)
            cursor = page.cursor
            if cursor is None:
                break
            assert len(page.items) == size
        assert paged == ordered
    ids = list(range(1, len(made) + 1))
    for some in (ids, ids[::-1], ids[::2], ids[-1:], ids[:1], [*ids[:1], *ids[-1:]], [0, len(made) + 1]):
        assert plain(history.pick(some)) == [made[each - 1] for each in some if 1 <= each <= len(made)]
    for first in ids:
        part = History(tables, "m", "n", len(made)).between(first, len(made))
        assert plain(part) == made[first - 1 :]


def test_a_pack_is_bounded(tables: Store) -> None:
    made = record(tables, [("packed", 40, 0)], size=20_000)
    items = list(tables.query(ExecutionEvent.key(machine="m", name="n")))
    assert 1 < len(items) < 20
    assert all(len(json.dumps([each.details, each.more])) < 64_000 for each in items)
    assert plain(History(tables, "m", "n", 40)) == made


def test_a_cursor_belongs_to_its_history(tables: Store) -> None:
    record(tables, [("packed", 5, 0)])
    history = History(tables, "m", "n", 5)
    cursor = history.page(None, 2).cursor
    assert cursor is not None
    assert [each.event_id for each in history.page(cursor, 2).items] == [3, 4]
    for other in (History(tables, "m", "n", 5, newest_first=True), History(tables, "m", "other", 5)):
        with pytest.raises(CursorError):
            other.page(cursor, 2)
    for forged in ("", "abc", f"{cursor}x", cursor.partition(".")[0]):
        with pytest.raises(CursorError):
            history.page(forged, 2)
