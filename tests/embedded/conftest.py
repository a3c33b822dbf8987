"""The embedded engine alone, and side by side with DynamoDB Local."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.embedded.large_tables import nothing_by_itself
from tests.embedded.side_by_side import TABLES, LocalTables, Pair

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.storage import table_changes
from jobtable.testing import FakeClock


@pytest.fixture
def engine() -> Iterator[EmbeddedBackend]:
    """The engine in memory, without tables."""
    made = EmbeddedBackend(None)
    yield made
    made.close()


@pytest.fixture
def backend(engine: EmbeddedBackend) -> EmbeddedBackend:
    """The same with the tables of side_by_side, empty."""
    for table in TABLES:
        engine.execute("CreateTable", table.definition())
    return engine


@pytest.fixture(scope="session")
def local_tables(dynamodb_local_url: str) -> Iterator[LocalTables]:
    tables = LocalTables(dynamodb_local_url)
    yield tables
    tables.close()


@pytest.fixture
def pair(local_tables: LocalTables) -> Pair:
    """The engine and DynamoDB Local, with empty tables of this test alone."""
    return local_tables.empty()


@pytest.fixture
def filled_pair(local_tables: LocalTables) -> Pair:
    """Both, with a few items, for requests that change nothing."""
    return local_tables.filled()


@pytest.fixture
def clock() -> FakeClock:
    """A clock that goes on when the test says so."""
    return FakeClock()


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is too large, and little is filled, restored or copied at a time."""
    monkeypatch.setattr(table_changes, "FILLED_AT_ONCE", 5)
    monkeypatch.setattr(table_changes, "_ITEMS_A_STEP", 3)


@pytest.fixture
def by_hand() -> Iterator[None]:
    """Nothing is filled, restored or copied but by the test."""
    with nothing_by_itself():
        yield
