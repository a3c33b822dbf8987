"""The function of each operation. Its module is loaded with the first such request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TypeAlias

from jobtable.embedded.request_model import read_request
from jobtable.embedded.storage import Storage
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request, Response

Handler: TypeAlias = Callable[[Storage, Request], Response]
"""Runs one operation: returns the response, or raises RequestError."""

OPERATIONS = {
    "GetItem": "items:get_item",
    "PutItem": "items:put_item",
    "UpdateItem": "items:update_item",
    "DeleteItem": "items:delete_item",
    "Query": "queries:query",
    "Scan": "queries:scan",
    "BatchGetItem": "batches:batch_get_item",
    "BatchWriteItem": "batches:batch_write_item",
    "TransactGetItems": "transactions:transact_get_items",
    "TransactWriteItems": "transactions:transact_write_items",
    "ExecuteStatement": "partiql.operations:execute_statement",
    "BatchExecuteStatement": "partiql.operations:batch_execute_statement",
    "ExecuteTransaction": "partiql.operations:execute_transaction",
    "CreateTable": "tables:create",
    "DescribeTable": "tables:describe",
    "ListTables": "tables:list_names",
    "UpdateTable": "table_updates:update",
    "DeleteTable": "table_updates:delete",
    "DescribeLimits": "tables:describe_limits",
    "DescribeEndpoints": "tables:describe_endpoints",
    "UpdateTimeToLive": "tables:update_ttl",
    "DescribeTimeToLive": "tables:describe_ttl",
    "TagResource": "tags:tag",
    "UntagResource": "tags:untag",
    "ListTagsOfResource": "tags:list_tags",
    "DescribeContinuousBackups": "restores:describe",
    "UpdateContinuousBackups": "restores:update",
    "RestoreTableToPointInTime": "restores:restore",
    "CreateBackup": "backups:create",
    "DescribeBackup": "backups:describe",
    "ListBackups": "backups:list_backups",
    "DeleteBackup": "backups:delete",
    "RestoreTableFromBackup": "backups:restore",
    "ListStreams": "streams:list_streams",
    "DescribeStream": "streams:describe",
    "GetShardIterator": "streams:iterator",
    "GetRecords": "streams:records",
}
"""The module of each operation, below `jobtable.embedded`, and the function in it."""
_OF_ITEMS = frozenset({"items", "queries", "batches", "transactions", "partiql.operations"})
"""The modules that read members where they need them. Types are checked only for requests that they refuse."""

_loaded: dict[str, Handler] = {}


def handler_of(operation: str) -> Handler:
    """Return the function that runs an operation, or raise RequestRefused if there is none."""
    handler = _loaded.get(operation)
    if handler is None:
        if operation not in OPERATIONS:
            raise RequestRefused(f"This engine has no operation {operation!r}", code="UnknownOperationException")
        module, _, function = OPERATIONS[operation].partition(":")
        handler = getattr(import_module(f"jobtable.embedded.{module}"), function)
        _loaded[operation] = handler = handler if module in _OF_ITEMS else partial(_run_as_read, operation, handler)
    return handler


def _run_as_read(operation: str, handler: Handler, storage: Storage, request: Request) -> Response:
    """Read the whole request first, so that its function can rely on the types of its members."""
    return handler(storage, read_request(operation, request))
