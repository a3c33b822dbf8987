"""Every entity of the core and the systems, with the system that it belongs to."""

from __future__ import annotations

from jobtable.model import Entity
from jobtable.reference import system_of, tables

ENTITIES: list[tuple[str, type[Entity]]] = [
    (system_of(schema.cls.__module__), schema.cls) for table in tables() for schema in table.entities.values()
]
