"""Queries over a part of a partition, on every backend."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.samples import Execution, Job, Line, Word, albums, main

from jobtable.errors import ValueRefusedError
from jobtable.model import Entity, Key, Table
from jobtable.store import Store

NOON = datetime(2025, 11, 1, 12, tzinfo=UTC)
IMAGE, OTHER = "f84d63ed-3b42-448e-9a1d-3474137f4e80", "00000000-3b42-448e-9a1d-3474137f4e80"


shelf = Table("shelf", pk="PK", sk="SK")


class Page(Entity, table=shelf):
    """Something in order under a name that may be as long as a key."""

    key = Key("PAGES", "NAME#{name}#{number:03d}#{mark}")

    name: str
    number: int
    mark: str


@pytest.fixture
def store(each_store: Store) -> Store:
    each_store.tables.create(main)
    for image in (IMAGE, OTHER):
        for line in range(4):
            each_store.put(Line(image_id=image, line_id=line, text="x", confidence=1))
            each_store.put(Word(image_id=image, line_id=line, word_id=0, confidence=1))
    return each_store


def test_a_collection_can_end_and_begin_inside_a_partition(store: Store) -> None:
    first, last = Line.key(image_id=IMAGE, line_id=1), Word.key(image_id=IMAGE, line_id=2)
    found = [(type(each).__name__, each.model_dump()["line_id"]) for each in store.collection(first, until=last)]
    assert found == [("Line", 1), ("Word", 1), ("Line", 2), ("Word", 2)]
    one = Line.key(image_id=IMAGE, line_id=3)
    assert [type(each).__name__ for each in store.collection(one, until=one)] == ["Line"]


def test_the_ends_of_a_collection_are_of_one_partition_and_in_order(store: Store) -> None:
    first = Line.key(image_id=IMAGE, line_id=2)
    with pytest.raises(ValueRefusedError, match="not in the same partition"):
        store.collection(first, until=Line.key(image_id=OTHER, line_id=3))
    with pytest.raises(ValueRefusedError, match="sorts after"):
        store.collection(first, until=Line.key(image_id=IMAGE, line_id=1))
    with pytest.raises(ValueRefusedError, match="one index"):
        store.collection(first, until=Job.by_type())


@pytest.mark.parametrize("length", [981, 1000, 1009, 1010, 1011, 1012])
def test_a_range_of_keys_that_are_as_long_as_keys_may_be(long_store: Store, length: int) -> None:
    name = "x" * length
    long_store.batch_put([Page(name=name, number=number, mark=mark) for number in range(4) for mark in ("a", "é")])
    pages = Page.key(name=name)
    assert [page.number for page in long_store.query(pages, after=1)] == [2, 2, 3, 3]
    assert [page.number for page in long_store.query(pages, before=2)] == [0, 0, 1, 1]
    assert [page.number for page in long_store.query(pages, between=(1, 2))] == [1, 1, 2, 2]
    first, last = Page.key(name=name, number=1), Page.key(name=name, number=2)
    assert len(list(long_store.collection(first, until=last))) == 4


@pytest.fixture
def long_store(each_store: Store) -> Store:
    each_store.tables.create(shelf)
    return each_store


def test_a_range_of_an_index_that_names_the_type(each_store: Store) -> None:
    each_store.tables.create(albums)
    for minute in range(5):
        each_store.put(
            Execution(
                execution_id=f"e{minute}",
                workflow_type="step-functions",
                status="running",
                created_at=NOON + timedelta(minutes=minute),
            )
        )
    running = Execution.by_status(workflow_type="step-functions", status="running")
    between = (NOON + timedelta(minutes=1), NOON + timedelta(minutes=3))
    assert [each.execution_id for each in each_store.query(running, between=between)] == ["e1", "e2", "e3"]
    assert [each.execution_id for each in each_store.query(running, after=between[1])] == ["e4"]
