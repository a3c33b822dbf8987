"""What the pinned cases do not show of conditions and projections: precedence, the names they read, reuse."""

from __future__ import annotations

import itertools

import pytest

from jobtable.embedded.expressions import Placeholders, compile_condition, compile_projection
from jobtable.errors import RequestRefused
from jobtable.store.backend import Item

TRUTH_VALUES = list(itertools.product([True, False], repeat=3))


@pytest.mark.parametrize(
    ("expression", "python"),
    [
        ("a = :t AND b = :t OR c = :t", "a and b or c"),
        ("a = :t OR b = :t AND c = :t", "a or b and c"),
        ("(a = :t OR b = :t) AND c = :t", "(a or b) and c"),
        ("NOT a = :t AND b = :t OR c = :t", "not a and b or c"),
        ("NOT (a = :t AND b = :t) OR c = :t", "not (a and b) or c"),
        ("NOT NOT a = :t OR NOT (b = :t OR NOT c = :t)", "not not a or not (b or not c)"),
        ("a = :t AND NOT b = :t AND c = :t", "a and not b and c"),
        ("a = :t OR (b = :t AND (c = :t OR NOT a = :t))", "a or (b and (c or not a))"),
    ],
)
def test_precedence_is_pythons(expression: str, python: str) -> None:
    condition = compile_condition(expression, Placeholders(None, {":t": {"BOOL": True}}))
    for a, b, c in TRUTH_VALUES:
        item: Item = {"a": {"BOOL": a}, "b": {"BOOL": b}, "c": {"BOOL": c}}
        assert condition.holds(item) == eval(python, {"a": a, "b": b, "c": c})


def test_names_that_are_read() -> None:
    placeholders = Placeholders({"#k": "key", "#n": "inner"}, {":v": {"N": "1"}})
    condition = compile_condition("#k.#n = :v AND size(b[0]) > :v OR attribute_exists(c.d)", placeholders)
    assert condition.top_level_names == {"key", "b", "c"}
    projection = compile_projection("#k.#n, b[0], b[1], c", placeholders)
    assert projection.top_level_names == {"key", "b", "c"}
    placeholders.finish()


def test_one_text_with_other_names_and_values() -> None:
    item: Item = {"x": {"N": "1"}, "y": {"N": "2"}}
    for name, value, holds in [("x", "1", True), ("y", "1", False), ("y", "2", True), ("z", "2", False)]:
        placeholders = Placeholders({"#a": name}, {":v": {"N": value}})
        assert compile_condition("#a = :v", placeholders).holds(item) is holds
        assert compile_projection("#a", placeholders).apply(item) == {k: v for k, v in item.items() if k == name}


def test_a_fault_is_reported_every_time() -> None:
    for _ in range(2):
        with pytest.raises(RequestRefused) as caught:
            compile_condition("#a = :v", Placeholders(None, {":v": {"N": "1"}}), "FilterExpression")
        assert caught.value.message == (
            "Invalid FilterExpression: An expression attribute name used in the document path is not defined; "
            "attribute name: #a"
        )


def test_expressions_share_placeholders() -> None:
    placeholders = Placeholders({"#a": "a", "#b": "b"}, {":v": {"N": "1"}})
    compile_condition("#a = :v", placeholders)
    with pytest.raises(RequestRefused, match=r"keys: \{#b\}"):
        placeholders.finish()
    compile_projection("#b", placeholders)
    placeholders.finish()
