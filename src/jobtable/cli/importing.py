"""`jobtable import`: the items of a file back into their table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobtable.cli.confirmation import Yes, confirm
from jobtable.cli.options import AsJson, StoreUrl, open_store
from jobtable.cli.output import bar, print_fields, print_json
from jobtable.cli.own_tables import Modules, chosen_table
from jobtable.store.exports import Mode, check_export, import_table

app = typer.Typer(rich_markup_mode=None)


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `jobtable export` has written.")],
    existing: Annotated[
        Mode,
        typer.Option(
            help="refuse: the table must be empty. merge: the file's items replace those with the same keys. "
            "replace: everything that is there is deleted first."
        ),
    ] = "refuse",
    module: Modules = None,
    yes: Yes = False,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Store the items of a file in their table.

    Nothing is written before the whole file is checked. The table is created if it is missing. An import that was
    interrupted is finished by the same one with `--existing merge`.

    \b
    Example:
        jobtable import jobs.jsonl --store file:copy.db
    """
    found = check_export(file)
    table = chosen_table(found.table, module)
    if existing == "replace":
        confirm(f"Delete everything that is in the table {found.table} first?", yes=yes)
    with open_store(store, creates=True) as opened, bar("Storing items", found.items) as shown:
        import_table(opened, table, file, existing, shown.advance)
    if as_json:
        print_json(found)
    else:
        print_fields(vars(found))
