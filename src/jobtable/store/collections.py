"""Items of any type of a table, each as the entity that it is."""

from __future__ import annotations

from jobtable.model.entity import Entity
from jobtable.model.table import Table
from jobtable.store.backend import Item


class Undeclared(Entity):
    """An item whose type no entity of its table declares; it is shown as it is stored."""

    @property
    def item(self) -> Item:
        """The item in wire form."""
        return self._undeclared or {}


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
