"""The tables of the systems, by the seed that describes them."""

from __future__ import annotations

import jobtable.receipts.entities  # noqa: F401 - declares entities of the main table
from jobtable.jobs.entities import main
from jobtable.model import Entity, Table
from jobtable.receipts.legacy.entities import legacy

TABLES: dict[str, list[Table]] = {"000": [main], "001": [legacy]}

ENTITIES: list[tuple[str, type[Entity]]] = [
    (seed, schema.cls) for seed, tables in TABLES.items() for table in tables for schema in table.entities.values()
]
"""Every entity with the seed that it comes from."""
