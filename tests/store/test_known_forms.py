"""What the engine relies on in the store's requests: it need not check their values again."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests import systems
from tests.samples import ENTITIES

from jobtable.embedded.values import measure_item
from jobtable.errors import ValueRefusedError
from jobtable.model import Entity
from jobtable.model.numbers import decimal_text, float_text, int_text
from jobtable.model.wire import wire_form
from jobtable.store import requests
from jobtable.store.backend import EncodedItem
from jobtable.testing.strategies import entities

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
CLASSES = [*ENTITIES, *(cls for _, cls in systems.ENTITIES)]


@pytest.mark.parametrize("cls", CLASSES, ids=[f"{number}-{cls.__name__}" for number, cls in enumerate(CLASSES)])
@settings(max_examples=10, deadline=None, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_an_encoded_item_is_what_validation_would_make_of_it(cls: type[Entity], data: st.DataObject) -> None:
    try:
        item = requests.put(data.draw(entities(cls)), None).members["Item"]
    except ValueRefusedError:
        return
    assert type(item) is EncodedItem
    validated, size = measure_item(dict(item))
    assert (item, size) == (validated, measure_item(item)[1])


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
