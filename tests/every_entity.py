"""Every entity of the systems, with the seed that describes it."""

from __future__ import annotations

from jobtable.model import Entity
from jobtable.reference import TABLES

ENTITIES: list[tuple[str, type[Entity]]] = [
    (seed, schema.cls) for seed, tables in TABLES.items() for table in tables for schema in table.entities.values()
]
