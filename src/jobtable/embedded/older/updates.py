"""AttributeUpdates."""

from __future__ import annotations

from typing import Any

from jobtable.embedded.expressions import Update
from jobtable.embedded.expressions import update_values as compute
from jobtable.embedded.expressions.operand_checks import Checks
from jobtable.embedded.expressions.update_costs import NO_COST
from jobtable.embedded.expressions.update_values import Computed, Values
from jobtable.embedded.expressions.updates import Step, UpdateProgram
from jobtable.embedded.older.comparisons import check_name
from jobtable.embedded.values import validate_value
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Item, Request

_SETS = ("SS", "NS", "BS")
_ADDED = (*_SETS, "N", "L")
_NOTHING: frozenset[str] = frozenset()


def attribute_updates(request: Request) -> Update | None:
    """The update, or RequestRefused; None if it changes nothing."""
    values: dict[str, AttributeValue] = {}
    steps: list[Step] = []
    for name, update in (request.get("AttributeUpdates") or {}).items():
        check_name(name)
        if update is not None:  # DynamoDB takes null for nothing
            steps.append(_step(name, update, values))
    return Update(_program(steps, values), values) if steps else None


def _step(name: str, update: dict[str, Any], values: dict[str, AttributeValue]) -> Step:
    """What is done to one attribute; its value, if there is one, is kept under the attribute's name."""
    action, value = update.get("Action") or "PUT", update.get("Value")
    if value is None:
        if action != "DELETE":
            raise RequestRefused(f"{INVALID}Only DELETE action is allowed when no attribute value is specified")
        return Step("REMOVE", (name,), compute.NOTHING)
    values[name] = validate_value(value)
    [kind] = values[name]
    if action == "PUT":
        return Step("SET", (name,), compute.value(name))
    if action == "DELETE":
        if kind not in _SETS:
            raise RequestRefused(f"{INVALID}DELETE action with value is not supported for the type {kind}")
        return Step("DELETE", (name,), _of_same_type(name, kind, compute.deleted((name,), name)))
    if kind not in _ADDED:
        raise RequestRefused(f"{INVALID}ADD action is not supported for the type {kind}")
    added = _appended(name) if kind == "L" else compute.added((name,), name)
    return Step("ADD", (name,), _of_same_type(name, kind, added))


def _of_same_type(name: str, kind: str, computed: Computed) -> Computed:
    """The same, where the attribute has this type or is not there."""

    def checked(item: Item, values: Values) -> AttributeValue | None:
        if kind not in item.get(name, (kind,)):
            raise RequestRefused("Type mismatch for attribute to update")
        return computed(item, values)

    return checked


def _appended(name: str) -> Computed:
    """The old list, and behind it the elements of another."""

    def computed(item: Item, values: Values) -> AttributeValue:
        return {"L": item[name]["L"] + values[name]["L"]} if name in item else values[name]

    return computed


def _program(steps: list[Step], values: dict[str, AttributeValue]) -> UpdateProgram:
    names = [str(step.path[0]) for step in steps]
    return UpdateProgram(
        steps=tuple(steps),
        tree=dict.fromkeys(names),
        checks=Checks(()),
        names_used=_NOTHING,
        values_used=_NOTHING,
        nested_names=_NOTHING,
        top_level_names=frozenset(names),
        is_flat=True,
        only_removes=all(step.section in ("DELETE", "REMOVE") for step in steps),
        sources=tuple((name, name) for name in values),
        cost=NO_COST,
    )
