"""SELECT inside of batches and transactions: one item, by its whole key and without another condition."""

from __future__ import annotations

from pydantic_core import from_json

from jobtable.embedded.items import Read, check_projection
from jobtable.embedded.keys import key_position
from jobtable.embedded.partiql.selections import index_of, projection_of
from jobtable.embedded.partiql.syntax import Select
from jobtable.embedded.partiql.terms import Terms
from jobtable.embedded.partiql.writes import find_single_key, table_of
from jobtable.embedded.requests import Tables
from jobtable.embedded.storage import Storage
from jobtable.embedded.units import read_report
from jobtable.errors import RequestRefused
from jobtable.store.backend import Item, Request, Response


def prepare_read(tables: Tables, select: Select, terms: Terms, otherwise: str) -> Read:
    """What a SELECT of one item reads; RequestRefused, with the words `otherwise`, if it is another one."""
    projection = projection_of(select.paths)
    table = table_of(tables, select.source)
    index = index_of(table, select)
    found = None if index else find_single_key(table, select.where, terms)
    if found is None or found[1] is not None:
        raise RequestRefused(otherwise)
    check_projection(table, projection)
    return table, key_position(table, found[0]), projection


def read_one(storage: Storage, request: Request, read: Read) -> Response:
    """What is wanted of the item, as GetItem answers."""
    table, position, projection = read
    found = storage.sized(table, position)
    response: Response = {}
    if found is not None:
        item: Item = from_json(found[0])
        response["Item"] = item if projection is None else projection.apply(item)
    consumed = read_report(request, table.name, 0 if found is None else found[1])
    if consumed is not None:
        response["ConsumedCapacity"] = consumed
    return response
