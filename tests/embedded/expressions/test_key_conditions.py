"""What a key condition says to the one who reads the table or index."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from jobtable.embedded.expressions import (
    KeyCondition,
    Placeholders,
    SortRange,
    prepare_key_condition,
)
from jobtable.embedded.table_schema import KeyAttribute
from jobtable.errors import RequestRefused

A, B, C, N = {"S": "a"}, {"S": "b"}, {"S": "c"}, {"N": "1"}
VALUES = {":a": A, ":b": B, ":c": C, ":n": N, ":empty": {"S": ""}}


def attributes(names: str, kind: Literal["S", "B"] = "S") -> tuple[KeyAttribute, ...]:
    return tuple(KeyAttribute(name, kind) for name in names.split())


def compiled(text: str, partition: str, sort: str = "") -> KeyCondition:
    unmatched = prepare_key_condition(text, Placeholders({"#p": "p"}, VALUES))
    return unmatched.against(attributes(partition), attributes(sort))


@pytest.mark.parametrize(
    ("text", "equal", "sort_range"),
    [
        ("p = :a", (), None),
        ("#p = :a", (), None),
        (":a = p AND s = :b", (B,), None),
        ("s = :b AND (p = :a)", (B,), None),
        ("p = :a AND s < :b", (), SortRange("<", (B,))),
        ("p = :a AND :b < s", (), SortRange(">", (B,))),
        ("p = :a AND :b >= s", (), SortRange("<=", (B,))),
        ("p = :a AND s BETWEEN :b AND :c", (), SortRange("BETWEEN", (B, C))),
        ("p = :a AND begins_with(s, :b)", (), SortRange("begins_with", (B,))),
    ],
)
def test_one_partition_and_one_sort_attribute(text: str, equal: tuple[Any, ...], sort_range: SortRange | None) -> None:
    assert compiled(text, "p", "s") == KeyCondition((A,), equal, sort_range)


_BEFORE_S = "must have equality conditions specified in the query because a condition is present on key attribute s"
_EXCEEDS = "exceeds the number of key attributes defined in the schema"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q = :b AND p = :a", KeyCondition((A, B), (), None)),
        ("p = :a AND q = :b AND r = :c", KeyCondition((A, B), (C,), None)),
        ("p = :a AND q = :b AND r = :c AND s > :a", KeyCondition((A, B), (C,), SortRange(">", (A,)))),
        ("s = :a AND p = :a AND q = :b AND r = :c", KeyCondition((A, B), (C, A), None)),
        ("p = :a AND q = :b AND begins_with(r, :c)", KeyCondition((A, B), (), SortRange("begins_with", (C,)))),
        ("p = :a", "HASH key attributes q must have equality conditions specified in the query"),
        ("r = :a", "HASH key attributes p, q must have equality conditions specified in the query"),
        ("p = :a AND q > :b", "HASH key attributes q must have equality conditions specified in the query"),
        ("p = :a AND q = :b AND s = :c", f"RANGE key attributes r {_BEFORE_S}"),
        ("p = :a AND q = :b AND r > :c AND s = :a", f"RANGE key attributes r {_BEFORE_S}"),
        ("p = :a AND q = :b AND x = :c", "Query condition missed key schema element: r"),
        # No source has this of keys of several attributes: it is inferred, as the service's words speak of any schema.
        ("p = :a AND q = :b AND r = :c AND s = :a AND x = :a", f"The number of query conditions (5) {_EXCEEDS} (4)"),
        ("v = :a AND w = :a AND x = :a AND y = :a AND z = :a", f"The number of query conditions (5) {_EXCEEDS} (4)"),
    ],
)
def test_several_attributes(text: str, expected: KeyCondition | str) -> None:
    if isinstance(expected, KeyCondition):
        assert compiled(text, "p q", "r s") == expected
    else:
        with pytest.raises(RequestRefused) as caught:
            compiled(text, "p q", "r s")
        assert caught.value.message == expected


@pytest.mark.parametrize("text", ["p = :a AND s = :b", "p = :a AND x > :b", "x = :a AND y = :a"])
def test_a_table_without_a_sort_attribute(text: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        compiled(text, "p")
    assert caught.value.message == f"The number of query conditions (2) {_EXCEEDS} (1)"


def test_an_empty_binary_key_value() -> None:
    unmatched = prepare_key_condition("p = :b", Placeholders(None, {":b": {"B": ""}}))
    with pytest.raises(RequestRefused, match=r"cannot contain an empty binary value\. Key: p"):
        unmatched.against(attributes("p", "B"), ())


def test_unused_placeholders_are_reported_before_the_schema(local: Any) -> None:
    names, values = {"#x": "y"}, {":a": A}
    placeholders = Placeholders(names, values)
    prepare_key_condition("sk = :a", placeholders)
    with pytest.raises(RequestRefused) as ours:
        placeholders.finish()
    with pytest.raises(RequestRefused) as theirs:
        local.execute(
            "Query",
            TableName="sorted_things",
            KeyConditionExpression="sk = :a",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        )
    assert ours.value.message == theirs.value.message
