"""The reference of everything that is stored: every entity of every system, with its keys and attributes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TypedDict

import jobtable.access.entities
import jobtable.systems.receipts.entities  # noqa: F401 - both declare entities of the main table
from jobtable.errors import NotFoundError
from jobtable.jobs.stored.entities import main
from jobtable.model import Table, wire
from jobtable.model.schema import EntitySchema, FieldSchema
from jobtable.store.patterns import REGISTERED, AccessPattern
from jobtable.systems.albums.entities import workflows
from jobtable.systems.conversations.entities import TABLES as CONVERSATION_TABLES
from jobtable.systems.journeys.entities import journeys
from jobtable.systems.receipts.legacy.entities import legacy

TABLES: dict[str, tuple[Table, ...]] = {
    "000": (main,),
    "001": (legacy,),
    "002": (journeys,),
    "003": CONVERSATION_TABLES,
    "004": (workflows,),
}
"""The tables by the document that specifies them."""

SYSTEMS: dict[str, tuple[Table, ...]] = {
    "jobs": (main,),
    "receipts": (main,),
    "legacy-receipts": (legacy,),
    "journeys": (journeys,),
    "conversations": CONVERSATION_TABLES,
    "albums": (workflows,),
}
"""The tables by the system that uses them."""

_DECLARING = ("jobs", "access", "receipts", "journeys", "conversations", "albums")
"""The packages that declare entities, in the order of the reference."""
_PACKAGES = ("jobs", "journeys", "conversations", "albums", "receipts")
"""The packages whose verbs are access patterns."""
_WITHOUT_VERBS = tuple(f"jobtable.systems.conversations.{name}" for name in ("analysis", "stages", "work"))
"""Modules that need the scientific stack, which whoever reads the reference may not have."""


_WORDS: dict[type[wire.WireType], str] = {
    wire.Text: "text",
    wire.UuidText: "UUID",
    wire.Bool: "boolean",
    wire.Int: "integer",
    wire.Float: "number",
    wire.DecimalNumber: "number",
    wire.Binary: "binary",
    wire.Instant: "time",
    wire.Day: "date",
    wire.Numbers: "vector",
    wire.PackedNumbers: "packed vector",
    wire.Anything: "anything",
}


class EntityReference(TypedDict):
    """What a program that reads the tables by itself has to know of one kind of item."""

    seed: str
    table: str
    entity: str
    type: str
    description: str
    envelope: str | None
    keys: dict[str, str]
    attributes: list[str]


def tables() -> list[Table]:
    """Every table once."""
    return [table for group in TABLES.values() for table in group]


def table_named(name: str) -> Table:
    """The declared table of that name, or NotFoundError."""
    found = next((table for table in tables() if table.name == name), None)
    if found is None:
        raise NotFoundError(f"there is no table {name}; there are {', '.join(table.name for table in tables())}")
    return found


def entity_references() -> list[EntityReference]:
    """Every kind of item of every system, in the order of their declaration."""
    return [
        _reference(seed, table, schema)
        for seed, group in TABLES.items()
        for table in group
        for schema in _entities(table)
    ]


def access_patterns() -> list[AccessPattern]:
    """Every access pattern of every system, by the document that asks for it."""
    for name in _PACKAGES:
        package = importlib.import_module(f"jobtable.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(_WITHOUT_VERBS):
                importlib.import_module(module.name)
    return sorted(REGISTERED, key=lambda pattern: (pattern.seed, pattern.module))


def _entities(table: Table) -> list[EntitySchema]:
    """The entities of a table in one order, whichever package was imported first."""
    return sorted(table.entities.values(), key=lambda schema: _DECLARING.index(schema.cls.__module__.split(".")[1]))


def _reference(seed: str, table: Table, schema: EntitySchema) -> EntityReference:
    stored = [field for field in schema.fields.values() if not field.is_key_only]
    return {
        "seed": seed,
        "table": table.name,
        "entity": schema.name,
        "type": schema.type_name,
        "description": inspect.getdoc(schema.cls) or "",
        "envelope": next((field.envelope for field in stored if field.envelope), None),
        "keys": {part.attribute: str(part) for key in schema.keys for part in key.parts},
        "attributes": [field.attribute for field in stored],
    }


def render_page() -> str:
    """The reference as a page of Markdown."""
    lines = [
        "# Entities",
        "",
        "Every kind of item, with its keys and attributes. This page is generated: `make reference`.",
    ]
    for seed, group in TABLES.items():
        for table in group:
            lines += _table_lines(seed, table)
        lines += _pattern_lines(seed)
    return "\n".join(lines) + "\n"


def _table_lines(seed: str, table: Table) -> list[str]:
    lines = ["", f"## {table.name}", "", f"Specified by document {seed}. Primary key: `{'`, `'.join(table.primary)}`."]
    for index in table.indexes.values():
        sort = f" / `{'`, `'.join(index.sort)}`" if index.sort else ""
        lines.append(f"- index {index.name}: `{'`, `'.join(index.partition)}`{sort}")
    if table.ttl:
        lines.append(f"- time to live: `{table.ttl}`")
    for schema in _entities(table):
        lines += _entity_lines(_reference(seed, table, schema), schema)
    return lines


def _entity_lines(reference: EntityReference, schema: EntitySchema) -> list[str]:
    lines = ["", f"### {reference['entity']}", "", reference["description"], "", "| key | value |", "| --- | --- |"]
    lines += [f"| `{attribute}` | `{text}` |" for attribute, text in reference["keys"].items()]
    type_attribute = schema.table.type_attribute
    if type_attribute and type_attribute not in reference["keys"]:
        lines.append(f"| `{type_attribute}` | `{reference['type']}` |")
    lines += ["", "| attribute | type |", "| --- | --- |"]
    stored = [field for field in schema.fields.values() if not field.is_key_only]
    return lines + [f"| `{'.'.join(field.path)}` | {_words(field)} |" for field in stored]


def _words(field: FieldSchema) -> str:
    return _kind_words(field.kind) + (", optional" if field.optional else "")


def _kind_words(kind: wire.WireType) -> str:
    """A wire type, for people."""
    match kind:
        case wire.Choice():
            return "text: " + ", ".join(f"`{member.value}`" for member in kind.enum)
        case wire.Many():
            return f"list of {_kind_words(kind.inner)}"
        case wire.Mapped():
            return f"map of {_kind_words(kind.inner)}"
        case wire.Distinct():
            return f"set of {_kind_words(kind.inner)}"
        case wire.Nullable():
            return f"{_kind_words(kind.inner)} or null"
        case wire.Nested():
            inside = ", ".join(f"`{field.attribute}`" for field in kind.part.__codec__.fields.values())
            return f"map ({inside})"
        case _:
            return _WORDS[type(kind)]


def _pattern_lines(seed: str) -> list[str]:
    patterns = [pattern for pattern in access_patterns() if pattern.seed == seed]
    lines = ["", f"## Access patterns of document {seed}", "", "| pattern | verb | index |", "| --- | --- | --- |"]
    return lines + [f"| {pattern.title} | `{pattern.verb}` | {pattern.index} |" for pattern in patterns]
