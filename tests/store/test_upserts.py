"""An upsert changes an item, and makes it where there is none: as whole as one that was put."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field
from tests import every_entity
from tests.declared import entity_classes
from tests.samples import ENTITIES, TABLES, Comment, Job, JobMetric, Stage, Status

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConditionFailedError, TransactionFailedError, ValueRefusedError
from jobtable.model import Attr, Entity, Index, Key, Stored, Table, Timestamp, default
from jobtable.model.expressions import Update, attribute_of
from jobtable.reference import tables
from jobtable.store import Store
from jobtable.testing.strategies import entities

NOON = datetime(2025, 11, 1, 12, tzinfo=UTC)
SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

watched = Table(
    "watched",
    pk="PK",
    sk="SK",
    type_attribute="TYPE",
    indexes=[Index("GSI1", "GSI1PK", "GSI1SK"), Index("by-rank", "rank"), Index("GSITYPE", "TYPE")],
)


class Counter(Entity, table=watched, type="COUNTER"):
    """All that it needs is its key, and an index key is made from that alone."""

    key = Key("COUNTER#{name}", "COUNTER")
    all_counters = Key("COUNTERS", "{name}", index="GSI1")

    name: Stored[str]
    value: Attr[int] = default(0)
    total: Attr[float] = default(1)
    names: Attr[list[str]] = default(["first"])
    tags: Attr[set[str]] = default(Field(default_factory=set))


class Seen(Entity, table=watched, type="SEEN", shares_keys_with=(Counter,)):
    """When somebody was seen: two fields that are always there, and two of indexes that need not be."""

    key = Key("COUNTER#{person}", "COUNTER")
    by_place = Key("PLACE#{place}", "{person}", index="GSI1")
    by_rank = Key(index="by-rank")

    person: str
    last: Attr[Timestamp]
    times: Attr[int]
    place: Attr[str | None] = default(None)
    rank: Attr[str | None] = default(None)


class Visit(Entity, table=watched, type="VISIT"):
    """Something with a time of its own, made when it is, and with a default in a key."""

    key = Key("VISIT#{visit_id}", "VISIT")
    by_state = Key("STATE#{state}", "{made_at}", index="GSI1")

    visit_id: str
    made_at: Attr[Timestamp] = default(Field(default_factory=lambda: datetime.now(UTC)))
    state: Attr[str] = default("open")
    note: Attr[str] = default("")


class Bare(Entity, table=Table("bare", pk="PK")):
    """Of which an item may have nothing but its key."""

    key = Key("BARE#{name}")

    name: str
    note: Attr[str | None] = default(None)


@pytest.fixture
def store(each_store: Store) -> Store:
    each_store.tables.create(watched)
    return each_store


def test_a_counter_begins_by_itself(store: Store) -> None:
    key = Counter.key(name="runs")
    assert [store.upsert(key, Counter.value.increment()).value for _ in range(3)] == [1, 2, 3]
    assert store.get(key) == Counter(name="runs", value=3)
    assert [each.value for each in store.query(Counter.all_counters())] == [3]
    assert [each.value for each in store.query(Counter.by_type(), where=attribute_of(Counter.name) == "runs")] == [3]


def test_every_change_begins_with_the_default(store: Store) -> None:
    changes = Counter.total.add(2), Counter.names.append("second"), Counter.tags.add({"a"}), Counter.value.set(7)
    made = store.upsert(Counter.key(name="runs"), *changes)
    assert made == Counter(name="runs", total=2, names=["first", "second"], tags={"a"}, value=7)
    changed = store.upsert(Counter.key(name="runs"), *changes)
    assert changed == Counter(name="runs", total=4, names=["first", "second", "second"], tags={"a"}, value=7)


def test_what_is_required_is_given_once(store: Store) -> None:
    key, changes = Seen.key(person="dana"), (Seen.last.set(NOON), Seen.times.add(1), Seen.rank.set_if_missing("b"))
    assert store.upsert(key, *changes) == Seen(person="dana", last=NOON, times=1, rank="b")
    store.update(key, Seen.rank.set("a"))
    assert store.upsert(key, *changes) == Seen(person="dana", last=NOON, times=2, rank="a")
    assert [each.times for each in store.query(Seen.by_rank(rank="a"))] == [2]
    assert list(store.query(Seen.by_place(place="here"))) == []


def test_an_index_key_is_made_whole(store: Store) -> None:
    for place in ("here", "there", None):
        store.upsert(Seen.key(person="dana"), Seen.last.set(NOON), Seen.times.set(1), Seen.place.set(place))
        found = [each.place for where in ("here", "there") for each in store.query(Seen.by_place(place=where))]
        assert found == ([place] if place else [])


def test_a_condition_is_asked_of_what_is_there(store: Store) -> None:
    def see(at: datetime) -> Seen:
        changes = Seen.last.set(at), Seen.times.add(1)
        return store.upsert(Seen.key(person="dana"), *changes, when=Seen.last.missing() | (Seen.last < at))

    assert see(NOON).times == 1
    with pytest.raises(ConditionFailedError, match=r"cannot upsert Seen .*: its condition is not met") as refused:
        see(NOON)
    assert refused.value.current == Seen(person="dana", last=NOON, times=1)


def test_an_item_of_an_entity_with_the_same_keys_stays_as_it_is(store: Store) -> None:
    store.upsert(Counter.key(name="dana"), Counter.value.increment())
    with pytest.raises(ConditionFailedError):
        store.upsert(Seen.key(person="dana"), Seen.last.set(NOON), Seen.times.add(1))
    assert store.get(Counter.key(name="dana")).value == 1


def test_a_transaction_makes_and_changes_items_too(store: Store) -> None:
    for _ in range(2):
        with store.transaction() as tx:
            tx.upsert(Counter.key(name="runs"), Counter.value.increment())
            tx.upsert(Counter.key(name="jobs"), Counter.value.increment(5))
    assert [each.value for each in store.query(Counter.all_counters())] == [10, 2]
    with pytest.raises(TransactionFailedError, match=r"upsert Counter .*: its condition is not met"):  # noqa: SIM117
        with store.transaction() as tx:
            tx.upsert(Counter.key(name="runs"), Counter.value.increment(), when=Counter.value == 1)


def test_an_update_of_a_natural_key(each_store: Store) -> None:
    each_store.tables.create(Comment.__schema__.table)
    comment = Comment(job_id="j", comment_id=1, conversation_id="c", created_at=NOON, embedding=[0.5])
    given = comment.model_dump(exclude={"job_id", "comment_id"})
    changes = [getattr(Comment, name).set(value) for name, value in given.items()]
    assert each_store.upsert(Comment.key(job_id="j", comment_id=1), *changes) == comment
    assert list(each_store.query(Comment.by_conversation(conversation_id="c"))) == [comment]


VALUE: Any = JobMetric.value
ORDER: Any = Stage.can_skip


@pytest.mark.parametrize(
    ("key", "updates", "told"),
    [
        (Seen.key(person="a"), [Seen.times.add(1)], "a new Seen would lack last; set it too"),
        (Seen.key(person="a"), [Seen.rank.set("a")], "a new Seen would lack last, times; set them too"),
        (Seen.key(person="a"), [Seen.last.set(NOON), Seen.times.increment()], r"Seen\.times has no default .* use add"),
        (Visit.key(visit_id="1"), [Visit.state.set("shut")], "a new Visit would lack made_at; set it too"),
        (
            Visit.key(visit_id="1"),
            [Visit.made_at.set(NOON)],
            r"Visit\.by_state is built from state; set it too, so that a new item has the key",
        ),
        (
            Seen.key(person="a"),
            [Seen.last.set(NOON), Seen.times.add(1), Seen.place.set_if_missing("x")],
            r"Seen\.place is part of Seen\.by_place; set it, so that the key is known",
        ),
        (Job.key(job_id="1"), [Job.limits["memory_mb"].set(3)], r"Job\.limits\['memory_mb'\] is inside a field"),
        (Stage.key(journey_id="j", order=1, stage_id="s"), [ORDER.set(True)], "Stage.can_skip is inside Data"),
        (
            Bare.key(name="a"),
            [Bare.note.set(None)],
            "a new Bare cannot be created only by removing something; set a field too",
        ),
        (Counter.key(name="a"), [VALUE.set(1.0)], "JobMetric.value is not a field of Counter"),
        (Counter.key(name="a"), [], "Counter: an update needs at least one change"),
        (Counter.all_counters(), [Counter.value.set(1)], "is a key of the index GSI1"),
    ],
)
def test_what_would_not_be_whole_is_refused(key: Any, updates: list[Update], told: str) -> None:
    with Store(EmbeddedBackend(None)) as store, pytest.raises(ValueRefusedError, match=told):
        store.upsert(key, *updates)


def test_the_key_is_wanted_and_not_the_entity() -> None:
    job: Any = Job(job_id="1", created_at=NOON, created_by="ann")
    with Store(EmbeddedBackend(None)) as store, pytest.raises(TypeError, match="got a whole Job instead of its key"):
        store.upsert(job, Job.status.set(Status.DONE))


@pytest.fixture(scope="module")
def every_table() -> Iterator[Store]:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(*TABLES, *tables())
        yield store


@pytest.mark.parametrize(
    "cls",
    [*ENTITIES, *(cls for _, cls in every_entity.ENTITIES)],
    ids=[*(cls.__name__ for cls in ENTITIES), *(f"{seed}-{cls.__name__}" for seed, cls in every_entity.ENTITIES)],
)
@settings(max_examples=8, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_an_upsert_of_all_fields_gives_the_item_that_a_put_would(
    every_table: Store, cls: type[Entity], data: st.DataObject
) -> None:
    check_upsert(every_table, cls, data)


@settings(max_examples=60, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_so_it_does_for_entities_that_strangers_declare(data: st.DataObject) -> None:
    cls = data.draw(entity_classes())
    with Store(EmbeddedBackend(None)) as own:
        own.tables.create(cls.__schema__.table)
        check_upsert(own, cls, data)


def check_upsert(store: Store, cls: type[Entity], data: st.DataObject) -> None:
    """Set all fields where there is no item, and again where there is another one: both leave what a put would."""
    schema = cls.__schema__
    wanted = data.draw(entities(cls))
    names = [name for name in schema.fields if name not in schema.primary.inputs]
    if not names or any(field.envelope for field in schema.fields.values()):
        return  # all of it is its key, or it is written as a whole
    if schema.table.type_attribute is None and all(schema.fields[n].is_absent(getattr(wanted, n)) for n in names):
        return  # nothing would be set
    key = {name: getattr(wanted, name) for name in schema.primary.inputs}
    others = data.draw(entities(cls)).model_copy(update=key)
    request = {"TableName": store.table_name(schema.table), "Key": schema.codec.key_of(wanted)}
    store.backend.execute("DeleteItem", request)
    for before in (None, others):
        if before is not None:
            store.put(before)
        changes = [getattr(cls, name).set(getattr(wanted, name)) for name in names]
        made = store.upsert(cls.key(**key), *changes)
        assert made == wanted
        assert store.backend.execute("GetItem", request)["Item"] == schema.codec.encode(wanted)
