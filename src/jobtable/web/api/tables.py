"""The tables, their items, and the capacity that reading and writing consumed."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel

from jobtable.model import Table
from jobtable.reference import EntityReference, entity_references, table_named, tables
from jobtable.store.capacity import Units
from jobtable.web.api.route_parts import api_router
from jobtable.web.explorer import Asked, ItemView, explore, index_named
from jobtable.web.guard import READ, allow
from jobtable.web.injection import CallerOf, PageOf, Paging, TheStore, path_id

router = api_router("tables")

TableName = Annotated[str, path_id("jobtable")]
KeyValue = Annotated[str, Query(max_length=2048)]


class IndexView(BaseModel):
    """An index."""

    name: str
    partition: list[str]
    sort: list[str]


class TableView(BaseModel):
    """A declared table, and whether it is deployed."""

    name: str
    is_deployed: bool
    partition: list[str]
    sort: list[str]
    indexes: list[IndexView]
    entities: list[str]


class UnitsView(BaseModel):
    """Units that an access pattern consumed since the server started, and their on-demand price in us-east-1."""

    pattern: str
    calls: int
    read_units: float
    write_units: float
    dollars: float


def dollars_for(units: Units) -> float:
    """Return the price of consumed units at DynamoDB's on-demand prices in us-east-1."""
    return (units.read * 0.125 + units.write * 0.625) / 1_000_000


def _view(table: Table, deployed: set[str]) -> TableView:
    return TableView(
        name=table.name,
        is_deployed=table.name in deployed,
        partition=list(table.primary[:1]),
        sort=list(table.primary[1:]),
        indexes=[
            IndexView(name=i.name, partition=list(i.partition), sort=list(i.sort)) for i in table.indexes.values()
        ],
        entities=[schema.name for schema in table.entities.values()],
    )


@router.get("/tables")
@allow(READ)
def list_tables(store: TheStore) -> list[TableView]:
    """List the tables of all systems."""
    deployed = set(store.tables.names())
    return [_view(table, deployed) for table in tables()]


@router.get("/tables/{table_name}/items")
@allow(READ)
def list_items(
    table_name: TableName,
    store: TheStore,
    caller: CallerOf,
    *,
    paging: Paging,
    partition: Annotated[list[KeyValue], Query(min_length=1, max_length=4, description="The partition key's values.")],
    index: Annotated[str | None, Query(max_length=255, description="An index to read instead of the table.")] = None,
    sort: Annotated[
        list[KeyValue], Query(max_length=4, description="Sort key values, left to right; the last may be a prefix.")
    ] = [],  # noqa: B006 - FastAPI copies it
    newest_first: bool = False,
) -> PageOf[ItemView]:
    """List the items of one partition, as entities and as stored."""
    table = table_named(table_name)
    asked = Asked(table, index_named(table, index), partition, sort, newest_first)
    items, cursor = explore(store, asked, caller, cursor=paging.cursor, limit=paging.limit)
    return PageOf(items=items, cursor=cursor)


@router.get("/entities")
@allow(READ)
def list_entities() -> list[EntityReference]:
    """List every kind of item with its keys and attributes."""
    return entity_references()


@router.get("/capacity")
@allow(READ)
def list_capacity(store: TheStore) -> list[UnitsView]:
    """List read and write units by access pattern, with their price on demand."""
    return [
        UnitsView(
            pattern=pattern,
            calls=units.calls,
            read_units=units.read,
            write_units=units.write,
            dollars=dollars_for(units),
        )
        for pattern, units in sorted(store.capacity.by_pattern().items())
    ]
