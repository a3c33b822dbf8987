"""Whatever entity a stranger declares: what is put is found by every key, and conditions say of it what Python says."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.declared import entity_classes

from jobtable.embedded import EmbeddedBackend
from jobtable.model import Attribute, Condition, Entity, Selection, wire
from jobtable.model.schema import FieldSchema, KeySchema
from jobtable.store import Store
from jobtable.testing.strategies import entities

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
some_entities = settings(max_examples=60, suppress_health_check=SLOW_TO_DRAW)

_ORDERED = (wire.Text, wire.Int, wire.Float, wire.DecimalNumber, wire.Instant, wire.Day, wire.Binary)
_COMPARED: list[Callable[[Any, Any], Any]] = [operator.lt, operator.le, operator.gt, operator.ge]


def put_some(store: Store, data: st.DataObject) -> list[Entity]:
    """Some entities of a class, each with a key of its own, that are all that is in its table."""
    cls = data.draw(entity_classes())
    some = list(by_key(data.draw(st.lists(entities(cls), min_size=1, max_size=4))).values())
    store.tables.create(cls.__schema__.table)
    store.batch_put(some)
    return some


def by_key(some: Iterable[Entity]) -> dict[str, Entity]:
    return {str(type(entity).__schema__.codec.key_of(entity)): entity for entity in some}


def select(entity: Entity, key: KeySchema, count: int | None = None) -> Selection[Any]:
    """What an entity's key selects by so many of its fields, at least by those of the partition."""
    names = key.inputs[:count]
    selection: Selection[Any] = getattr(type(entity), key.name)(**{name: getattr(entity, name) for name in names})
    return selection


@some_entities
@given(data=st.data())
def test_what_is_put_is_found(data: st.DataObject) -> None:
    with Store(EmbeddedBackend(None)) as store:
        some = put_some(store, data)
        schema = type(some[0]).__schema__
        keys = [select(entity, schema.primary) for entity in some]
        assert [store.get(key) for key in keys] == store.batch_get(keys) == list(store.get_together(*keys)) == some
        assert by_key(store.scan(type(some[0]), segments=2)) == by_key(some)
        with store.transaction() as tx:
            for entity in some:
                tx.put(entity)
        assert [store.get(key) for key in keys] == some


@some_entities
@given(data=st.data())
def test_every_key_finds_its_entities_and_no_others(data: st.DataObject) -> None:
    with Store(EmbeddedBackend(None)) as store:
        some = put_some(store, data)
        for key in type(some[0]).__schema__.keys:
            for entity in some:
                if any(getattr(entity, name) is None for name in key.inputs):
                    continue
                partition = len([name for part in key.partition for name in part.inputs])
                for count in range(partition, len(key.inputs) + 1):
                    check_selection(store, some, entity, key, count)


def check_selection(store: Store, some: list[Entity], entity: Entity, key: KeySchema, count: int) -> None:
    def is_selected(other: Entity) -> bool:
        same = all(getattr(other, name) == getattr(entity, name) for name in key.inputs[:count])
        return same and all(getattr(other, name) is not None for name in key.inputs)

    wanted = [other for other in some if is_selected(other)]
    selection = select(entity, key, count)
    found = list(store.query(selection))
    assert by_key(found) == by_key(wanted)
    assert store.count(selection) == len(wanted)
    assert found[::-1] == list(store.query(selection, newest_first=True)) or key.index is not None
    paged, cursor = list[Entity](), None
    for _ in wanted:
        page = store.query(selection).page(cursor, size=1)
        paged += page.items
        cursor = page.cursor
    assert (paged, cursor) == (found, None)


@some_entities
@given(data=st.data())
def test_a_condition_says_of_an_item_what_python_says_of_its_entity(data: st.DataObject) -> None:
    with Store(EmbeddedBackend(None)) as store:
        some = put_some(store, data)
        schema = type(some[0]).__schema__
        entity, other = (data.draw(st.sampled_from(some)) for _ in range(2))
        selection = select(entity, schema.primary)
        for field in schema.fields.values():
            if field.is_key_only or field.name in schema.primary.inputs:
                continue  # DynamoDB does not filter by them
            attribute = getattr(type(entity), field.name)
            for condition, holds in expectations(
                attribute, field, getattr(entity, field.name), getattr(other, field.name)
            ):
                assert store.count(selection, where=condition) == holds, (field.name, field.kind)


def expectations(
    attribute: Attribute[Any], field: FieldSchema, mine: Any, others: Any
) -> Iterator[tuple[Condition, bool]]:
    """Conditions with the value of another entity, and whether they hold for this one."""
    if isinstance(field.kind, wire.Anything):
        return  # Python takes 1 for True
    yield attribute == others, mine == others
    yield attribute != others, mine != others
    yield attribute.is_in(others), mine == others
    yield attribute == mine, True
    if isinstance(field.kind, _ORDERED) and others is not None:
        for compare in _COMPARED:
            yield compare(attribute, others), mine is not None and compare(mine, others)
        yield attribute.between(others, others), mine == others
    if isinstance(field.kind, wire.Text) and others is not None:
        yield attribute.begins_with(others[:1]), mine is not None and mine.startswith(others[:1])
        yield attribute.contains(others[1:]), mine is not None and others[1:] in mine
    if isinstance(field.kind, wire.Many | wire.Mapped | wire.Distinct | wire.Binary) and others is not None:
        yield attribute.size() == len(others), mine is not None and len(mine) == len(others)
        yield attribute.size() < len(others), mine is not None and len(mine) < len(others)
    if isinstance(field.kind, wire.Many | wire.Distinct):
        for element in others or ():
            yield attribute.contains(element), mine is not None and element in mine
