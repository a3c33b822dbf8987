"""What counts tell is what iterating gives, on every backend."""

from __future__ import annotations

import pytest

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


def test_what_has_no_types_is_counted_as_it_is(store: Store) -> None:
    store.batch_put([Stone(quarry="q", number=number) for number in range(3)])
    assert store.count(Stone.key(quarry="q")) == 3
