"""What the engine relies on in the store's requests: it need not check their values again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_core import from_json, to_json
from tests import every_entity
from tests.declared import entity_classes
from tests.samples import ENTITIES, TABLES, Job

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.values import measure_item
from jobtable.errors import JobtableError, RequestRefused, ValueRefusedError
from jobtable.model import Entity, Selection, Update
from jobtable.model.plain_values import decimal_text, float_text, int_text, wire_form
from jobtable.reference import tables
from jobtable.store import Store, requests
from jobtable.store.backend import EncodedItem, Request, Response
from jobtable.testing.strategies import entities, kind_values

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
CLASSES = [*ENTITIES, *(cls for _, cls in every_entity.ENTITIES)]


@pytest.mark.parametrize("cls", CLASSES, ids=[f"{number}-{cls.__name__}" for number, cls in enumerate(CLASSES)])
@settings(max_examples=10, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_an_encoded_item_is_what_validation_would_make_of_it(cls: type[Entity], data: st.DataObject) -> None:
    check_encoded(cls, data)


@settings(max_examples=60, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_so_is_that_of_an_entity_that_a_stranger_declares(data: st.DataObject) -> None:
    check_encoded(data.draw(entity_classes()), data)


def check_encoded(cls: type[Entity], data: st.DataObject) -> None:
    try:
        entity = data.draw(entities(cls))
        item = requests.put(entity, None, is_encoded=True).members["Item"]
    except ValueRefusedError:
        return
    assert type(item) is EncodedItem
    whole = item.whole()
    validated, size = measure_item(cls.__schema__.codec.encode(entity))
    assert (whole, measure_item(item)[1]) == (validated, size)
    assert {name: value for name, value in whole.items() if name not in item.left_out} == item


def same_form(text: str) -> bool:
    """Whether validation leaves a number as it is."""
    value: Any = {"n": {"N": text}}
    return bool(measure_item(value)[0] == value)


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e-7)
@example(-0.0)
@example(1e22)
@example(5e-130)
def test_floats_are_in_dynamodbs_form(value: float) -> None:
    try:
        text = float_text(value)
    except ValueRefusedError:
        return
    assert same_form(text)
    assert math.isclose(float(text), value, rel_tol=0)


@given(st.decimals(allow_nan=False, allow_infinity=False) | st.integers().map(Decimal))
@example(Decimal("1E+40"))
@example(Decimal("-0.00"))
@example(Decimal("1.500"))
def test_decimals_are_in_dynamodbs_form(value: Decimal) -> None:
    try:
        text = decimal_text(value)
    except ValueRefusedError:
        return
    assert same_form(text)
    assert Decimal(text) == value


@given(st.integers())
@example(10**38)
@example(-(10**100))
def test_integers_are_in_dynamodbs_form(value: int) -> None:
    try:
        text = int_text(value)
    except ValueRefusedError:
        return
    assert same_form(text)
    assert int(text) == value


@given(
    st.frozensets(st.text(st.characters(codec="utf-8")), min_size=1)
    | st.frozensets(st.integers(-(10**30), 10**30), min_size=1)
    | st.frozensets(st.binary(), min_size=1)
)
def test_sets_are_in_dynamodbs_order(values: frozenset[Any]) -> None:
    item = {"set": wire_form(values)}
    assert measure_item(item)[0] == item


class Stranger:
    """A backend that knows nothing of who asks it: every request comes as one over the network would."""

    def __init__(self) -> None:
        self._backend = EmbeddedBackend(None)

    def execute(self, operation: str, request: Request) -> Response:
        return self._backend.execute(operation, from_json(to_json(request)))

    def close(self) -> None:
        self._backend.close()


@pytest.fixture(scope="module")
def stores() -> Iterator[tuple[Store, Store]]:
    with Store(EmbeddedBackend(None)) as known, Store(Stranger()) as stranger:
        for store in (known, stranger):
            store.tables.create(*TABLES, *tables())
        yield known, stranger


@pytest.mark.parametrize("cls", CLASSES, ids=[f"{number}-{cls.__name__}" for number, cls in enumerate(CLASSES)])
@settings(max_examples=8, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_what_is_not_checked_again_makes_no_difference(
    stores: tuple[Store, Store], cls: type[Entity], data: st.DataObject
) -> None:
    some = data.draw(st.lists(entities(cls), min_size=1, max_size=3))
    changes = _changes(cls)
    for verb in data.draw(st.lists(st.sampled_from(_VERBS), min_size=1, max_size=5)):
        entity = data.draw(st.sampled_from(some))
        values = data.draw(changes)
        known, stranger = (_outcome(store, verb, entity, some, values) for store in stores)
        assert known == stranger
    names = {store.table_name(cls.__schema__.table) for store in stores}
    (name,) = names
    first, second = (store.backend.execute("Scan", {"TableName": name}) for store in stores)
    assert first == second


def test_an_expression_that_is_too_long_is_refused_in_the_same_words(stores: tuple[Store, Store]) -> None:
    names = [f"queue {number}" for number in range(100)]
    too_much = reduce(or_, [Job.queue.is_in(*names)] * 8)
    refusals = []
    for store in stores:
        with pytest.raises(RequestRefused) as refused:
            store.update(Job.key(job_id="1"), Job.attempts.set(1), when=too_much)
        refusals.append(str(refused.value))
    assert refusals[0] == refusals[1]


def _changes(cls: type[Entity]) -> st.SearchStrategy[dict[str, Any]]:
    schema = cls.__schema__
    fields = [field for name, field in schema.fields.items() if name not in schema.primary.inputs]
    one = {
        field.name: st.none() | kind_values(field.kind) if field.optional else kind_values(field.kind)
        for field in fields
    }
    return st.fixed_dictionaries({}, optional=dict(list(one.items())[:6]))


def _outcome(store: Store, verb: str, entity: Entity, some: list[Entity], values: dict[str, Any]) -> object:
    """What a verb gives, or the error that it ends with, and what it has consumed."""
    with store.capacity.measure() as consumed:
        try:
            result = _DO[verb](store, entity, some, values)
        except (JobtableError, ValidationError) as error:
            result = (type(error), str(error))
    return result, consumed


def _sets(cls: type[Entity], values: dict[str, Any]) -> list[Update]:
    return [getattr(cls, name).set(value) for name, value in values.items()]


def _key_of(entity: Entity) -> Selection[Any]:
    return type(entity).key(**{name: getattr(entity, name) for name in type(entity).__schema__.primary.inputs})


def _update(store: Store, entity: Entity, some: list[Entity], values: dict[str, Any]) -> object:
    return store.update(entity, *_sets(type(entity), values))


def _transaction(store: Store, entity: Entity, some: list[Entity], values: dict[str, Any]) -> object:
    with store.transaction() as tx:
        for each in some:
            if each is not entity:
                tx.put(each)
        tx.update(entity, *_sets(type(entity), values))
    return None


_DO: dict[str, Callable[[Store, Any, list[Any], dict[str, Any]], object]] = {
    "add": lambda store, entity, some, values: store.add(entity),
    "put": lambda store, entity, some, values: store.put(entity),
    "update": _update,
    "delete": lambda store, entity, some, values: store.delete(entity),
    "batch": lambda store, entity, some, values: store.batch_put(some),
    "transaction": _transaction,
    "get": lambda store, entity, some, values: store.find(_key_of(entity)),
    "batch get": lambda store, entity, some, values: store.batch_get([_key_of(each) for each in [*some, entity]]),
}
_VERBS = sorted(_DO)
