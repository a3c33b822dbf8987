"""An update leaves the item as a put of the changed entity would have: index keys follow every field."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests import every_entity
from tests.declared import entity_classes
from tests.samples import ENTITIES, TABLES, Job

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import NotFoundError, ValueRefusedError
from jobtable.model import Attr, Entity, Index, Key, OrNull, Table, default
from jobtable.model.expressions import attribute_of
from jobtable.reference import tables
from jobtable.store import Store, requests
from jobtable.testing.strategies import entities, kind_values

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(*TABLES, *tables())
        yield store


errands = Table("errands", pk="PK", sk="SK", type_attribute="TYPE", indexes=[Index("GSI1", "GSI1PK", "GSI1SK")])


class Errand(Entity, table=errands, type="ERRAND"):
    """An entity in whose index key stands a field that is written as NULL."""

    key = Key("ERRAND#{errand_id}", "ERRAND")
    by_owner = Key("OWNER#{owner}", "STATE#{state}", index="GSI1")

    errand_id: str
    owner: OrNull[str] = None
    state: Attr[str] = default("open")


def test_a_key_that_is_also_made_from_a_written_null_follows() -> None:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(errands)
        for owner in (None, "dana"):
            errand = Errand(errand_id="1", owner=owner)
            store.put(errand)
            store.update(errand, Errand.state.set("done"))
            assert store.get(Errand.key(errand_id="1")) == errand.replace(state="done")
        assert list(store.query(Errand.by_owner(owner="dana", state="done"))) == [errand.replace(state="done")]


def test_updates_of_one_form_share_their_text_and_nothing_else() -> None:
    key = Errand.key(errand_id="1")
    first, second = (
        requests.update(key, [Errand.state.set(state), attribute_of(Errand.owner).set("dana")], Errand.state == before)
        for state, before in (("open", "a"), ("done", "b"))
    )
    assert first.members["UpdateExpression"] is second.members["UpdateExpression"]
    assert [write.members["ExpressionAttributeValues"][":v0"] for write in (first, second)] == [
        {"S": "open"},
        {"S": "done"},
    ]
    first.members["ExpressionAttributeNames"].clear()
    assert requests.update(key, [Errand.state.set("x"), attribute_of(Errand.owner).set("y")], None).members[
        "ExpressionAttributeNames"
    ] == {"#n0": "state", "#n1": "owner", "#n2": "GSI1PK", "#n3": "GSI1SK", "#n4": "PK"}


def test_updates_of_long_names_leave_nothing_in_memory(store: Store) -> None:
    name = "".join(["x"] * 2000)
    held_before = sys.getrefcount(name)
    with pytest.raises(NotFoundError):
        store.update(Job.key(job_id="none"), Job.job_config[name].set(1))
    gc.collect()
    assert sys.getrefcount(name) == held_before


@pytest.mark.parametrize("cls", ENTITIES, ids=lambda cls: cls.__name__)
@settings(max_examples=40, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_an_update_gives_the_item_that_a_put_would(store: Store, cls: type[Entity], data: st.DataObject) -> None:
    check_update(store, cls, data)


@pytest.mark.parametrize(
    "cls",
    [cls for _, cls in every_entity.ENTITIES],
    ids=[f"{seed}-{cls.__name__}" for seed, cls in every_entity.ENTITIES],
)
@settings(max_examples=8, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_so_it_does_for_every_entity_of_the_systems(store: Store, cls: type[Entity], data: st.DataObject) -> None:
    check_update(store, cls, data)


@settings(max_examples=60, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_and_for_entities_that_strangers_declare(data: st.DataObject) -> None:
    cls = data.draw(entity_classes())
    with Store(EmbeddedBackend(None)) as own:
        own.tables.create(cls.__schema__.table)
        check_update(own, cls, data)


def check_update(store: Store, cls: type[Entity], data: st.DataObject) -> None:
    """Change one field by an update, and by a put of the changed entity: both leave the same item."""
    schema = cls.__schema__
    entity = data.draw(entities(cls))
    changeable = [field for name, field in schema.fields.items() if name not in schema.primary.inputs]
    if not changeable:
        return  # all of it is its key
    field = data.draw(st.sampled_from(changeable))
    value = data.draw(st.none() | kind_values(field.kind) if field.optional else kind_values(field.kind))
    try:
        accepted = field.accept(value)
        wanted = entity.replace(**{field.name: value})
        schema.codec.encode(wanted)
    except (ValidationError, ValueRefusedError):
        reject()
    others = {name for name in schema.fields if getattr(wanted, name) != getattr(entity, name)} - {field.name}
    if others or getattr(wanted, field.name) != accepted:
        reject()  # the entity makes one field from another, which only a put of the whole entity does
    request = {"TableName": store.table_name(schema.table), "Key": schema.codec.key_of(entity)}
    # An entity that shares its keys overwrites nothing that the other one has left there, and does not delete it.
    store.backend.execute("DeleteItem", request)
    store.put(entity)
    updated = store.update(entity, getattr(cls, field.name).set(value))
    after_update = store.backend.execute("GetItem", request)["Item"]
    store.put(wanted)
    after_put = store.backend.execute("GetItem", request)["Item"]
    assert updated == wanted
    assert after_update == after_put


def test_an_update_of_several_fields_of_one_key_needs_no_entity(store: Store) -> None:
    job = Job.model_validate({"job_id": "several", "created_at": "2025-01-01", "created_by": "a", "queue": "x"})
    store.put(job)
    store.update(Job.key(job_id="several"), Job.queue.set(None), Job.priority.set(7))
    with pytest.raises(ValueRefusedError, match=r"Job\.by_queue is also built from created_at"):
        store.update(Job.key(job_id="several"), Job.queue.set("y"), Job.priority.set(8))


def test_a_key_follows_the_default_of_a_field_that_is_removed() -> None:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(errands)
        errand = Errand(errand_id="1", owner="dana", state="done")
        store.put(errand)
        assert store.update(errand, Errand.state.remove()) == errand.replace(state="open")
        assert list(store.query(Errand.by_owner(owner="dana", state="open"))) == [errand.replace(state="open")]
        assert store.count(Errand.by_owner(owner="dana")) == 1


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (Job.priority.increment(), "is part of Job.by_queue; set it"),
        (Job.priority.add(1), "is part of Job.by_queue; set it"),
        (attribute_of(Job.job_id).set("other"), "part of the primary key"),
    ],
)
def test_what_would_leave_a_key_wrong_is_refused(store: Store, update: object, message: str) -> None:
    with pytest.raises(ValueRefusedError, match=message):
        store.update(Job.key(job_id="1"), update)  # type: ignore[arg-type]  # a parameter of the test
