"""The reference of everything that is stored: every entity of every system, with its keys and attributes."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module

from pydantic import BaseModel

import jobtable.access.entities  # these modules declare the entities of the core's tables
import jobtable.assist.entities
import jobtable.inbox.entities
import jobtable.workflows.asl.catalogue.records
import jobtable.workflows.asl.entities
import jobtable.workflows.durable.entities
import jobtable.workflows.function_versions
import jobtable.workflows.message_handlers  # noqa: F401
from jobtable.app import tables_of
from jobtable.errors import missing
from jobtable.jobs.stored.entities import main
from jobtable.model import Table, wire
from jobtable.model.schema import EntitySchema, FieldSchema
from jobtable.store.patterns import REGISTERED, AccessPattern
from jobtable.system import registered
from jobtable.workflows.table_and_queues import workflows

CORE = "jobs"
"""What the core's own entities and access patterns are listed under."""
WORKFLOWS = "workflows"
"""What those of state machines and functions are listed under."""
ASSIST = "assist"
"""What those of models that were asked are listed under."""
INBOX = "inbox"
"""What those of tasks of people are listed under."""

_READS = (
    "jobtable.jobs.read.job_queries",
    "jobtable.workflows.asl.catalogue.machine_reads",
    "jobtable.workflows.asl.execution.execution_reads",
    "jobtable.workflows.asl.catalogue.activities",
    "jobtable.workflows.function_records",
    "jobtable.workflows.durable.durable_reads",
    "jobtable.workflows.durable.lambda_shapes",
    "jobtable.assist.costs",
    "jobtable.assist.vectors",
    "jobtable.assist.batch_submission",
    "jobtable.inbox.inbox_reads",
)
"""The modules of the core with access patterns, in their order; loaded when somebody asks for those."""


@cache
def systems() -> dict[str, tuple[Table, ...]]:
    """The tables by the system that uses them. The core and systems without tables of their own use the main table."""
    found: dict[str, tuple[Table, ...]] = {CORE: (main,), WORKFLOWS: (workflows,), ASSIST: (main,), INBOX: (main,)}
    for system in registered():
        system.load_all(system.entities)
        found[system.name] = tuple(tables_of(system)) or (main,)
    return found


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


class EntityReference(BaseModel):
    """The keys and attributes of one kind of item, for programs that read the tables themselves."""

    system: str
    table: str
    entity: str
    type: str
    description: str
    envelope: str | None
    keys: dict[str, str]
    attributes: list[str]


def tables() -> list[Table]:
    return list(dict.fromkeys(table for group in systems().values() for table in group))


def table_named(name: str) -> Table:
    """The declared table of that name, or NotFoundError."""
    found = next((table for table in tables() if table.name == name), None)
    if found is None:
        raise missing("table", name, hint=f"the tables are {', '.join(table.name for table in tables())}")
    return found


def entity_references() -> list[EntityReference]:
    """Every kind of item, table by table, in the order of their declaration."""
    return [_reference(table, schema) for table in tables() for schema in _entities(table)]


def system_of(module: str) -> str:
    """The system that a module belongs to."""
    for system in registered():
        if any(f"{module}.".startswith(f"{own}.") for own in (*system.entities, *system.patterns)):
            return system.name
    return next((each for each in (WORKFLOWS, ASSIST, INBOX) if module.startswith(f"jobtable.{each}.")), CORE)


def access_patterns() -> list[AccessPattern]:
    """Every access pattern of the core and the systems, in the order of the systems."""
    places = {import_module(name).__name__: place for place, name in enumerate(_READS)}
    for system in registered():
        for path in system.patterns:
            places.setdefault(system.load(path).__name__, len(places))
    return sorted((each for each in REGISTERED if each.module in places), key=lambda each: places[each.module])


def _entities(table: Table) -> list[EntitySchema]:
    """The entities of a table in one order, whichever module was imported first."""
    order = list(systems())

    def place(schema: EntitySchema) -> tuple[int, str]:
        module = schema.cls.__module__
        return order.index(system_of(module)), module

    return sorted(table.entities.values(), key=place)


def _reference(table: Table, schema: EntitySchema) -> EntityReference:
    stored = [field for field in schema.fields.values() if not field.is_key_only]
    return EntityReference(
        system=system_of(schema.cls.__module__),
        table=table.name,
        entity=schema.name,
        type=schema.type_name,
        description=inspect.getdoc(schema.cls) or "",
        envelope=next((field.envelope for field in stored if field.envelope), None),
        keys={part.attribute: str(part) for key in schema.keys for part in key.parts},
        attributes=[field.attribute for field in stored],
    )


def render_page() -> str:
    lines = [
        "# Entities",
        "",
        "Every kind of item, with its keys and attributes. This page is generated: `make reference`.",
    ]
    for table in tables():
        lines += _table_lines(table)
    for system in systems():
        lines += _pattern_lines(system)
    return "\n".join(lines) + "\n"


def _table_lines(table: Table) -> list[str]:
    users = ", ".join(name for name, group in systems().items() if table in group)
    lines = ["", f"## {table.name}", "", f"Used by {users}. Primary key: `{'`, `'.join(table.primary)}`."]
    for index in table.indexes.values():
        sort = f" / `{'`, `'.join(index.sort)}`" if index.sort else ""
        lines.append(f"- index {index.name}: `{'`, `'.join(index.partition)}`{sort}")
    if table.ttl:
        lines.append(f"- time to live: `{table.ttl}`")
    for schema in _entities(table):
        lines += _entity_lines(_reference(table, schema), schema)
    return lines


def _entity_lines(reference: EntityReference, schema: EntitySchema) -> list[str]:
    lines = ["", f"### {reference.entity}", "", reference.description, "", "| key | value |", "| --- | --- |"]
    lines += [f"| `{attribute}` | `{text}` |" for attribute, text in reference.keys.items()]
    type_attribute = schema.table.type_attribute
    if type_attribute and type_attribute not in reference.keys:
        lines.append(f"| `{type_attribute}` | `{reference.type}` |")
    lines += ["", "| attribute | type |", "| --- | --- |"]
    stored = [field for field in schema.fields.values() if not field.is_key_only]
    return lines + [f"| `{'.'.join(field.path)}` | {_words(field)} |" for field in stored]


def _words(field: FieldSchema) -> str:
    return _kind_words(field.kind) + (", optional" if field.optional else "")


def _kind_words(kind: wire.WireType) -> str:
    match kind:
        case wire.EnumValue():
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


def _pattern_lines(system: str) -> list[str]:
    patterns = [pattern for pattern in access_patterns() if system_of(pattern.module) == system]
    if not patterns:
        return []
    lines = ["", f"## Access patterns of {system}", "", "| pattern | verb | index |", "| --- | --- | --- |"]
    return lines + [f"| {pattern.title} | `{pattern.verb}` | {pattern.index} |" for pattern in patterns]
