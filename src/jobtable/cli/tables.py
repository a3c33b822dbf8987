"""`jobtable tables`: create the tables of the systems, compare them with what is deployed, and say what is in them."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from jobtable.cli.options import AsJson, StoreUrl, open_store
from jobtable.conversations.entities import CONVERSATION_INDEX
from jobtable.model import Table
from jobtable.reference import SYSTEMS, entity_references, render_page
from jobtable.store import Store

app = typer.Typer(help="The tables of the systems.", no_args_is_help=True, rich_markup_mode=None)


class System(StrEnum):
    """The systems that have tables."""

    JOBS = "jobs"
    RECEIPTS = "receipts"
    LEGACY_RECEIPTS = "legacy-receipts"
    JOURNEYS = "journeys"
    CONVERSATIONS = "conversations"
    ALBUMS = "albums"


Systems = Annotated[
    list[System] | None, typer.Option("--system", help="Only the tables of this system; may be given several times.")
]
ConversationIndex = Annotated[
    bool,
    typer.Option(
        "--conversation-index/--no-conversation-index",
        help="With or without the optional index of the conversation tables.",
    ),
]

_CREATE_HELP = """
Create the tables that are not there yet.

\b
Example:
    jobtable tables create --store file:jobs.db --system conversations --delete-existing
"""
_LIST_HELP = """
List the tables that are declared, and whether they are deployed.

\b
Example:
    jobtable tables list --store file:jobs.db
"""
_DIFF_HELP = """
Say what differs between the declared tables and the deployed ones. The exit code is 1 if something does.

\b
Example:
    jobtable tables diff --store dynamodb://eu-central-1?prefix=prod-
"""
_REFERENCE_HELP = """
Print every kind of item with its keys and attributes: as Markdown, or as a list of JSON objects.

\b
Example:
    jobtable tables reference --json
"""


def _chosen(systems: list[System] | None, conversation_index: bool = True) -> list[Table]:
    """The tables of the chosen systems, each once."""
    names = [system.value for system in systems] if systems else list(SYSTEMS)
    chosen = {table.name: table for name in names for table in SYSTEMS[name]}
    if conversation_index:
        return list(chosen.values())
    return [_without_conversation_index(table) for table in chosen.values()]


def _without_conversation_index(table: Table) -> Table:
    return table.without_index(CONVERSATION_INDEX) if CONVERSATION_INDEX in table.indexes else table


@app.command(help=_CREATE_HELP)
def create(
    store: StoreUrl = None,
    system: Systems = None,
    delete_existing: Annotated[
        bool, typer.Option("--delete-existing", help="Delete the tables first, with everything in them.")
    ] = False,
    conversation_index: ConversationIndex = True,
) -> None:
    """Create tables."""
    with open_store(store) as opened:
        there = set() if delete_existing else _deployed(opened)
        for table in _chosen(system, conversation_index):
            name = opened.table_name(table)
            if name in there:
                typer.echo(f"{name} is there")
                continue
            if delete_existing:
                opened.tables.delete(table)
            opened.tables.create(table)
            typer.echo(f"{name} created")


@app.command("list", help=_LIST_HELP)
def list_tables(store: StoreUrl = None, system: Systems = None, as_json: AsJson = False) -> None:
    """List tables."""
    with open_store(store) as opened:
        deployed = _deployed(opened)
        rows = [
            {"table": opened.table_name(t), "deployed": opened.table_name(t) in deployed, "entities": len(t.entities)}
            for t in _chosen(system)
        ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        state = "deployed" if row["deployed"] else "not deployed"
        typer.echo(f"{row['table']}: {state}, kinds of items: {row['entities']}")


@app.command(help=_DIFF_HELP)
def diff(store: StoreUrl = None, system: Systems = None, conversation_index: ConversationIndex = True) -> None:
    """Compare tables."""
    with open_store(store) as opened:
        found = [
            f"{opened.table_name(table)}: {difference}"
            for table in _chosen(system, conversation_index)
            for difference in opened.tables.differences(table)
        ]
    for line in found:
        typer.echo(line)
    if found:
        raise typer.Exit(1)


@app.command(help=_REFERENCE_HELP)
def reference(as_json: AsJson = False) -> None:
    """Print the reference."""
    typer.echo(json.dumps(entity_references(), indent=2) if as_json else render_page(), nl=as_json)


def _deployed(store: Store) -> set[str]:
    return {store.prefix + name for name in store.tables.names()}
