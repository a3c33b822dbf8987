"""`jobtable export` and `jobtable import`: a whole table as a file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobtable.cli.framework import CommandGroup, Yes, confirm
from jobtable.cli.options import AsJson, StoreUrl, file_to_write, open_store
from jobtable.cli.output import bar, print_either, print_fields
from jobtable.cli.tables import Modules, chosen_table
from jobtable.store.exports import Mode, check_export, export_table, import_table

export_app, import_app = CommandGroup(), CommandGroup()


@export_app.command(example="jobtable export jobtable jobs.jsonl --store dynamodb://eu-central-1")
def export(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Name of the table, as `tables list` shows it")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; an existing one is replaced at the end")],
    module: Modules = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write every item of a table to a file.

    The file has one item per line, in DynamoDB's JSON, and ends with a digest: `jobtable import` rejects a file that
    was cut or altered. It does not contain objects.
    """
    target = file_to_write(file)
    with open_store(store) as opened, bar("Writing items") as shown:
        chosen = chosen_table(table.removeprefix(opened.prefix), module)
        made = export_table(opened, chosen, target, shown.advance)
    print_either(made, lambda: print_fields(vars(made)), as_json=as_json)


@import_app.command("import", example="jobtable import jobs.jsonl --store file:copy.db")
def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File that `jobtable export` wrote")],
    existing: Annotated[
        Mode,
        typer.Option(
            metavar="MODE",
            help="What to do with existing items. refuse: import only into an empty table. merge: replace items with "
            "the same keys. replace: delete all of them first",
        ),
    ] = "refuse",
    module: Modules = None,
    yes: Yes = False,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Store the items of a file in their table.

    The whole file is checked before the first write, and a missing table is created. To finish an interrupted import,
    run it again with `--existing merge`.
    """
    found = check_export(file)
    table = chosen_table(found.table, module)
    if existing == "replace":
        confirm(f"Delete all items of the table {found.table} first?", yes=yes)
    with open_store(store, creates=True) as opened, bar("Storing items", found.items) as shown:
        import_table(opened, table, file, existing, shown.advance)
    print_either(found, lambda: print_fields(vars(found)), as_json=as_json)
