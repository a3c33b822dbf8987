"""What is checked of items from elsewhere before the first is written: no backend refuses one that has passed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ValueRefusedError
from jobtable.model import Entity, Index, Key, Table
from jobtable.store import Item, Store
from jobtable.store.batches import Batches
from jobtable.store.foreign_items import ItemCheck

executions = Table(
    "Executions",
    pk="pk",
    sk="sk",
    indexes=[Index("by_status", ("kind", "status"), ("created_at", "rank")), Index("by_run", "run", "rank")],
)
vectors = Table("Vectors", pk="job_id", sk="number", indexes=[Index("by_talk", "talk", "created_at")])


class Execution(Entity, table=executions):
    """One with a rendered key, and a number and texts in its indexes."""

    key = Key("{name}", "metadata")
    by_status = Key(index="by_status")
    by_run = Key(index="by_run")

    name: str
    kind: str
    status: str
    run: str
    created_at: str
    rank: int


class JobVector(Entity, table=vectors):
    """One whose key is a text and a number."""

    by_talk = Key(index="by_talk")

    job_id: str
    number: int
    talk: str
    created_at: str


TEXTS = ["", "a", "#", "\x00", "\ud800", "é" * 512, "é" * 513, "x" * 1024, "x" * 1025, "x" * 2048, "x" * 2049, 1, None]
NUMBERS = [
    *(
        "0",
        "-0",
        "1",
        "1.0",
        "01",
        "+1",
        "1.",
        ".5",
        ".",
        "",
        "--1",
        " 1",
        "1 ",
        "1_0",
        "0x1",
        "\u0663",
        "NaN",
        "Infinity",
    ),
    *("1e5", "1E+05", "9e125", "1e126", "1e-130", "1e-131", "1e400", "0e125", "0e126", "0e-130", "0e-131", "0E-10"),
    *("1" * 38, "1" * 39, "1" * 38 + "0", "0." + "1" * 38, "0." + "1" * 39, "1e99999999999999999999", 1, None),
]
BINARIES = [
    "",
    "AA==",
    "AAA=",
    "AAAA",
    "A",
    "AA",
    "AB==",
    "AAB=",
    "!!!!",
    "AA==\n",
    " AA==",
    "AA==AA==",
    "AA-_",
    1,
    None,
]
NAMES = st.sampled_from(["a", "é", "", "\ud800", "x" * 65_535, "x" * 65_536])
PLAIN = {"S": "key", "N": "1"}
JOB_J = {"ExpressionAttributeValues": {":j": {"S": "j"}}}


def one_of(kind: str, contents: list[Any]) -> st.SearchStrategy[Any]:
    single = st.sampled_from(contents)
    return st.one_of(
        single.map(lambda content: {kind: content}),
        st.lists(single, max_size=3).map(lambda members: {f"{kind}S": members}),
    )


SCALARS = st.one_of(
    one_of("S", TEXTS),
    one_of("N", NUMBERS),
    one_of("B", BINARIES),
    st.sampled_from([{"BOOL": True}, {"BOOL": "true"}, {"NULL": True}, {"NULL": False}, {"T": "x"}, {}, None, "x"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda members: {"L": members}),
        st.dictionaries(NAMES, inner, max_size=2).map(lambda members: {"M": members}),
    ),
    max_leaves=4,
)


def items_for(table: Table) -> st.SearchStrategy[Item]:
    def value_of(kind: str) -> st.SearchStrategy[Any]:
        contents = TEXTS if kind == "S" else NUMBERS
        return st.one_of(st.just({kind: PLAIN[kind]}), st.sampled_from(contents).map(lambda content: {kind: content}))

    keys = {name: value_of(kind) for name, kind in table.key_types().items()}
    needed = {name: values for name, values in keys.items() if name in table.primary}
    others = {name: values for name, values in keys.items() if name not in table.primary}
    attributes = st.dictionaries(NAMES, VALUES, max_size=2)
    return st.builds(lambda key, more: {**more, **key}, st.fixed_dictionaries(needed, optional=others), attributes)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(executions, vectors)
        yield store


@pytest.mark.parametrize("table", [executions, vectors], ids=lambda table: table.name)
@given(st.data())
def test_an_item_that_passes_is_taken_by_the_engine(store: Store, table: Table, data: st.DataObject) -> None:
    item = data.draw(items_for(table))
    try:
        ItemCheck(table).check(item)
    except ValueRefusedError:
        return
    assert Batches(store).put_items(table, [item]) == 1


def test_an_item_may_stand_twice_with_its_number_written_differently(store: Store) -> None:
    items: list[Item] = [{"job_id": {"S": "j"}, "number": {"N": number}} for number in ("1", "1.0", "1e0", "2")]
    for item in items:
        ItemCheck(vectors).check(item)
    assert Batches(store).put_items(vectors, items) == 4
    stored = store.backend.execute("Scan", {"TableName": vectors.name, "FilterExpression": "job_id = :j", **JOB_J})
    assert [item["number"]["N"] for item in stored["Items"]] == ["1", "2"]
