"""The pages of tables: their items, keys, and consumed capacity."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from jobtable.model import Table
from jobtable.reference import entity_references, table_named, tables
from jobtable.web.api.tables import dollars_for
from jobtable.web.explorer import Asked, explore, index_named, is_withheld
from jobtable.web.guard import READ, Caller, PageRoute, allow
from jobtable.web.injection import CallerOf, TheStore, path_id
from jobtable.web.pages.frame import render

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_PAGE = 25


@router.get("/tables")
@allow(READ)
def show_tables(request: Request, store: TheStore) -> Response:
    units = sorted(store.capacity.by_pattern().items(), key=lambda pair: -(pair[1].read + pair[1].write))
    costs = [(pattern, used, dollars_for(used)) for pattern, used in units]
    return render(
        request,
        "tables.html",
        title="Tables",
        tables=tables(),
        deployed=set(store.tables.names()),
        costs=costs,
        total=store.capacity.total(),
        total_cost=sum(cost for _, _, cost in costs),
    )


@router.get("/tables/{table_name}")
@allow(READ)
def show_table(
    request: Request,
    table_name: Annotated[str, path_id("jobtable")],
    store: TheStore,
    caller: CallerOf,
    *,
    index: str = "",
    partition: Annotated[list[str], Query()] = [],  # noqa: B006 - FastAPI copies it
    sort: Annotated[list[str], Query()] = [],  # noqa: B006 - as above
    cursor: str = "",
) -> Response:
    """Show one table: its items by partition and prefix, and the keys of its entities."""
    table = table_named(table_name)
    chosen = index_named(table, index or None)
    given = [value for value in partition if value]
    asked = Asked(table, chosen, given, [value for value in sort if value])
    items, following = explore(store, asked, caller, cursor=cursor or None, limit=_PAGE) if given else ([], None)
    attributes = chosen.partition if chosen else table.primary[:1]
    return render(
        request,
        "table.html",
        title=table.name,
        table=table,
        index=index,
        attributes=attributes,
        sort_attributes=chosen.sort if chosen else table.primary[1:],
        partition=given,
        sort=[value for value in sort if value],
        items=items,
        cursor=following,
        is_first=not cursor,
        kinds=_kinds(table, caller),
        references=[each for each in entity_references() if each.table == table.name],
    )


def _kinds(table: Table, caller: Caller) -> list[tuple[str, str]]:
    """Return the entities that the caller may read, each with the query that lists its items, if an index can."""
    by_type = table.type_index
    if by_type is None:
        return []
    return [
        (schema.name, f"?index={by_type.name}&partition={schema.type_name}")
        for schema in table.entities.values()
        if not is_withheld(schema.name, caller)
    ]
