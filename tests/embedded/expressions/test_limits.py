"""Limits of expressions, and hostile texts: always a clear error, also where recursion could run out."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.embedded.expressions import (
    Placeholders,
    compile_condition,
    compile_projection,
    compile_update,
)
from jobtable.embedded.expressions.checks import RESERVED_WORDS
from jobtable.errors import RequestRefused
from jobtable.store.backend import Item

VALUES = {":s": {"S": "a"}}
ITEM: Item = {"a": {"S": "a"}}

TOO_MANY = "The expression contains too many operators; operator count: 301"
WRONG_TYPE = "Incorrect operand type for operator or function; operator or function: "
SIZE_OF_SIZE = f"{WRONG_TYPE}size, operand type: N"
OPERATORS_299 = " OR ".join(["a = :s"] * 150)
SUMS_300 = ",".join(f"a{i}=b+b" for i in range(300))
MISSING_VALUE = "An expression attribute value used in expression is not defined; attribute value: :missing"
TWICE = (
    "The first operand must be distinct from the remaining operands for this operator or function; "
    "operator: contains, first operand: [b]"
)

ACCEPTED = [
    " AND ".join(["a = :s"] * 150),
    " AND ".join(["attribute_exists(a)"] * 149) + " OR a = :s",
    "NOT " * 298 + "a = :s",
    "(".join(["a = :s AND "] * 149) + "a = :s" + ")" * 148,
    "a IN (" + ",".join([":s"] * 100) + ")",
    "a = :s" + " " * 4090,
    "a = :s OR " + ".".join(["b"] * 32) + " = :s",
]
REFUSED = {
    " AND ".join(["a = :s"] * 151): TOO_MANY,
    " AND ".join(["a = :s"] * 350): TOO_MANY,
    "NOT " * 300 + "a = :s": TOO_MANY,
    "(" * 500 + "a = :s" + ")" * 500: "The expression has redundant parentheses;",
    "a = " + "(" * 500 + ":s" + ")" * 500: "The expression has redundant parentheses;",
    "a = " + "size(" * 299 + "b" + ")" * 299: SIZE_OF_SIZE,
    "a = " + "size(" * 600 + "b" + ")" * 600: SIZE_OF_SIZE,
    f"{OPERATORS_299} OR contains(b, b)": TWICE,
    f"NOT {OPERATORS_299} OR contains(b, b)": TWICE,
    f"NOT NOT {OPERATORS_299} OR contains(b, b)": TOO_MANY,
    f"NOT NOT {OPERATORS_299} OR a = :missing": TOO_MANY,
    f"a = :missing OR {OPERATORS_299}": MISSING_VALUE,
    f"#missing = a OR {OPERATORS_299}": (
        "An expression attribute name used in the document path is not defined; attribute name: #missing"
    ),
    "a = :s OR (" * 200 + "size(size(a)) = :s" + ")" * 200: SIZE_OF_SIZE,
    "a = " + "f(" * 1300 + "b" + ")" * 1300: "Invalid function name; function: f",
    "f(a) OR " + " OR ".join(["a = :s"] * 350): "Invalid function name; function: f",
    "a = " + "size(" * 600 + "b": 'Syntax error; token: "<EOF>", near: "b"',
    "a IN (" + ",".join([":s"] * 101) + ")": (
        "The IN operator is provided with too many operands; number of operands: 101"
    ),
    "a = :s" + " " * 4091: "Expression size has exceeded the maximum allowed size; expression size: 4097",
    ".".join(["a"] * 33) + " = :s": "The document path has too many nesting levels; nesting levels: 33",
    "a" + "[0]" * 32 + " = :s": "The document path has too many nesting levels; nesting levels: 33",
    "attribute_type(a, b) OR a = :s": f"{WRONG_TYPE}attribute_type, operand type: {{NS,SS,L,BS,N,M,B,BOOL,NULL,S}}",
    "a\f= :s": 'Syntax error; token: "\f", near: "a\f="',
}


@pytest.mark.parametrize("expression", ACCEPTED)
def test_accepted_at_the_limit(expression: str) -> None:
    assert compile_condition(expression, Placeholders(None, VALUES)).holds(ITEM)


@pytest.mark.parametrize("expression", REFUSED)
def test_refused_beyond_the_limit(expression: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        compile_condition(expression, Placeholders(None, VALUES), "FilterExpression")
    assert caught.value.message == f"Invalid FilterExpression: {REFUSED[expression]}"


@pytest.mark.parametrize(
    "expression",
    ["(" * 2000 + "a", "size(" * 600 + "a", "((a) AND " * 400, "NOT " * 1000, "a" + "[0]" * 1300, "a = " + "(" * 2000],
)
def test_deep_nesting_is_refused(expression: str) -> None:
    with pytest.raises(RequestRefused):
        compile_condition(expression, Placeholders(None, VALUES))
    with pytest.raises(RequestRefused):
        compile_update(f"SET a = {expression}", Placeholders(None, VALUES))


def test_functions_of_an_update_are_nested_as_deeply_as_the_text_allows() -> None:
    update = compile_update("SET b = " + "if_not_exists(c," * 230 + ":s" + ")" * 230, Placeholders(None, VALUES))
    assert update.apply(ITEM) == {**ITEM, "b": VALUES[":s"]}


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("SET a = " + "f(" * 1300 + "b" + ")" * 1300, "Invalid function name; function: f"),
        ("SET a = " + "(" * 800 + "b + :s" + ")" * 800, "The expression has redundant parentheses;"),
        ("SET a = " + "(" * 800 + "b" + ")" * 800 + " + :s", "The expression has redundant parentheses;"),
        (f"SET {SUMS_300}, c = b + b", TOO_MANY),
        # The actions are looked at from the last to the first.
        (f"SET c = b + :s, d = b + b, {SUMS_300}", TOO_MANY),
        (f"SET c = b + :s, {SUMS_300}", f"{WRONG_TYPE}+, operand type: S"),
        (f"SET c = :missing, d = b + b, {SUMS_300}", TOO_MANY),
        (f"SET c = :missing, {SUMS_300}", MISSING_VALUE),
        (f"SET {SUMS_300}, c = b + b, d = :missing", MISSING_VALUE),
        (
            f"SET {SUMS_300}, c = b + b, c = b",
            "Two document paths overlap with each other; must remove or rewrite one of these paths; "
            "path one: [c], path two: [c]",
        ),
    ],
)
def test_updates_beyond_the_limit(expression: str, reason: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        compile_update(expression, Placeholders(None, VALUES))
    assert caught.value.message == f"Invalid UpdateExpression: {reason}"


@pytest.mark.parametrize("expression", ["(" * 1000, "(" * 500 + "a = :s" + ")" * 500, "((a = :s) OR " * 300])
def test_parentheses_are_looked_at_a_few_times_each(expression: str) -> None:
    assert _lines_run(expression) < 100 * len(expression)


def _lines_run(expression: str) -> int:
    """How many lines of code run until the expression is refused."""
    lines = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    previous = sys.gettrace()
    sys.settrace(count)
    try:
        with pytest.raises(RequestRefused):
            compile_condition(expression, Placeholders(None, VALUES))
    finally:
        sys.settrace(previous)
    return lines


@pytest.mark.parametrize(
    ("parameter", "compiled"), [("UpdateExpression", compile_update), ("ProjectionExpression", compile_projection)]
)
def test_size_of_other_expressions(parameter: str, compiled: object) -> None:
    assert callable(compiled)
    with pytest.raises(RequestRefused) as caught:
        compiled("a" * 4097, Placeholders())
    assert caught.value.message == f"Invalid {parameter}: Expression size has exceeded the maximum allowed size;"


@pytest.mark.parametrize("word", sorted(RESERVED_WORDS))
def test_reserved_words_are_no_names(word: str) -> None:
    for spelled in (word, word.lower()):
        with pytest.raises(RequestRefused, match=r"reserved keyword: |Syntax error"):
            compile_projection(f"a, {spelled}", Placeholders())
    assert compile_projection("#a", Placeholders({"#a": word})).apply({word: {"S": "x"}}) == {word: {"S": "x"}}


def test_the_number_of_reserved_words() -> None:
    assert len(RESERVED_WORDS) == 573


PIECES = st.sampled_from(  # as text they read better than as a list of literals
    "a b #n :s :n AND OR NOT ( ) [ ] 0 1 . , = <> < >= + - IN BETWEEN SET REMOVE ADD DELETE size contains ! é".split()  # noqa: SIM905  # the same
)


@given(st.lists(PIECES, max_size=25).map(" ".join) | st.text(max_size=40))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    for compiled in (compile_condition, compile_update, compile_projection):
        placeholders = Placeholders({"#n": "c"}, {":s": {"S": "x"}, ":n": {"N": "1"}})
        message = "Invalid "
        try:
            compiled(text, placeholders)
        except RequestRefused as error:
            message = error.message
        assert message.startswith("Invalid ")
