"""Random parameters from before expressions: mostly valid, on purpose sometimes not."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.embedded.differential.tables import Index, Table
from tests.embedded.differential.vocabulary import Value, a_set, key_value, scalar, sloppy_value, usual_value, value

Request = dict[str, Any]

_NAMES = ("a", "b", "c", "d", "a", "b", "c", "d", "e", "g1", "g2", "sk", "pk", "a.b", "b[0]")
_UPDATED = ("a", "b", "c", "d", "e", "g1", "g2", "g3", "a.b")
_ORDERINGS = ("EQ", "LE", "LT", "GE", "GT", "BETWEEN", "BEGINS_WITH")
_COMPARISONS = (*_ORDERINGS, "NE", "NULL", "NOT_NULL", "CONTAINS", "NOT_CONTAINS", "IN")


def with_expected(rng: Random, request: Request) -> None:
    """Expected, and what joins it."""
    request["Expected"] = {name: _expectation(rng, name) for name in _some(rng, _NAMES)}
    _join(rng, request, len(request["Expected"]))


def with_filter(rng: Random, request: Request, parameter: str) -> None:
    """A QueryFilter or a ScanFilter, and what joins it."""
    names = _NAMES if rng.random() < 0.2 else ("a", "b", "c", "d", "e", "a.b")
    request[parameter] = {name: _condition(rng, _operand(rng, name)) for name in _some(rng, names)}
    _join(rng, request, len(request[parameter]))


def with_updates(rng: Random, request: Request, table: Table) -> None:
    """AttributeUpdates."""
    request["AttributeUpdates"] = {name: _update(rng, name, table) for name in _some(rng, _UPDATED)}
    if rng.random() < 0.02:
        request["AttributeUpdates"]["pk"] = {"Action": "DELETE"}


def with_names(rng: Random, request: Request) -> None:
    """AttributesToGet."""
    names = _some(rng, _NAMES)
    request["AttributesToGet"] = [*names, names[0]] if rng.random() < 0.05 else names


def with_key_conditions(rng: Random, request: Request, table: Table, index: Index | None) -> None:
    """KeyConditions that mostly suit the key of what is queried."""
    partition = (table.partition,) if index is None else index.partition
    sort = table.key_parts[1:] if index is None else index.sort
    conditions = {name: _compared(rng, "EQ", key_value(rng, kind)) for name, kind in partition}
    used = list(sort[: rng.randint(0, len(sort))])
    for name, kind in used[:-1]:
        conditions[name] = _compared(rng, "EQ", key_value(rng, kind))
    for name, kind in used[-1:]:
        operators = _ORDERINGS if kind != "N" else _ORDERINGS[:-1]
        conditions[name] = _compared(rng, rng.choice(operators), key_value(rng, kind), key_value(rng, kind))
    if rng.random() < 0.06:
        conditions[rng.choice(_NAMES)] = _condition(rng, key_value(rng, rng.choice("SNB")))
    request["KeyConditions"] = conditions


def _some(rng: Random, names: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(rng.choice(names) for _ in range(rng.choice((1, 1, 2, 2, 3)))))


def _join(rng: Random, request: Request, count: int) -> None:
    if rng.random() < (0.6 if count > 1 else 0.03):
        request["ConditionalOperator"] = rng.choice(("AND", "OR", "OR"))


def _expectation(rng: Random, name: str) -> Request:
    form = rng.random()
    if form < 0.25:
        return {"Value": _operand(rng, name)} | ({"Exists": True} if rng.random() < 0.3 else {})
    if form < 0.4:
        return {"Exists": False}
    if form < 0.44:
        return {"Exists": rng.choice((True, False)), "Value": _operand(rng, name), "ComparisonOperator": "EQ"}
    if form < 0.5:
        return {"ComparisonOperator": rng.choice(_COMPARISONS), "Value": _operand(rng, name)}
    return _condition(rng, _operand(rng, name))


def _operand(rng: Random, name: str) -> Value:
    """A value that an attribute may have, or a part of it."""
    if rng.random() < 0.4:
        return usual_value(rng, name)
    return scalar(rng, rng.choice(("S", "N", "N", "B", "BOOL", "NULL"))) if rng.random() < 0.8 else sloppy_value(rng)


def _condition(rng: Random, operand: Value) -> Request:
    other = operand
    for kind in operand:
        if rng.random() < 0.9 and kind in ("S", "N", "B"):
            other = scalar(rng, kind)
    return _compared(rng, rng.choice(_COMPARISONS), operand, other)


def _compared(rng: Random, operator: str, *operands: Value) -> Request:
    """A condition, mostly with as many values as the operator takes."""
    count = {"NULL": 0, "NOT_NULL": 0, "BETWEEN": 2, "IN": rng.randint(1, 2)}.get(operator, 1)
    if rng.random() < 0.03:
        count = rng.randint(0, 2)
    values = [*operands, *operands][:count]
    if operator == "BETWEEN" and rng.random() < 0.8:
        values.sort(key=lambda found: str(found.get("S", found.get("B", found.get("N", "")))).rjust(5))
    return (
        {"ComparisonOperator": operator, "AttributeValueList": values} if values else {"ComparisonOperator": operator}
    )


def _update(rng: Random, name: str, table: Table) -> Request:
    action = rng.choice(("PUT", "PUT", "ADD", "ADD", "DELETE", "DELETE"))
    kind = table.key_types.get(name)
    if action == "PUT":
        return {"Action": action, "Value": usual_value(rng, name) if kind is None else key_value(rng, kind)}
    if action == "DELETE":
        return {"Action": action} | ({"Value": a_set(rng)} if rng.random() < 0.5 else {})
    form = rng.random()
    if form < 0.1:
        return {"Action": action, "Value": value(rng)}
    if form < 0.3:
        return {"Action": action, "Value": {"L": [value(rng, 1) for _ in range(rng.randint(0, 2))]}}
    return {"Action": action, "Value": a_set(rng) if form < 0.6 else scalar(rng, "N")}
