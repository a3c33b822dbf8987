"""Requests broken in one or two places, so that the order of checks shows."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from random import Random
from typing import Any

from tests.embedded.differential.requests import Step
from tests.embedded.differential.vocabulary import FAULTY_VALUES

_WRONG: tuple[Any, ...] = (None, 0, -1, 101, 1.5, True, "", "x", [], {}, {"S": "a"}, ["x"], "NONE", "é", "a" * 256)
_UNKNOWN_MEMBERS = (
    ("Unknown", "x"),
    ("Limit", 0),
    ("Limit", -1),
    ("Segment", 2),
    ("TotalSegments", 0),
    ("Select", "x"),
)
_KNOWN_MEMBERS: tuple[tuple[str, Any], ...] = (
    ("ReturnValues", "SOME"),
    ("ReturnConsumedCapacity", "SOME"),
    ("ReturnItemCollectionMetrics", "SOME"),
    ("ReturnValuesOnConditionCheckFailure", "SOME"),
    ("ExpressionAttributeNames", {}),
    ("ExpressionAttributeValues", {}),
    ("ExpressionAttributeNames", {"#n": "a"}),
    ("ExpressionAttributeNames", {"n": "a"}),
    ("ExpressionAttributeNames", {"#n": ""}),
    ("ExpressionAttributeValues", {":v": {"S": "a"}}),
    ("ExpressionAttributeValues", {"v": {"S": "a"}}),
    ("ExpressionAttributeValues", {":v": {"N": "x"}}),
    ("ConditionExpression", ""),
    ("ConditionExpression", "attribute_exists(pk)"),
    ("FilterExpression", ""),
    ("FilterExpression", "pk = :v0"),
    ("ProjectionExpression", ""),
    ("ProjectionExpression", "a, a"),
    ("ProjectionExpression", "a, a.b"),
    ("KeyConditionExpression", ""),
    ("UpdateExpression", ""),
    ("UpdateExpression", "SET pk = :v0"),
    ("AttributesToGet", []),
    ("AttributesToGet", ["a", "a"]),
    ("AttributeUpdates", {}),
    ("ConditionalOperator", "OR"),
    ("ConditionalOperator", "XOR"),
    ("Expected", {"a": {"Exists": True}}),
    ("KeyConditions", {}),
    ("QueryFilter", {"a": {"ComparisonOperator": "EQ"}}),
    ("ScanFilter", {"a": {"ComparisonOperator": "NULL"}}),
    ("IndexName", "Nope"),
    ("IndexName", "x"),
    ("TableName", "Nope"),
    ("TableName", "x"),
    ("TableName", "bad name"),
    ("ConsistentRead", True),
    ("ClientRequestToken", ""),
    ("ClientRequestToken", "x" * 37),
)
_TOKEN = re.compile(r"\s+|[#:]?\w+|<>|<=|>=|.")
_EXPRESSION_TOKENS = (
    *("(", ")", ",", "=", "<>", "AND", "NOT", "SET", "BETWEEN", "IN", "!", ".", "[0]", "[x]", "[99999999999]"),
    *("#", ":", "#nope", ":nope", "name", "size", "size(a)", "contains", "foo(a)", "pk", "1", "é"),
)


def mutated(rng: Random, step: Step) -> Step:
    """The step with one or two faults."""
    operation, request = copy.deepcopy(step)
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice(_MUTATIONS)(rng, request)
    return operation, request


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Every member and element under a request, as its container and its name or number there."""
    found: list[tuple[Any, Any]] = []
    if isinstance(node, dict | list):
        for place in sorted(node) if isinstance(node, dict) else range(len(node)):
            found.append((node, place))
            found += _places(node[place])
    return found


def _members(rng: Random, request: Any) -> list[tuple[Any, Any]]:
    """Candidates for a fault; the top level is as likely as all that is below."""
    top = [(request, place) for place in sorted(request)]
    return top if rng.random() < 0.5 else _places(request)


def _drop(rng: Random, request: Any) -> None:
    if places := _members(rng, request):
        container, place = rng.choice(places)
        del container[place]


def _rename(rng: Random, request: Any) -> None:
    places = [found for found in _places(request) if isinstance(found[0], dict)]
    if places:
        container, place = rng.choice(places)
        new = rng.choice((f"{place}x", place[:1], "", place.lower(), place.upper()))
        container[new] = container.pop(place)


def _replace(rng: Random, request: Any) -> None:
    if places := _members(rng, request):
        container, place = rng.choice(places)
        container[place] = copy.deepcopy(rng.choice(_WRONG))


def _add_unknown(rng: Random, request: Any) -> None:
    name, content = rng.choice(_UNKNOWN_MEMBERS)
    request[name] = content


def _add_known(rng: Random, request: Any) -> None:
    name, content = rng.choice(_KNOWN_MEMBERS)
    request[name] = copy.deepcopy(content)


def _faulty_value(rng: Random, request: Any) -> None:
    places = [found for found in _places(request) if _is_attribute_value(found[0][found[1]])]
    if places:
        container, place = rng.choice(places)
        container[place] = copy.deepcopy(rng.choice(FAULTY_VALUES))


def _is_attribute_value(node: Any) -> bool:
    return (
        isinstance(node, dict)
        and len(node) == 1
        and set(node) < {"S", "N", "B", "SS", "NS", "BS", "BOOL", "NULL", "L", "M"}
    )


def _retyped_value(rng: Random, request: Any) -> None:
    places = [found for found in _places(request) if _is_attribute_value(found[0][found[1]])]
    if places:
        container, place = rng.choice(places)
        container[place] = rng.choice(({"S": "a"}, {"N": "1"}, {"B": "AA=="}, {"BOOL": True}, {"L": []}, {"SS": ["a"]}))


def _repeat_element(rng: Random, request: Any) -> None:
    lists = [container[place] for container, place in _places(request) if isinstance(container[place], list)]
    lists = [found for found in lists if found]
    if lists:
        chosen = rng.choice(lists)
        chosen.extend([copy.deepcopy(rng.choice(chosen))] * rng.choice((1, 1, 1, 25, 100)))


def _broken_expression(rng: Random, request: Any) -> None:
    places = [found for found in _places(request) if str(found[1]).endswith(("Expression", "Statement"))]
    places = [found for found in places if isinstance(found[0][found[1]], str)]
    if not places:
        return
    container, place = rng.choice(places)
    tokens = _TOKEN.findall(container[place]) or [" "]
    position = rng.randrange(len(tokens))
    change = rng.choice(("drop", "repeat", "replace", "insert", "cut", "swap"))
    if change == "drop":
        del tokens[position]
    elif change == "repeat":
        tokens.insert(position, tokens[position])
    elif change == "replace":
        tokens[position] = rng.choice(_EXPRESSION_TOKENS)
    elif change == "insert":
        tokens.insert(position, f" {rng.choice(_EXPRESSION_TOKENS)} ")
    elif change == "cut":
        del tokens[position:]
    else:
        other = rng.randrange(len(tokens))
        tokens[position], tokens[other] = tokens[other], tokens[position]
    container[place] = "".join(tokens)


_MUTATIONS: tuple[Callable[[Random, Any], None], ...] = (
    _drop,
    _drop,
    _rename,
    _replace,
    _add_unknown,
    _add_known,
    _add_known,
    _faulty_value,
    _faulty_value,
    _retyped_value,
    _repeat_element,
    _broken_expression,
    _broken_expression,
    _broken_expression,
)
