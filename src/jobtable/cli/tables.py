"""`jobtable tables`: make and complete tables, compare them with deployed ones, describe them."""

from __future__ import annotations

from typing import Annotated, Any

import typer
import yaml

from jobtable.access.entities import AccessToken, AnsweredRequest
from jobtable.cli.confirmation import Yes, confirm
from jobtable.cli.groups import new_group
from jobtable.cli.options import AsJson, StoreUrl, open_store
from jobtable.cli.output import ExitCode, print_json, print_list, print_text, say
from jobtable.cli.own_tables import Modules, tables_of
from jobtable.dynamodb.template import cloudformation_template
from jobtable.model import Table
from jobtable.reference import entity_references, render_page, systems
from jobtable.store import Store

app = new_group()


Systems = Annotated[
    list[str] | None, typer.Option("--system", help="Only the tables of this system; may be given several times.")
]
WithoutIndex = Annotated[
    list[str] | None,
    typer.Option("--without-index", metavar="NAME", help="Leave out an optional index; may be given several times."),
]


def _chosen(names: list[str] | None, modules: list[str] | None, without: list[str] | None = None) -> list[Table]:
    """Return the tables of the chosen systems and modules, each once; by default those of all systems."""
    known = systems()
    if unknown := set(names or ()) - set(known):
        raise typer.BadParameter(f"no system {min(unknown)!r} is installed; choose from {', '.join(known)}")
    chosen = {table.name: table for name in (names or (() if modules else known)) for table in known[name]}
    chosen |= {table.name: table for table in tables_of(modules)}
    for index in without or ():
        having = [table for table in chosen.values() if index in table.indexes]
        if not having:
            raise typer.BadParameter(f"none of the tables has an index {index!r}", param_hint="--without-index")
        chosen |= {table.name: table.without_index(index) for table in having}
    return list(chosen.values())


@app.command()
def create(
    store: StoreUrl = None,
    system: Systems = None,
    module: Modules = None,
    delete_existing: Annotated[
        bool, typer.Option("--delete-existing", help="Delete the tables first, with everything in them.")
    ] = False,
    without_index: WithoutIndex = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Create the tables that are not there yet.

    \b
    Example:
        jobtable tables create --store file:jobs.db --system evals --delete-existing --yes
    """
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
                print_text(f"{name} {'is there' if name in there else 'created'}")
    if as_json:
        print_json(done)


def _delete(store: Store, doomed: list[Table], *, yes: bool) -> None:
    if doomed:
        names = ", ".join(map(store.table_name, doomed))
        confirm(f"Delete {names} with everything in {'it' if len(doomed) == 1 else 'them'}?", yes=yes)
        store.tables.delete(*doomed)


@app.command()
def update(
    store: StoreUrl = None,
    system: Systems = None,
    module: Modules = None,
    without_index: WithoutIndex = None,
    as_json: AsJson = False,
) -> None:
    """Add what is declared and missing to the tables that are there: indexes, streams, time to live, recovery.

    A new index holds the items that were there before it. Nothing is taken away: `diff` says what still differs.

    \b
    Example:
        jobtable tables update --store file:jobs.db
        jobtable tables update --store file:jobs.db --module evals.model
    """
    with open_store(store) as opened:
        deployed = _deployed(opened)
        added = [
            {"table": opened.table_name(table), "added": each}
            for table in _chosen(system, module, without_index)
            if opened.table_name(table) in deployed
            for each in opened.tables.update(table, say)
        ]
    print_list(added, lambda row: row, as_json=as_json, empty="Nothing is missing.")


@app.command("list")
def list_tables(
    store: StoreUrl = None, system: Systems = None, module: Modules = None, as_json: AsJson = False
) -> None:
    """List the tables that are declared, and whether they are deployed.

    \b
    Example:
        jobtable tables list --store file:jobs.db
    """
    with open_store(store) as opened:
        deployed = _deployed(opened)
        rows = [
            {"table": opened.table_name(t), "deployed": opened.table_name(t) in deployed, "entities": len(t.entities)}
            for t in _chosen(system, module)
        ]
    print_list(rows, lambda row: row, as_json=as_json, empty="There are no such tables.")


@app.command()
def diff(
    store: StoreUrl = None,
    system: Systems = None,
    module: Modules = None,
    without_index: WithoutIndex = None,
    as_json: AsJson = False,
) -> None:
    """Say what differs between the declared tables and the deployed ones. The exit code is 1 if something does.

    \b
    Example:
        jobtable tables diff --store dynamodb://eu-central-1?prefix=prod-
    """
    with open_store(store) as opened:
        found = [
            {"table": opened.table_name(table), "difference": difference}
            for table in _chosen(system, module, without_index)
            for difference in opened.tables.differences(table)
        ]
    print_list(found, lambda row: row, as_json=as_json, empty="Nothing differs.")
    if found:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def template(
    prefix: Annotated[
        str,
        typer.Option(metavar="NAME", help="What stands before the tables' names, as ?prefix=NAME in a store's URL."),
    ] = "",
    system: Systems = None,
    module: Modules = None,
    without_index: WithoutIndex = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of YAML.")] = False,
) -> None:
    """Print a CloudFormation template: the tables, a bucket for objects, and policies to read, to write and to work.

    \b
    Example:
        jobtable tables template --prefix prod- > template.yaml
        jobtable tables template --prefix prod- --system jobs --module evals.model > template.yaml
    """
    # Who only looks or takes jobs must not be able to make tokens, or to look at the answers to others' requests.
    of_servers = (AccessToken, AnsweredRequest)
    made = cloudformation_template(_chosen(system, module, without_index), prefix=prefix, of_servers=of_servers)
    if as_json:
        print_json(made)
    else:
        typer.echo(yaml.dump(made, Dumper=_PlainDumper, sort_keys=False, width=120), nl=False)


class _PlainDumper(yaml.SafeDumper):
    """Writes what is there twice out twice: CloudFormation does not know YAML's aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@app.command()
def reference(as_json: AsJson = False) -> None:
    """Print every kind of item with its keys and attributes: as Markdown, or as a list of JSON objects.

    \b
    Example:
        jobtable tables reference --json
    """
    if as_json:
        print_json(entity_references())
    else:
        typer.echo(render_page(), nl=False)


def _deployed(store: Store) -> set[str]:
    return {store.prefix + name for name in store.tables.names()}
