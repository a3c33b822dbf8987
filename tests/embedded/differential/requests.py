"""Random requests for the item operations: mostly valid, on purpose sometimes not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.embedded.differential import older
from tests.embedded.differential.expressions import ExpressionWriter
from tests.embedded.differential.statements import batch_execute_statement, execute_statement, execute_transaction
from tests.embedded.differential.tables import TABLES, Index, Table
from tests.embedded.differential.vocabulary import item, key

Request = dict[str, Any]
Step = tuple[str, Request]
"""An operation and its request."""


_OLDER = 0.12
"""How many requests have parameters from before expressions."""


def step(rng: Random) -> Step:
    """One operation on the tables."""
    operation = rng.choice(_WEIGHTED)
    return operation, _WRITERS[operation](rng)


def _table(rng: Random) -> Table:
    return rng.choice(TABLES)


def _maybe(rng: Random, request: Request, member: str, options: tuple[Any, ...], chance: float = 0.3) -> None:
    if rng.random() < chance:
        request[member] = rng.choice(options)


def _capacity(rng: Random, request: Request) -> None:
    _maybe(rng, request, "ReturnConsumedCapacity", ("TOTAL", "INDEXES", "INDEXES", "NONE"), 0.4)


def _write_options(rng: Random, request: Request, return_values: tuple[str, ...]) -> None:
    _capacity(rng, request)
    _maybe(rng, request, "ReturnValues", return_values)
    _maybe(rng, request, "ReturnValuesOnConditionCheckFailure", ("ALL_OLD", "NONE"))
    _maybe(rng, request, "ReturnItemCollectionMetrics", ("SIZE", "NONE"), 0.1)


def put_item(rng: Random) -> Request:
    """PutItem."""
    table = _table(rng)
    request: Request = {"TableName": table.name, "Item": item(rng, table)}
    _with_condition(rng, request, 0.3)
    _write_options(rng, request, ("ALL_OLD",) * 8 + ("NONE", "NONE", "ALL_NEW"))
    return request


def _with_condition(rng: Random, request: Request, chance: float) -> None:
    if rng.random() < _OLDER:
        older.with_expected(rng, request)
    elif rng.random() < chance:
        writer = ExpressionWriter(rng)
        request["ConditionExpression"] = writer.condition()
        writer.into(request)


def get_item(rng: Random) -> Request:
    """GetItem."""
    table = _table(rng)
    request: Request = {"TableName": table.name, "Key": key(rng, table)}
    _projected(rng, request)
    _maybe(rng, request, "ConsistentRead", (True, False))
    _capacity(rng, request)
    return request


def _projected(rng: Random, request: Request) -> None:
    if rng.random() < _OLDER:
        older.with_names(rng, request)
    elif rng.random() < 0.4:
        writer = ExpressionWriter(rng)
        request["ProjectionExpression"] = writer.projection()
        writer.into(request)


def update_item(rng: Random) -> Request:
    """UpdateItem."""
    table = _table(rng)
    request: Request = {"TableName": table.name, "Key": key(rng, table)}
    if rng.random() < _OLDER:
        older.with_updates(rng, request, table)
        if rng.random() < 0.3:
            older.with_expected(rng, request)
    else:
        writer = ExpressionWriter(rng)
        if rng.random() < 0.95:
            request["UpdateExpression"] = writer.update(table)
        if rng.random() < 0.25:
            request["ConditionExpression"] = writer.condition()
        writer.into(request)
    _write_options(rng, request, ("ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW", "NONE"))
    return request


def delete_item(rng: Random) -> Request:
    """DeleteItem."""
    table = _table(rng)
    request: Request = {"TableName": table.name, "Key": key(rng, table)}
    _with_condition(rng, request, 0.4)
    _write_options(rng, request, ("ALL_OLD",) * 8 + ("NONE", "NONE", "UPDATED_OLD"))
    return request


def query(rng: Random) -> Request:
    """Query of a table or an index."""
    table = _table(rng)
    index = rng.choice((None, *table.indexes))
    request: Request = {"TableName": table.name}
    writer = ExpressionWriter(rng)
    if is_older := rng.random() < _OLDER:
        older.with_key_conditions(rng, request, table, index)
    else:
        request["KeyConditionExpression"] = writer.key_condition(table, index)
    if is_older and rng.random() < 0.7:
        _older_selection(rng, request, "QueryFilter")
    else:
        _selection(rng, request, writer)
    _read_options(rng, request, table, index)
    _maybe(rng, request, "ScanIndexForward", (True, False, False))
    writer.into(request)
    return request


def scan(rng: Random) -> Request:
    """Scan of a table or an index, or of a segment of it."""
    table = _table(rng)
    index = rng.choice((None, None, *table.indexes))
    request: Request = {"TableName": table.name}
    writer = ExpressionWriter(rng)
    if rng.random() < _OLDER:
        _older_selection(rng, request, "ScanFilter")
    else:
        _selection(rng, request, writer)
    _read_options(rng, request, table, index)
    if rng.random() < 0.15:
        request["TotalSegments"] = rng.choice((1, 2, 3))
        request["Segment"] = rng.choice((0, 0, 1))
    writer.into(request)
    return request


def _selection(rng: Random, request: Request, writer: ExpressionWriter) -> None:
    if rng.random() < 0.3:
        request["FilterExpression"] = writer.condition()
    if rng.random() < 0.25:
        request["ProjectionExpression"] = writer.projection()


def _older_selection(rng: Random, request: Request, parameter: str) -> None:
    if rng.random() < 0.7:
        older.with_filter(rng, request, parameter)
    if rng.random() < 0.3:
        older.with_names(rng, request)


def _read_options(rng: Random, request: Request, table: Table, index: Index | None) -> None:
    if index is not None:
        request["IndexName"] = index.name
    selections = ("ALL_ATTRIBUTES", "COUNT", "COUNT", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES")
    _maybe(rng, request, "Select", selections, 0.2)
    _maybe(rng, request, "Limit", (1, 2, 3, 5))
    _maybe(rng, request, "ConsistentRead", (True, False), 0.2)
    if rng.random() < 0.1:
        start = key(rng, table)
        if index is not None:
            whole = item(rng, table)
            wanted = dict(index.partition) | dict(index.sort)
            start |= {name: content for name, content in whole.items() if name in wanted and name not in start}
        request["ExclusiveStartKey"] = start
    _capacity(rng, request)


def batch_get_item(rng: Random) -> Request:
    """BatchGetItem of a few tables."""
    tables = rng.sample(TABLES, rng.choice((1, 1, 2)))
    request: Request = {"RequestItems": {}}
    for table in tables:
        part: Request = {"Keys": [key(rng, table) for _ in range(rng.randint(1, 4))]}
        _projected(rng, part)
        _maybe(rng, part, "ConsistentRead", (True, False))
        request["RequestItems"][table.name] = part
    _capacity(rng, request)
    return request


def batch_write_item(rng: Random) -> Request:
    """BatchWriteItem of a few tables."""
    tables = rng.sample(TABLES, rng.choice((1, 1, 2)))
    request: Request = {"RequestItems": {}}
    for table in tables:
        writes = []
        for _ in range(rng.randint(1, 4)):
            if rng.random() < 0.7:
                writes.append({"PutRequest": {"Item": item(rng, table)}})
            else:
                writes.append({"DeleteRequest": {"Key": key(rng, table)}})
        request["RequestItems"][table.name] = writes
    _capacity(rng, request)
    _maybe(rng, request, "ReturnItemCollectionMetrics", ("SIZE", "NONE"), 0.1)
    return request


def transact_get_items(rng: Random) -> Request:
    """TransactGetItems."""
    gets = []
    for _ in range(rng.randint(1, 4)):
        table = _table(rng)
        get: Request = {"TableName": table.name, "Key": key(rng, table)}
        _projected(rng, get)
        gets.append({"Get": get})
    request: Request = {"TransactItems": gets}
    _capacity(rng, request)
    return request


def transact_write_items(rng: Random) -> Request:
    """TransactWriteItems, sometimes with a token of few; the runner makes tokens its own by their first sign."""
    request: Request = {"TransactItems": [_action(rng) for _ in range(rng.choice((1, 1, 2, 3, 4)))]}
    _maybe(rng, request, "ClientRequestToken", ("@1", "@2"), 0.4)
    _capacity(rng, request)
    _maybe(rng, request, "ReturnItemCollectionMetrics", ("SIZE", "NONE"), 0.1)
    return request


def _action(rng: Random) -> Request:
    table = _table(rng)
    kind = rng.choice(("Put", "Put", "Update", "Update", "Delete", "ConditionCheck"))
    writer = ExpressionWriter(rng)
    action: Request = {"TableName": table.name}
    if kind == "Put":
        action["Item"] = item(rng, table)
    else:
        action["Key"] = key(rng, table)
    if kind == "Update":
        action["UpdateExpression"] = writer.update(table)
    if kind == "ConditionCheck" or rng.random() < 0.25:
        action["ConditionExpression"] = writer.condition(1)
    writer.into(action)
    _maybe(rng, action, "ReturnValuesOnConditionCheckFailure", ("ALL_OLD", "NONE"), 0.4)
    return {kind: action}


_WRITERS: dict[str, Callable[[Random], Request]] = {
    "PutItem": put_item,
    "GetItem": get_item,
    "UpdateItem": update_item,
    "DeleteItem": delete_item,
    "Query": query,
    "Scan": scan,
    "BatchGetItem": batch_get_item,
    "BatchWriteItem": batch_write_item,
    "TransactGetItems": transact_get_items,
    "TransactWriteItems": transact_write_items,
    "ExecuteStatement": execute_statement,
    "BatchExecuteStatement": batch_execute_statement,
    "ExecuteTransaction": execute_transaction,
}
_WEIGHTS = {
    "PutItem": 6,
    "UpdateItem": 6,
    "GetItem": 2,
    "DeleteItem": 2,
    "Query": 5,
    "Scan": 2,
    "BatchGetItem": 1,
    "BatchWriteItem": 2,
    "TransactGetItems": 1,
    "TransactWriteItems": 3,
    "ExecuteStatement": 3,
    "BatchExecuteStatement": 1,
    "ExecuteTransaction": 1,
}
_WEIGHTED = tuple(operation for operation, weight in _WEIGHTS.items() for _ in range(weight))
