"""Waiting for jobs on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from jobtable.cli.output import ExitCode, first_line, print_json, print_table, say, visible
from jobtable.jobs.read.progress import find_group_progress, percent_of
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import CLAIMABLE, InstanceStatus, Status
from jobtable.jobs.verbs import JobVerbs

_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0

Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Maximum time to wait")]


def wait_until_done(jobs: JobVerbs, job_ids: Sequence[str], timeout: float | None, *, as_json: bool) -> None:
    """Wait for jobs with a progress bar for each, print how they ended, and exit with 5 unless all are COMPLETED."""
    ended = _wait(jobs, job_ids, timeout)
    if as_json:
        print_json(ended)
    else:
        print_table([_row(job) for job in ended])
        _say_what_went_wrong(ended)
    open_ones = [job.job_id for job in ended if not job.is_final]
    if open_ones:
        say(f"Not ended after {timeout:g} seconds: {', '.join(open_ones)}")
    if any(job.status is not Status.COMPLETED for job in ended):
        raise typer.Exit(ExitCode.NOT_COMPLETED)


def say_what_nobody_serves(jobs: JobVerbs, queues: Iterable[str]) -> None:
    """Say which of the queues no worker serves, before a command waits for them."""
    there = list(jobs.queries.list_instances_by_status(InstanceStatus.RUNNING))
    for queue in queues:
        if not any(queue in (instance.queues or ()) for instance in there):
            say(f"No worker serves the queue {queue} yet; waiting for one.")


def seconds_of(job: Job) -> float | None:
    """Return how long the job ran, rounded for people."""
    return None if job.duration_seconds is None else round(job.duration_seconds, 2)


def _row(job: Job) -> dict[str, object]:
    return {"job": job.job_id, "status": job.status, "seconds": seconds_of(job), "result": job.result}


def _say_what_went_wrong(jobs: Iterable[Job]) -> None:
    """Print the whole message of each job that ended without being COMPLETED, which a column would cut."""
    for job in jobs:
        if job.is_final and job.status is not Status.COMPLETED and job.message:
            say(f"{job.job_id} is {job.status}: {job.message}")


def _wait(jobs: JobVerbs, job_ids: Sequence[str], timeout: float | None) -> list[Job]:
    """Return the jobs when all have ended or the time is over, reading only open ones again."""
    clock = jobs.clock
    deadline = None if timeout is None else clock.monotonic() + timeout
    seen = {job_id: jobs.queries.get_job(job_id) for job_id in job_ids}
    waiting = [job.queue_name for job in seen.values() if job.status in CLAIMABLE and job.queue_name is not None]
    say_what_nobody_serves(jobs, dict.fromkeys(waiting))
    pause = _PAUSE_SECONDS
    with _bars() as bars:
        shown = {job_id: bars.add_task(visible(job.name), total=100) for job_id, job in seen.items()}
        while open_ones := [job_id for job_id, job in seen.items() if not job.is_final]:
            if deadline is not None and clock.monotonic() >= deadline:
                break
            clock.sleep(pause)
            pause = min(pause * 1.2, _LONGEST_PAUSE_SECONDS)
            for job_id in open_ones:
                seen[job_id] = jobs.queries.get_job(job_id)
                group = find_group_progress(jobs.store, seen[job_id])
                _show(bars, shown[job_id], seen[job_id], percent_of(seen[job_id], group))
    return list(seen.values())


def _bars() -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.percentage:.0f}%"))
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal)


def _show(bars: Progress, shown: TaskID, job: Job, percent: float) -> None:
    said = f": {first_line(job.message)}" if job.message else ""
    bars.update(shown, completed=percent, description=visible(f"{job.name} {job.status}{said}"))
