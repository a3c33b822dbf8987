"""`jobtable export`: a whole table as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobtable.cli.options import AsJson, StoreUrl, file_to_write, open_store
from jobtable.cli.output import bar, print_fields, print_json
from jobtable.cli.own_tables import Modules, chosen_table
from jobtable.store.exports import export_table

app = typer.Typer(rich_markup_mode=None)


@app.command()
def export(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table, as `jobtable tables list` names it.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file; one that is there is replaced at the end.")],
    module: Modules = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write every item of a table to a file.

    The file has an item a line, as DynamoDB has it, and ends with a digest, so that `jobtable import` refuses it if it
    is cut or altered. Objects are not in it.

    \b
    Example:
        jobtable export jobtable jobs.jsonl --store dynamodb://eu-central-1
    """
    target = file_to_write(file)
    with open_store(store) as opened, bar("Writing items") as shown:
        chosen = chosen_table(table.removeprefix(opened.prefix), module)
        made = export_table(opened, chosen, target, shown.advance)
    if as_json:
        print_json(made)
    else:
        print_fields(vars(made))
