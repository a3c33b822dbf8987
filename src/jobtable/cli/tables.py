"""`jobtable tables`: create, update, compare and describe tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Annotated, Any

import typer

from jobtable.access.entities import AccessToken, AnsweredRequest
from jobtable.cli.framework import COMMON, Yes, confirm, new_group
from jobtable.cli.options import AsJson, StoreUrl, open_store
from jobtable.cli.output import ExitCode, print_either, print_json, print_list, print_text, say
from jobtable.cli.template_output import print_template
from jobtable.cli.user_modules import import_module_of_user
from jobtable.dynamodb.template import cloudformation_template
from jobtable.errors import NotFoundError
from jobtable.model import Entity, Table
from jobtable.reference import entity_references, render_page, systems, table_named
from jobtable.store import Store

app = new_group()


Modules = Annotated[
    list[str] | None,
    typer.Option("--module", metavar="MODULE", help="Module that declares tables or entities of your own; repeatable"),
]
Systems = Annotated[list[str] | None, typer.Option("--system", help="Only the tables of this system; repeatable")]
WithoutIndex = Annotated[
    list[str] | None,
    typer.Option("--without-index", metavar="NAME", help="Leave out an optional index; may be given several times."),
]


def tables_of(modules: Sequence[str] | None) -> list[Table]:
    """Import modules and return the tables that they declare or whose entities they declare, each once."""
    found: dict[str, Table] = {}
    for name in modules or ():
        tables = list(tables_in(import_module_of_user(name)))
        if not tables:
            raise typer.BadParameter(f"{name} declares no tables or entities")
        found |= {table.name: table for table in tables}
    return list(found.values())


def chosen_table(name: str, modules: Sequence[str] | None) -> Table:
    """Return the table with this name, of the modules or of the systems; or NotFoundError."""
    own = {table.name: table for table in tables_of(modules)}
    try:
        return own.get(name) or table_named(name)
    except NotFoundError as error:
        error.hint = f"{error.hint}; name the module of your own tables with `--module`"
        raise


def tables_in(module: ModuleType) -> Iterator[Table]:
    """Yield the tables that a module declares or whose entities it declares."""
    for value in vars(module).values():
        if isinstance(value, Table):
            yield value
        elif isinstance(value, type) and issubclass(value, Entity) and _has_table(value):
            yield value.__schema__.table


def _has_table(entity: type[Entity]) -> bool:
    """Return whether it is more than a base class."""
    return entity is not Entity and "__schema__" in vars(entity)


def _chosen(names: list[str] | None, modules: list[str] | None, without: list[str] | None = None) -> list[Table]:
    """Return the tables of the chosen systems and modules, each once; by default those of all systems."""
    known = systems()
    if unknown := set(names or ()) - set(known):
        raise typer.BadParameter(f"there is no system {min(unknown)!r}; the systems are {', '.join(known)}")
    chosen = {table.name: table for name in (names or (() if modules else known)) for table in known[name]}
    chosen |= {table.name: table for table in tables_of(modules)}
    for index in without or ():
        having = [table for table in chosen.values() if index in table.indexes]
        if not having:
            raise typer.BadParameter(f"none of the tables has an index {index!r}", param_hint="--without-index")
        chosen |= {table.name: table.without_index(index) for table in having}
    return list(chosen.values())


@app.command(example="jobtable tables create --store file:jobs.db --system evals --delete-existing --yes")
def create(
    store: StoreUrl = None,
    system: Systems = None,
    module: Modules = None,
    delete_existing: Annotated[
        bool, typer.Option("--delete-existing", help="Delete existing tables first, with all their items")
    ] = False,
    without_index: WithoutIndex = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Create missing tables."""
    done: list[dict[str, Any]] = []
    with open_store(store, creates=True) as opened:
        chosen, there = _chosen(system, module, without_index), _deployed(opened)
        if delete_existing:
            _delete(opened, [table for table in chosen if opened.table_name(table) in there], yes=yes)
            there = set()
        for table in chosen:
            name = opened.table_name(table)
            opened.tables.create(table)
            done.append({"table": name, "created": name not in there})
            if not as_json:
                print_text(f"{name} {'already exists' if name in there else 'created'}")
    if as_json:
        print_json(done)


def _delete(store: Store, doomed: list[Table], *, yes: bool) -> None:
    if doomed:
        names = ", ".join(map(store.table_name, doomed))
        confirm(f"Delete {names} with all items?", yes=yes)
        store.tables.delete(*doomed)


@app.command(
    example=(
        "jobtable tables update --store file:jobs.db\njobtable tables update --store file:jobs.db --module evals.model"
    )
)
def update(
    store: StoreUrl = None,
    system: Systems = None,
    module: Modules = None,
    without_index: WithoutIndex = None,
    as_json: AsJson = False,
) -> None:
    """Add declared but missing indexes, streams, time to live and recovery to existing tables.

    A new index also holds older items. Nothing is removed: `diff` shows what still differs.
    """
    with open_store(store) as opened:
        deployed = _deployed(opened)
        added = [
            {"table": opened.table_name(table), "added": each}
            for table in _chosen(system, module, without_index)
            if opened.table_name(table) in deployed
            for each in opened.tables.update(table, say)
        ]
    print_list(added, lambda row: row, as_json=as_json, empty="Every table is complete.")


@app.command("list", example="jobtable tables list --store file:jobs.db")
def list_tables(
    store: StoreUrl = None, system: Systems = None, module: Modules = None, as_json: AsJson = False
) -> None:
    """List declared tables, and whether they are deployed."""
    with open_store(store) as opened:
        deployed = _deployed(opened)
        rows = [
            {"table": opened.table_name(t), "deployed": opened.table_name(t) in deployed, "entities": len(t.entities)}
            for t in _chosen(system, module)
        ]
    print_list(rows, lambda row: row, as_json=as_json, empty="No tables match.")


@app.command(example="jobtable tables diff --store dynamodb://eu-central-1?prefix=prod-")
def diff(
    store: StoreUrl = None,
    system: Systems = None,
    module: Modules = None,
    without_index: WithoutIndex = None,
    as_json: AsJson = False,
) -> None:
    """Compare the declared tables with the deployed ones; exit with 1 if they differ."""
    with open_store(store) as opened:
        found = [
            {"table": opened.table_name(table), "difference": difference}
            for table in _chosen(system, module, without_index)
            for difference in opened.tables.differences(table)
        ]
    print_list(found, lambda row: row, as_json=as_json, empty="The tables do not differ.")
    if found:
        raise typer.Exit(ExitCode.FAILED)


@app.command(
    example=(
        "jobtable tables template --prefix prod- > template.yaml\n"
        "jobtable tables template --prefix prod- --system jobs --module evals.model > template.yaml"
    )
)
def template(
    prefix: Annotated[
        str, typer.Option(metavar="NAME", help="Prefix of the tables' names, as in ?prefix=NAME of a store's URL")
    ] = "",
    system: Systems = None,
    module: Modules = None,
    without_index: WithoutIndex = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of YAML", rich_help_panel=COMMON)] = False,
) -> None:
    """Print a CloudFormation template: tables, a bucket for objects, and policies for readers, writers and workers."""
    # Readers and workers must neither create tokens nor read the answers to the requests of others.
    of_servers = (AccessToken, AnsweredRequest)
    made = cloudformation_template(_chosen(system, module, without_index), prefix=prefix, of_servers=of_servers)
    if as_json:
        print_json(made)
    else:
        print_template(made)


@app.command(example="jobtable tables reference --json")
def reference(as_json: AsJson = False) -> None:
    """Print every kind of item with its keys and attributes, as Markdown or JSON."""
    print_either(entity_references(), lambda: typer.echo(render_page(), nl=False), as_json=as_json)


def _deployed(store: Store) -> set[str]:
    return {store.prefix + name for name in store.tables.names()}
