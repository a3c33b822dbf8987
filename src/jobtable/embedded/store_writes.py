"""Writes that the typed store asks for: what is known of its requests is not checked again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from jobtable.embedded.expressions import Condition, Update
from jobtable.embedded.expressions.conditions import ConditionProgram, prepare_condition
from jobtable.embedded.expressions.memory import Names, is_short
from jobtable.embedded.expressions.updates import UpdateProgram, prepare_update_program
from jobtable.embedded.keys import key_position, refuse_nested_keys
from jobtable.embedded.requests import Tables, find_table
from jobtable.embedded.schema import TableSchema
from jobtable.embedded.storage import NO_ITEM
from jobtable.embedded.values import validate_value
from jobtable.embedded.writes import (
    Kind,
    Write,
    make_write,
    put_of,
    refuse_key_update,
    returns_item,
    valid_item,
)
from jobtable.store.backend import AttributeValue, EncodedItem, Request

_NOTHING: dict[str, Any] = {}


class _Programs(NamedTuple):
    update: UpdateProgram | None
    condition: ConditionProgram | None
    nested_names: frozenset[str]


def prepare_known(kind: Kind, tables: Tables, request: Request) -> Write:
    """The write that a StoreRequest, or an action of one, asks for."""
    name = request["TableName"]
    table = tables.table(name) or find_table(tables, name)
    condition, update, is_item_returned = None, None, False
    if "ConditionExpression" in request or "UpdateExpression" in request:
        condition, update = _expressions(table, request)
        is_item_returned = returns_item(request)
    if kind == "put":
        item = request["Item"]
        if type(item) is EncodedItem and not item.unknown:
            size = item.size
        else:
            item, size = valid_item(item)
        return put_of(table, item, size, condition, is_item_returned=is_item_returned)
    key = request["Key"]
    refuse_key_update(key, update)
    return make_write((kind, table, key_position(table, key), key, NO_ITEM, 0, condition, update, is_item_returned))


def _expressions(table: TableSchema, request: Request) -> tuple[Condition | None, Update | None]:
    """The condition and the update of a request, or RequestRefused if they do not fit the table."""
    update, condition = request.get("UpdateExpression"), request.get("ConditionExpression")
    entries = tuple(request.get("ExpressionAttributeNames", _NOTHING).items())
    programs = (_known_programs if is_short(entries) else _programs)(update, condition, entries)
    refuse_nested_keys(table, programs.nested_names)
    values = _valid(request.get("ExpressionAttributeValues", _NOTHING))
    return (
        None if programs.condition is None else Condition.of(programs.condition, values),
        None if programs.update is None else Update.of(programs.update, values),
    )


def _programs(update: str | None, condition: str | None, names: Names) -> _Programs:
    found = _Programs(
        None if update is None else prepare_update_program(update, names),
        None if condition is None else prepare_condition(condition, names),
        frozenset(),
    )
    nested = (program.nested_names for program in (found.update, found.condition) if program is not None)
    return found._replace(nested_names=frozenset().union(*nested))


_known_programs = lru_cache(maxsize=1024)(_programs)


def _valid(values: Mapping[str, AttributeValue]) -> Mapping[str, AttributeValue]:
    """The values, with sets, lists and maps in their canonical form."""
    for value in values.values():
        for kind in value:
            if kind not in _SCALARS:
                return {name: validate_value(each) for name, each in values.items()}
    return values


_SCALARS = frozenset({"S", "N", "B", "BOOL", "NULL"})
