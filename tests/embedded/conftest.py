"""The embedded engine alone, and side by side with DynamoDB Local."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobtable.embedded import EmbeddedBackend
from tests.embedded.differential.peers import LocalPeer
from tests.embedded.side_by_side import TABLES, N, Pair, S, clear, prepare


@pytest.fixture
def backend() -> Iterator[EmbeddedBackend]:
    """The engine in memory, with the tables of side_by_side, empty."""
    made = EmbeddedBackend(None)
    for table in TABLES:
        made.execute("CreateTable", table.definition())
    yield made
    made.close()


@pytest.fixture
def pair(dynamodb_local_url: str) -> Iterator[Pair]:
    """Both, with empty tables of this test alone."""
    local = LocalPeer(dynamodb_local_url)
    clear(local)
    made = EmbeddedBackend(None)
    yield prepare(made, local, {})
    made.close()
    clear(local)
    local.close()


@pytest.fixture(scope="module")
def filled_pair(dynamodb_local_url: str) -> Iterator[Pair]:
    """Both, with a few items, for requests that change nothing."""
    rows = [
        {"pk": S("p"), "sk": S(str(i)), "g1": S("g"), "g2": N(i), "l1": S(f"l{i}"), "a": S("A"), "c": S("C")}
        for i in range(5)
    ]
    local = LocalPeer(dynamodb_local_url)
    clear(local)
    made = EmbeddedBackend(None)
    yield prepare(made, local, {"main": rows, "hash": [{"pk": S(str(i)), "a": S("A")} for i in range(5)]})
    made.close()
    clear(local)
    local.close()
