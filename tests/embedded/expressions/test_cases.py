"""Every case of `cases/*.json` has the same outcome here and on DynamoDB Local.

The outcome of a condition is a truth value, of an update the attributes that it changed (null: removed), of a
projection what it gives, of a valid key condition null; of anything invalid it is DynamoDB's message.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from jobtable.embedded.expressions import (
    Placeholders,
    compile_condition,
    compile_projection,
    compile_update,
    prepare_key_condition,
)
from jobtable.embedded.table_schema import KeyAttribute
from jobtable.errors import RequestError

Placed: TypeAlias = dict[str, Any] | None

CASES = {path.stem: json.loads(path.read_text("utf-8")) for path in (Path(__file__).parent / "cases").glob("*.json")}
EACH_CASE = [(kind, expression) for kind in sorted(CASES) for expression in CASES[kind]["outcomes"]]

KNOWN_DIFFERENCES: dict[tuple[str, str], Any] = {
    # SIZE is among the documented reserved words, but DynamoDB Local lets it pass.
    ("conditions", "size = :n"): (
        "Invalid ConditionExpression: Attribute name is a reserved keyword; reserved keyword: size"
    ),
    ("conditions", "size.a = :n"): (
        "Invalid ConditionExpression: Attribute name is a reserved keyword; reserved keyword: size"
    ),
    # The service looks at a key condition before it knows the keys, so it cannot say that a key is a scalar.
    **{
        ("key_conditions", expression): (
            "Invalid KeyConditionExpression: KeyConditionExpressions cannot have conditions on nested attributes"
        )
        for expression, outcome in CASES["key_conditions"]["outcomes"].items()
        if outcome is not None and outcome.startswith("Key attributes must be scalars")
    },
    # The service says what the malformed expression is,
    **{
        ("key_conditions", expression): f"Invalid KeyConditionExpression: {outcome}"
        for expression, outcome in CASES["key_conditions"]["outcomes"].items()
        if outcome is not None and re.match("KeyCond|Invalid (operator|condition) ", outcome)
    },
    # counts the conditions,
    **{
        ("key_conditions", expression): (
            f"The number of query conditions ({expression.count(' AND ') + 1}) exceeds the number of key attributes"
            " defined in the schema (2)"
        )
        for expression, outcome in CASES["key_conditions"]["outcomes"].items()
        if outcome == "Conditions can be of length 1 or 2 only"
    },
    # and names the key attribute that is missing.
    **{
        ("key_conditions", expression): f"Query condition missed key schema element: {missed}"
        for missed, expressions in {
            "pk": ["sk = :s", "a = :t", "a = :n AND b = :s", "sk > :e", "sk = :n"],
            "sk": [
                "pk = :s AND a = :t",
                "pk = :s AND begins_with(a, :t)",
                "pk = :s AND a BETWEEN :s AND :t",
                "pk = :s AND a > :n",
                "pk = :s AND a = :n",
            ],
        }.items()
        for expression in expressions
    },
}


def placed(kind: str, expression: str) -> tuple[Placed, Placed]:
    """The names and values that the expression uses, as far as they are defined."""
    used = re.findall(r"[#:][A-Za-z0-9_]+", expression)
    names = {name: value for name, value in CASES[kind]["names"].items() if name in used}
    values = {name: value for name, value in CASES[kind]["values"].items() if name in used}
    return names or None, values or None


def embedded_outcome(kind: str, expression: str) -> Any:
    item = CASES[kind]["item"]
    try:
        placeholders = Placeholders(*placed(kind, expression))
        if kind == "conditions":
            return compile_condition(expression, placeholders).holds(item)
        if kind == "projections":
            return compile_projection(expression, placeholders).apply(item)
        if kind == "updates":
            return changes(item, compile_update(expression, placeholders).apply(item))
        prepare_key_condition(expression, placeholders).against((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "S"),))
    except RequestError as error:
        return error.message if error.code == "ValidationException" else str(error)
    placeholders.finish()
    return None


def changes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return {name: new.get(name) for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def local_outcome(local: Any, kind: str, expression: str) -> Any:
    names, values = placed(kind, expression)
    item = CASES[kind]["item"]
    placeholders = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
    key = {"TableName": "things", "Key": {"pk": {"S": "k"}}}
    try:
        if kind == "key_conditions":
            local.execute("Query", TableName="sorted_things", KeyConditionExpression=expression, **placeholders)
            return None
        local.put(item)
        if kind == "conditions":
            return local.holds(expression, names, values)
        if kind == "projections":
            answer = local.execute("GetItem", **key, ProjectionExpression=expression, ExpressionAttributeNames=names)
            return answer["Item"]
        local.execute("UpdateItem", **key, UpdateExpression=expression, **placeholders)
        return changes(item, local.attributes())
    except RequestError as error:
        return error.message if error.code == "ValidationException" else str(error)


@pytest.mark.parametrize(("kind", "expression"), EACH_CASE)
def test_embedded(kind: str, expression: str) -> None:
    outcome = CASES[kind]["outcomes"][expression]
    assert embedded_outcome(kind, expression) == KNOWN_DIFFERENCES.get((kind, expression), outcome)


@pytest.mark.parametrize(("kind", "expression"), EACH_CASE)
def test_dynamodb_local(local: Any, kind: str, expression: str) -> None:
    assert local_outcome(local, kind, expression) == CASES[kind]["outcomes"][expression]


def test_known_differences_are_cases() -> None:
    assert set(KNOWN_DIFFERENCES) <= set(EACH_CASE)
