"""Items of any type of a table, each as its entity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_core import from_json

from jobtable.errors import ItemShapeError
from jobtable.model.entity import Entity
from jobtable.model.schema import EntitySchema
from jobtable.model.table import Table
from jobtable.store.backend import Item


class Undeclared(Entity):
    """An item whose type no entity of its table declares, shown as stored."""

    @property
    def item(self) -> Item:
        """The item in wire form."""
        return self._undeclared or {}

    def __repr_args__(self) -> Iterable[tuple[str, Any]]:
        return self.item.items()


def entity_of(table: Table, item: Item) -> Entity:
    """The entity of an item, told by its type attribute; a table without one holds one kind of entity."""
    if table.type_attribute is None:
        schema = next(iter(table.entities.values()), None)
    else:
        schema = table.entities.get(item.get(table.type_attribute, {}).get("S", ""))
    if schema is None:
        return Undeclared().with_undeclared(item)
    entity: Entity = schema.codec.decode(item)
    return entity


def own_entity(schema: EntitySchema, item: Item | bytes) -> Any:
    """The entity of an item that was read under its key; None if one that shares its keys stands there."""
    try:
        return schema.codec.decode_json(item) if isinstance(item, bytes) else schema.codec.decode(item)
    except ItemShapeError:
        if not schema.shares_keys_with or schema.table.type_attribute is None:
            raise
        found: Item = from_json(item) if isinstance(item, bytes) else item
        kind = found.get(schema.table.type_attribute, {}).get("S")
        if all(kind != other.__schema__.type_name for other in schema.shares_keys_with):
            raise
        return None
