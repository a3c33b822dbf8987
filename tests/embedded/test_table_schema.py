"""Positions sort as the values do, and a key condition is exactly one range of them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.embedded.decimals import canonical_number
from jobtable.embedded.table_schema import (
    ENCODERS,
    IndexSchema,
    KeyAttribute,
    KeyType,
    SortOperator,
    TableSchema,
    after_prefix,
    just_after,
    segment_range,
)

STRINGS = st.text(alphabet=st.sampled_from("\x00\x01ab#é€😀\x7f"), max_size=6) | st.text(max_size=8)
NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=5).map(
    lambda number: canonical_number(f"{number:f}")
)
BINARIES = st.binary(max_size=6).map(lambda data: base64.b64encode(data).decode())
VALUES: dict[KeyType, st.SearchStrategy[str]] = {"S": STRINGS, "N": NUMBERS, "B": BINARIES}
COMPARABLE: dict[KeyType, Callable[[str], Any]] = {"S": str.encode, "N": Decimal, "B": base64.b64decode}

TYPES = st.sampled_from(["S", "N", "B"])


def table(sort: KeyType) -> TableSchema:
    return TableSchema(1, "tab", KeyAttribute("p", "S"), KeyAttribute("s", sort), {}, None, False)


@given(st.data(), TYPES)
def test_encodings_sort_as_the_values_and_none_begins_with_another(data: st.DataObject, kind: KeyType) -> None:
    left, right = data.draw(VALUES[kind]), data.draw(VALUES[kind])
    left_bytes, right_bytes = ENCODERS[kind](left), ENCODERS[kind](right)
    a, b = COMPARABLE[kind](left), COMPARABLE[kind](right)
    assert (left_bytes < right_bytes, left_bytes == right_bytes) == (a < b, a == b)
    assert left_bytes == right_bytes or not left_bytes.startswith(right_bytes)


OPERATORS: dict[SortOperator, Callable[..., bool]] = {
    "<": lambda value, bound: value < bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    ">=": lambda value, bound: value >= bound,
    "BETWEEN": lambda value, low, high: low <= value <= high,
    "begins_with": lambda value, start: value.startswith(start),
}


@given(st.data(), TYPES, st.sampled_from(sorted(OPERATORS)), st.sampled_from(["x", "y"]))
def test_a_sort_condition_is_the_range_of_the_values_that_meet_it(
    data: st.DataObject, kind: KeyType, operator: SortOperator, partition: str
) -> None:
    if operator == "begins_with" and kind == "N":
        kind = "S"
    values = VALUES[kind]
    operands = [data.draw(values) for _ in range(2 if operator == "BETWEEN" else 1)]
    value, schema = data.draw(values), table(kind)
    low, high = schema.key_range(None, [{"S": "x"}], (), operator, [{kind: operand} for operand in operands])
    position = schema.position({"p": {"S": partition}, "s": {kind: value}})
    compared = [COMPARABLE[kind](one) for one in (value, *operands)]
    assert (low <= position < high) == (partition == "x" and OPERATORS[operator](*compared))


INDEX = IndexSchema(
    2,
    "multi",
    False,
    (KeyAttribute("a", "S"), KeyAttribute("b", "N")),
    (KeyAttribute("c", "S"), KeyAttribute("d", "S")),
    "KEYS_ONLY",
    frozenset(),
)


@given(STRINGS.filter(bool), NUMBERS, STRINGS.filter(bool), STRINGS.filter(bool), STRINGS.filter(bool))
def test_an_index_with_several_attributes_is_queried_from_left_to_right(a: str, b: str, c: str, d: str, e: str) -> None:
    schema = table("S")
    item = {"p": {"S": "p"}, "s": {"S": "s"}, "a": {"S": a}, "b": {"N": b}, "c": {"S": c}, "d": {"S": d}}
    position = schema.index_position(INDEX, item)
    assert position is not None
    key: list[dict[str, str]] = [{"S": a}, {"N": b}]
    for low, high, expected in (
        (*schema.key_range(INDEX, key), True),
        (*schema.key_range(INDEX, key, [{"S": c}]), True),
        (*schema.key_range(INDEX, key, [{"S": c}, {"S": d}]), True),
        (*schema.key_range(INDEX, key, [{"S": e}]), e == c),
        (*schema.key_range(INDEX, key, [{"S": c}], ">=", [{"S": e}]), d.encode() >= e.encode()),
        (*schema.key_range(INDEX, [{"S": a}, {"N": canonical_number(str(Decimal(b) + 1))}]), False),
    ):
        assert (low <= position < high) == expected


@pytest.mark.parametrize("missing", ["a", "b", "c", "d"])
@pytest.mark.parametrize("value", [None, {"BOOL": True}, {"S": ""}])
def test_an_item_without_a_usable_index_key_is_not_in_the_index(missing: str, value: dict[str, Any] | None) -> None:
    item: dict[str, Any] = {"p": {"S": "p"}, "s": {"S": "s"}, "a": {"S": "a"}, "b": {"N": "1"}, "c": {"S": "c"}}
    item["d"] = {"S": "d"}
    del item[missing]
    if value is not None:
        item[missing] = value
    assert table("S").index_position(INDEX, item) is None


def test_what_an_index_holds() -> None:
    item = {name: {"S": name} for name in "psabcdx"}
    assert table("S").projected(INDEX, item).keys() == set("psabcd")


@given(st.integers(1, 50), st.binary(min_size=8, max_size=12))
def test_segments_cover_every_position_exactly_once(total: int, position: bytes) -> None:
    ranges = [segment_range(number, total) for number in range(total)]
    assert sum(low <= position and (high is None or position < high) for low, high in ranges) == 1
    assert ranges == [segment_range(number, total) for number in range(total)]


@given(st.binary(min_size=1, max_size=5).filter(lambda data: data.strip(b"\xff")), st.binary(max_size=4))
def test_after_a_prefix_comes_nothing_that_begins_with_it(prefix: bytes, rest: bytes) -> None:
    assert prefix + rest < after_prefix(prefix)
    assert not after_prefix(prefix).startswith(prefix)


@given(st.binary(max_size=5), st.binary(max_size=5))
def test_nothing_stands_between_a_position_and_the_one_just_after_it(position: bytes, other: bytes) -> None:
    assert (position < other) == (just_after(position) <= other)
