"""What counts and pages tell is what iterating gives, on every backend."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import CursorError, ValueRefusedError
from jobtable.model import Attr, Entity, Index, Key, Table
from jobtable.store import Store

table = Table("shelves", pk="PK", sk="SK", type_attribute="TYPE", indexes=[Index("ByType", "TYPE")])
bare_table = Table("stones", pk="quarry", sk="number")


class Book(Entity, table=table, type="BOOK"):
    """A book on a shelf."""

    key = Key("SHELF#{shelf}", "BOOK#{number:03d}")

    shelf: str
    number: int
    pages: Attr[int]


class Stone(Entity, table=bare_table):
    """An item of a table without types."""

    quarry: str
    number: int


SHELF = Book.key(shelf="a")


@pytest.fixture
def store(each_store: Store) -> Store:
    each_store.tables.create(table, bare_table)
    each_store.batch_put([Book(shelf="a", number=number, pages=100 * number) for number in range(1, 6)])
    foreign = {"PK": {"S": "SHELF#a"}, "SK": {"S": "BOOK#x"}, "TYPE": {"S": "BOOKEND"}, "pages": {"N": "500"}}
    each_store.backend.execute("PutItem", {"TableName": each_store.table_name(table), "Item": foreign})
    return each_store


def test_items_of_other_types_are_not_counted(store: Store) -> None:
    assert len(list(store.query(SHELF))) == store.count(SHELF) == 5
    assert store.count(SHELF, where=Book.pages >= 300) == 3
    assert store.count(SHELF, where=(Book.pages == 100) | (Book.pages == 500)) == 2
    assert store.count(SHELF, after=2) == 3
    assert store.count(Book.by_type()) == 5
    assert store.collection(SHELF).count() == 6


def test_an_item_without_a_type_counts_where_its_key_is_the_entitys(store: Store) -> None:
    item = Book.__schema__.codec.encode(Book(shelf="a", number=6, pages=600))
    del item["TYPE"]
    store.backend.execute("PutItem", {"TableName": store.table_name(table), "Item": item})
    assert len(list(store.query(SHELF))) == store.count(SHELF) == 6


def test_bounds_find_items_without_a_type_too(store: Store) -> None:
    untyped = {"PK": {"S": "SHELF#a"}, "SK": {"S": "BOOK#006"}, "pages": {"N": "600"}}
    store.backend.execute("PutItem", {"TableName": store.table_name(table), "Item": untyped})
    assert [book.number for book in store.query(SHELF, after=4)] == [5, 6]
    assert [book.number for book in store.query(SHELF, between=(6, 9))] == [6]
    assert store.count(SHELF, after=4) == 2


def test_a_page_within_bounds_reads_no_more_than_it_gives(store: Store) -> None:
    long = "b" * 800
    store.batch_put([Book(shelf=long, number=number, pages=1) for number in range(100, 300)])
    with store.capacity.measure() as spent:
        assert len(store.query(Book.key(shelf=long), after=150).page(size=3).items) == 3
        assert store.query(Book.key(shelf=long), before=250).first() is not None
    assert spent["Book.key"].read <= 2


def test_what_has_no_types_is_counted_as_it_is(store: Store) -> None:
    store.batch_put([Stone(quarry="q", number=number) for number in range(3)])
    assert store.count(Stone.key(quarry="q")) == 3
    assert store.query(Stone.key(quarry="q"), limit=2).count() == 2


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 6, 50])
def test_a_limit_holds_for_counts_and_for_all_pages_together(store: Store, limit: int) -> None:
    for where in (None, Book.pages > 0):
        query = store.query(SHELF, limit=limit, where=where)
        found = list(query)
        assert len(found) == query.count() == min(limit, 5)
        assert query.page().items == found
        assert query.page().cursor is None
        paged, cursor = list[Book](), None
        while True:
            page = query.page(cursor, size=2)
            paged += page.items
            cursor = page.cursor
            if cursor is None:
                break
            assert len(page.items) == 2
        assert paged == found


@pytest.mark.parametrize("most", [2**31 - 1, sys.maxsize])
def test_a_limit_may_be_larger_than_dynamodb_can_count(store: Store, most: int) -> None:
    assert len(list(store.query(SHELF, limit=most))) == 5
    assert len(list(store.query(SHELF).take(most))) == 5
    assert len(store.query(SHELF).page(size=most).items) == 5
    assert store.query(SHELF, limit=most).count() == 5


def test_taking_some_reads_no_more_than_these(store: Store) -> None:
    store.batch_put([Book(shelf="wide", number=number, pages=1) for number in range(300)])
    wide = store.query(Book.key(shelf="wide"))
    with store.capacity.measure() as spent:
        assert [each.number for each in wide.take(3)] == [0, 1, 2]
    assert sum(units.read for units in spent.values()) == 1
    assert len(list(wide.take(400))) == 300
    assert len(list(store.query(Book.key(shelf="wide"), limit=2).take(3))) == 2
    for count in (0, -1):
        with pytest.raises(ValueRefusedError, match=f"count must be at least 1, not {count}"):
            store.query(Book.key(shelf="wide"), where=Book.pages == 1).take(count)


def test_rare_matches_are_looked_for_by_few_requests(store: Store) -> None:
    store.batch_put([Book(shelf="deep", number=number, pages=number) for number in range(1000)])
    rare = store.query(Book.key(shelf="deep"), where=Book.pages >= 998)
    with store.capacity.measure() as spent:
        assert [each.number for each in rare.page(size=5).items] == [998, 999]
    assert sum(units.calls for units in spent.values()) == 4


@pytest.mark.parametrize("limit", [None, 3])
def test_a_page_ends_where_enough_was_looked_at(store: Store, limit: int | None) -> None:
    store.batch_put([Book(shelf="long", number=number, pages=number % 90) for number in range(300)])
    query = store.query(Book.key(shelf="long"), where=Book.pages == 80, limit=limit)
    found, cursor, sizes = list[Book](), None, list[int]()
    while True:
        page = query.page(cursor, size=50, most_examined=100)
        found += page.items
        sizes.append(len(page.items))
        cursor = page.cursor
        if cursor is None:
            break
    assert found == list(query)
    assert sizes == ([1, 1, 1] if limit else [1, 1, 1, 0])
    assert [each.number for each in query.page(size=50).items] == [80, 170, 260]


def test_a_cursor_fits_only_a_query_with_the_same_limit(store: Store) -> None:
    cursor = store.query(SHELF, limit=4).page(size=2).cursor
    assert cursor is not None
    for other in (store.query(SHELF), store.query(SHELF, limit=3)):
        with pytest.raises(CursorError, match="another query"):
            other.page(cursor)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "3", "{}", '{"behind":{}}', '{"behind":3,"left":2}', '{"behind":{},"left":"2"}', "[" * 10**5],
)
def test_a_cursor_that_is_made_up_is_refused(content: str) -> None:
    """Also where whoever made it knows how cursors are bound to their query."""
    with Store(EmbeddedBackend(None)) as store:
        query = store.query(SHELF, limit=4)
        check = hashlib.sha256(query._fingerprint + content.encode()).digest()[:12]
        cursor = base64.urlsafe_b64encode(check + content.encode()).decode().rstrip("=")
        with pytest.raises(CursorError, match="start again without one"):
            query.page(cursor)


def test_a_cursor_of_a_collection_is_good_in_other_processes() -> None:
    """Each of them has an order of its own for what is in a set."""
    program = """
from jobtable.embedded import EmbeddedBackend
from jobtable.model import Entity, Index, Key, Table
from jobtable.store import Store

table = Table("tiles", pk="tile_id", indexes=[Index("ByPlace", ("north", "east", "layer"), "tile_id")])

class Tile(Entity, table=table):
    by_place = Key(index="ByPlace")
    tile_id: str
    north: int
    east: int
    layer: str

with Store(EmbeddedBackend(None)) as store:
    store.tables.create(table)
    store.batch_put([Tile(tile_id=text, north=1, east=2, layer="x") for text in "ab"])
    print(store.collection(Tile.by_place(north=1, east=2, layer="x")).page(size=1).cursor)
"""
    cursors = set()
    for seed in "123":
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        cursors.add(done.stdout)
    assert len(cursors) == 1


def test_one_range_is_given_not_two(store: Store) -> None:
    store.put(Stone(quarry="q", number=4))
    for selection in (SHELF, Stone.key(quarry="q")):
        for after, before in ((4, None), (None, 4), (3, 5)):
            with pytest.raises(ValueRefusedError, match="use either between, or after and before"):
                store.query(selection, between=(3, 5), after=after, before=before)
