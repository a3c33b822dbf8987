"""Tables that are deployed already follow their declaration: what is new in it is added, and items get its keys."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jobtable.errors import RequestRefused, TableNotFound
from jobtable.model import Entity, Index, Key, Table
from jobtable.store import Backend, Request, Response, Store

before = Table("runs", pk="PK", type_attribute="TYPE", indexes=[Index("GSI1", "GSI1PK")])


class OldRun(Entity, table=before, type="RUN"):
    """A run as it was declared at first."""

    key = Key("RUN#{name}")
    by_owner = Key("OWNER#{owner}", index="GSI1")

    name: str
    owner: str
    score: int | None = None


after = Table(
    "runs",
    pk="PK",
    type_attribute="TYPE",
    ttl="expires",
    stream=True,
    indexes=[Index("GSI1", "GSI1PK"), Index("GSI2", "GSI2PK", "GSI2SK"), Index("GSITYPE", "TYPE")],
)
by_name = Table(
    "runs", pk="PK", type_attribute="TYPE", indexes=[Index("GSI1", "GSI1PK"), Index("by-owner", "owner", "name")]
)


class NamedRun(Entity, table=by_name, type="RUN"):
    """The same with an index that has a field of the primary key as its attribute."""

    key = Key("RUN#{name}")
    by_name = Key(index="by-owner")

    name: str
    owner: str
    score: int | None = None


class Run(Entity, table=after, type="RUN"):
    """The same with another way to find it."""

    key = Key("RUN#{name}")
    by_owner = Key("OWNER#{owner}", index="GSI1")
    by_score = Key("OWNER#{owner}", "SCORE#{score:05d}#{name}", index="GSI2")

    name: str
    owner: str
    score: int | None = None


def names(found: Any) -> list[str]:
    return [run.name for run in found]


@pytest.fixture
def store(each_store: Store) -> Store:
    """A store with a table as it was, and three runs in it."""
    each_store.tables.create(before)
    each_store.put(OldRun(name="a", owner="ann", score=7))
    each_store.put(OldRun(name="b", owner="ann", score=3))
    each_store.put(OldRun(name="c", owner="ann"))
    return each_store


def test_what_is_declared_and_missing_is_added_and_the_items_are_found_by_it(store: Store) -> None:
    told: list[str] = []
    added = store.tables.update(after, told.append)
    name = store.table_name(after)
    assert [re.sub(r"\d+\)", "N)", each) for each in told] == [
        f"{name}: giving items the keys of new indexes (items: N) ...",
        f"{name}: filling the index GSI2 (items: N) ...",
        f"{name}: filling the index GSITYPE (items: N) ...",
    ]
    assert added == ["index GSI2", "index GSITYPE", "a stream", "time to live on expires"]
    assert store.tables.differences(after) == []
    assert names(store.query(Run.by_score(owner="ann"))) == ["b", "a"]
    assert names(store.query(Run.by_owner(owner="ann"), where=Run.score == 7)) == ["a"]
    assert store.tables.update(after) == []


def test_a_new_index_has_the_items_whose_key_alone_held_its_attribute(store: Store) -> None:
    assert store.tables.update(by_name) == ["index by-owner"]
    assert names(store.query(NamedRun.by_name(owner="ann"))) == ["a", "b", "c"]
    store.add(NamedRun(name="d", owner="ann"))
    assert names(store.query(NamedRun.by_name(owner="ann"), after="b")) == ["c", "d"]


def test_who_queries_an_index_that_is_not_there_is_told_what_to_do(store: Store) -> None:
    with pytest.raises(RequestRefused, match=r"index: GSI2; add it with store\.tables\.update"):
        store.query(Run.by_score(owner="ann")).first()


def test_nothing_is_taken_away(store: Store) -> None:
    smaller = Table("runs", pk="PK", type_attribute="TYPE")
    assert store.tables.update(smaller) == []
    assert store.tables.differences(smaller) == ["index GSI1 is deployed, but not declared"]


def test_a_table_that_is_not_there_is_not_made(store: Store) -> None:
    with pytest.raises(TableNotFound):
        store.tables.update(Table("never-made", pk="PK"))


def test_only_wrong_keys_are_written(store: Store) -> None:
    assert store.tables.rekey(after) == 2
    assert store.tables.rekey(after) == 0
    with store.capacity.measure() as spent:
        store.tables.rekey(after)
    assert sum(units.write for units in spent.values()) == 0


def test_keys_that_nobody_declares_any_more_go(store: Store) -> None:
    store.tables.update(after)
    store.backend.execute(
        "UpdateItem",
        {
            "TableName": store.table_name(after),
            "Key": {"PK": {"S": "RUN#a"}},
            "UpdateExpression": "REMOVE score SET GSI1PK = :wrong",
            "ExpressionAttributeValues": {":wrong": {"S": "OWNER#bob"}},
        },
    )
    assert store.tables.rekey(after) == 1
    assert names(store.query(Run.by_owner(owner="bob"))) == []
    assert names(store.query(Run.by_score(owner="ann"))) == ["b"]


def test_items_of_other_programs_stay_as_they_are(store: Store) -> None:
    foreign = {"PK": {"S": "x"}, "TYPE": {"S": "OTHER"}, "GSI2PK": {"S": "own"}, "GSI2SK": {"S": "own"}}
    name = store.table_name(after)
    store.backend.execute("PutItem", {"TableName": name, "Item": foreign})
    store.tables.update(after)
    assert store.backend.execute("GetItem", {"TableName": name, "Key": {"PK": {"S": "x"}}})["Item"] == foreign


class Busy:
    """A backend on which somebody else changes an item, or deletes it, just before an update of it."""

    def __init__(self, backend: Backend, between: Request) -> None:
        self._backend = backend
        self._between = [between]

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "UpdateItem" and self._between:
            between = self._between.pop()
            self._backend.execute("PutItem" if "Item" in between else "DeleteItem", between)
        return self._backend.execute(operation, request)

    def close(self) -> None:
        self._backend.close()


def test_an_item_that_changes_meanwhile_gets_the_keys_of_what_it_is_then(store: Store) -> None:
    name = store.table_name(after)
    item = {"PK": {"S": "RUN#a"}, "TYPE": {"S": "RUN"}, "owner": {"S": "bob"}, "score": {"N": "1"}}
    store.batch_delete([OldRun.key(name="b"), OldRun.key(name="c")])
    busy = Store(Busy(store.backend, {"TableName": name, "Item": item}), prefix=store.prefix)
    assert busy.tables.rekey(after) == 1
    store.tables.update(after)
    assert names(store.query(Run.by_score(owner="bob"))) == ["a"]
    assert names(store.query(Run.by_owner(owner="bob"))) == ["a"]


def test_an_item_that_is_deleted_meanwhile_stays_away(store: Store) -> None:
    store.batch_delete([OldRun.key(name="b"), OldRun.key(name="c")])
    gone = {"TableName": store.table_name(after), "Key": {"PK": {"S": "RUN#a"}}}
    assert Store(Busy(store.backend, gone), prefix=store.prefix).tables.rekey(after) == 0
    assert list(store.scan(Run)) == []
