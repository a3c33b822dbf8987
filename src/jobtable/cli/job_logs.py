"""`jobtable jobs logs`: log lines of a job, as they are written if wanted, or the full output of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain, islice
from typing import Annotated

import typer

from jobtable.cli.framework import MOST_LINES, new_group
from jobtable.cli.job_records import JobId
from jobtable.cli.options import AsJson, ObjectsUrl, Since, StoreUrl, open_services
from jobtable.cli.output import colour_of, print_json_line, print_lines, say
from jobtable.jobs.read.log_search import FoundLine
from jobtable.jobs.read.logs import JobLogs
from jobtable.jobs.report.log_lines import as_text
from jobtable.jobs.stored.entities import JobLog
from jobtable.jobs.stored.field_types import LogLevel
from jobtable.model.fields import format_timestamp

app = new_group()


@app.command(example="jobtable jobs logs 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --follow --level warning")
def logs(
    job_id: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines until the job ends")] = False,
    level: Annotated[
        LogLevel | None, typer.Option(case_sensitive=False, help="Only lines of this level and the more severe ones")
    ] = None,
    tail: Annotated[int | None, typer.Option(min=0, help="Start with the last N lines")] = None,
    since: Since = None,
    full: Annotated[bool, typer.Option("--full", help="Print the whole output of a run as it was written")] = False,
    search: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Print the lines with this text in the full output of all runs")
    ] = None,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="With --search: ignore case")] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, max=MOST_LINES, help="With --search: maximum number of lines")
    ] = None,
    run: Annotated[int | None, typer.Option(min=1, help="With --full or --search: only run N")] = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print the log of a job, oldest line first. With --json, each line is one JSON object."""
    lines_only = follow or level is not None or tail is not None or since is not None
    if (full or search is not None) and lines_only:
        raise typer.BadParameter("--full and --search cannot be combined with --follow, --level, --tail or --since")
    if tail is not None and since is not None:
        raise typer.BadParameter("--tail and --since cannot be combined")
    if full and (as_json or search is not None):
        raise typer.BadParameter("--full cannot be combined with --json or --search")
    if run is not None and not full and search is None:
        raise typer.BadParameter("--run needs --full or --search")
    if (ignore_case or limit is not None) and search is None:
        raise typer.BadParameter("--ignore-case and --limit need --search")
    with open_services(store, objects) as services:
        services.jobs.queries.get_job(job_id)
        reader = JobLogs(services.store, services.objects)
        if full:
            _print_bytes(reader.full_text(job_id, run))
        elif search is not None:
            found = reader.search(job_id, search, epoch=run, ignore_case=ignore_case)
            _print_found(islice(found, limit), as_json)
        else:
            _print_lines(_lines(reader, job_id, level, tail, since, follow), as_json)


def _lines(
    reader: JobLogs, job_id: str, level: LogLevel | None, tail: int | None, since: datetime | None, follow: bool
) -> Iterable[JobLog]:
    if follow:
        return reader.follow(job_id, level=level, since=since, tail=tail)
    if tail is not None:
        return reader.tail(job_id, tail, level=level) if tail else []
    return reader.lines(job_id, level=level, since=since)


def _print_lines(lines: Iterable[JobLog], as_json: bool) -> None:
    if as_json:
        for line in lines:
            print_json_line(line)
    else:
        print_lines((as_text(line), colour_of(line.log_level)) for line in lines)


def _print_found(found: Iterator[FoundLine], as_json: bool) -> None:
    first = next(found, None)
    if first is None:
        say("No line contains this text.")
    elif as_json:
        for line in chain([first], found):
            print_json_line(line)
    else:
        print_lines((f"{_place_of(line)}: {line.text}", None) for line in chain([first], found))


def _place_of(line: FoundLine) -> str:
    return f"run {line.epoch}, line {line.number}" if line.timestamp is None else format_timestamp(line.timestamp)


def _print_bytes(chunks: Iterator[bytes]) -> None:
    first = next(chunks, None)
    if first is None:
        say("This run has no output yet.")
        return
    for chunk in chain([first], chunks):
        typer.echo(chunk, nl=False)
