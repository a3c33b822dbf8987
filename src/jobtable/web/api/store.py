"""Read the tables with DynamoDB's own requests, as the command line on another machine does."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Body as JsonBody
from pydantic import BaseModel

from jobtable.errors import NotFoundError, RequestRefused, TableNotFound
from jobtable.reference import tables
from jobtable.web.api.route_parts import api_router
from jobtable.web.explorer import refuse_withheld, texts_in
from jobtable.web.guard import READ, allow
from jobtable.web.injection import CallerOf, TheStore

router = api_router("store")


class Reading(StrEnum):
    """The operations that only read items."""

    GET_ITEM = "GetItem"
    BATCH_GET_ITEM = "BatchGetItem"
    TRANSACT_GET_ITEMS = "TransactGetItems"
    QUERY = "Query"


class StoreView(BaseModel):
    """How the tables are named."""

    prefix: str


@router.get("/store")
@allow(READ)
def get_store(store: TheStore) -> StoreView:
    """Return the prefix of the names of the server's tables."""
    return StoreView(prefix=store.prefix)


@router.post("/store/{operation}")
@allow(READ)
def read_items(
    operation: Reading,
    request: Annotated[
        dict[str, Any],
        JsonBody(examples=[{"TableName": "jobtable", "Key": {"PK": {"S": "JOB#1"}, "SK": {"S": "JOB"}}}]),
    ],
    store: TheStore,
    caller: CallerOf,
) -> dict[str, Any]:
    """Run a reading request of DynamoDB's API on the tables of the systems, and no others."""
    own = {store.table_name(table): table for table in tables()}
    for name in _tables_of(request):
        if not isinstance(name, str) or name not in own:
            raise RequestRefused(f"{name!r} is not a table of this server")
        refuse_withheld(own[name], texts_in(request), caller)
    try:
        return store.ask(operation.value, request, f"remote.{operation.value}")
    except TableNotFound as error:
        raise NotFoundError(error.message, hint=error.hint) from error


def _tables_of(request: dict[str, Any]) -> Iterator[object]:
    """Yield every table that a request names; the backend refuses requests of another shape."""
    if "TableName" in request:
        yield request["TableName"]
    items = request.get("RequestItems")
    yield from items if isinstance(items, dict) else ()
    actions = request.get("TransactItems")
    for action in actions if isinstance(actions, list) else ():
        for each in action.values() if isinstance(action, dict) else ():
            if isinstance(each, dict):
                yield each.get("TableName")
