"""`--module`: the tables that a module of the user's own declares."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from jobtable.errors import NotFoundError, kind_and_text
from jobtable.model import Entity, Table
from jobtable.reference import table_named

Modules = Annotated[
    list[str] | None,
    typer.Option(
        "--module",
        metavar="MODULE",
        help="The tables of your own that this module declares, or its entities are in; may be given several times.",
    ),
]


def tables_of(modules: Sequence[str] | None) -> list[Table]:
    """The tables that modules declare, each once, with the entities that are declared when these are imported."""
    found: dict[str, Table] = {}
    for name in modules or ():
        tables = list(_tables_in(_imported(name)))
        if not tables:
            raise typer.BadParameter(f"{name} declares no tables and no entities")
        found |= {table.name: table for table in tables}
    return list(found.values())


def chosen_table(name: str, modules: Sequence[str] | None) -> Table:
    """The table of that name: of the modules, else of the systems; NotFoundError if neither has it."""
    own = {table.name: table for table in tables_of(modules)}
    try:
        return own.get(name) or table_named(name)
    except NotFoundError as error:
        error.hint = f"{error.hint}; name the module of your own tables with `--module`"
        raise


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever a module raises while it is imported
        advice = f"; start this in the folder that has it (this is {Path.cwd()}), or install it"
        told = f"{kind_and_text(error)}{advice if isinstance(error, ModuleNotFoundError) else ''}"
        raise typer.BadParameter(f"{name} cannot be imported: {told}") from error


def _tables_in(module: ModuleType) -> Iterator[Table]:
    for value in vars(module).values():
        if isinstance(value, Table):
            yield value
        elif isinstance(value, type) and issubclass(value, Entity) and _has_table(value):
            yield value.__schema__.table


def _has_table(entity: type[Entity]) -> bool:
    """Whether it is no base class."""
    return entity is not Entity and "__schema__" in vars(entity)
