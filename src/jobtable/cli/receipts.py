"""`jobtable receipts`: the move from the legacy table to the main table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobtable.cli.options import AsJson, StoreUrl, open_store
from jobtable.cli.output import bar, print_json, print_table, print_text
from jobtable.jobs.entities import main
from jobtable.receipts.migration import Migration, Report

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Make `migrate` a command of its own, although it is the only one so far."""


@app.command()
def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read everything and write nothing.")] = False,
    store: StoreUrl = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="URL", help="The store of the main table, if it is another one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copy the receipts of the legacy table into the main table.

    What stands in the main table is never overwritten, and nothing is taken out of the legacy table. An interrupted
    run goes on where it stopped.

    \b
    Example:
        jobtable receipts migrate --store dynamodb://eu-central-1 --dry-run
    """
    with open_store(store) as source, open_store(to or store) as target, bar("Looking at items") as advance:
        if not dry_run:
            target.tables.create(main)
        seen = 0

        def progress(report: Report) -> None:
            nonlocal seen
            advance(report.read - seen)
            seen = report.read

        report = Migration(source, target).run(progress, dry_run=dry_run)
    if as_json:
        print_json(report)
        return
    if report.kinds:
        print_table([_row(kind, report) for kind in sorted(report.kinds)])
    for problem in report.problems.values():
        print_text(f"{problem.count} items: {problem.reason}, for example {problem.examples[0]}", "yellow")


def _row(kind: str, report: Report) -> dict[str, Any]:
    return {"kind": kind, **report.kinds[kind].model_dump()}
