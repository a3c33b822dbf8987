"""`jobtable sweeps`: run, resume, extend and stop sweeps, and see what came of them. `jobtable sweep` is the same."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.cli.completion import MOST, completed
from jobtable.cli.framework import new_group
from jobtable.cli.local_workers import LocalWorkers, ServerWorkers
from jobtable.cli.opening import services_of
from jobtable.cli.options import AsJson, Limit, ObjectsUrl, StoreUrl, User, chosen_settings, on_services
from jobtable.cli.output import ExitCode, first_line, print_fields, print_json, print_list, print_part, print_text, say
from jobtable.errors import NotFoundError
from jobtable.jobs.stored.field_types import Status
from jobtable.settings import Settings
from jobtable.systems.sweeps.cli.trial_table import counts, follow, params_text
from jobtable.systems.sweeps.entities import SweepEntry
from jobtable.systems.sweeps.samplers import Optuna
from jobtable.systems.sweeps.service import Progress, Sweeps, TrialResult
from jobtable.systems.sweeps.sweep import Sweep

app = new_group()

_complete = completed(lambda services: (each.job_id for each in services.get(Sweeps).list_sweeps().take(MOST)))
SweepId = Annotated[str, typer.Argument(metavar="ID", help="Id of the sweep", autocompletion=_complete)]

Workers = Annotated[
    int, typer.Option("--workers", "-w", min=0, help="Number of workers to start here; wait until the sweep ends")
]
Inline = Annotated[bool, typer.Option("--inline", help="Let these workers run inline tasks in their own process")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Wait until the sweep ends and show its progress")]
LeaseSeconds = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Time without a heartbeat after which a worker counts as dead")
]


@app.command(example="jobtable sweeps run sweep.yaml --workers 2")
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Definition in YAML or JSON")],
    workers: Workers = 0,
    is_followed: Follow = False,
    inline: Inline = False,
    sweep_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Your own id; run the command again to continue the sweep")
    ] = None,
    lease_seconds: LeaseSeconds = None,
    user: User = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Submit the sweep that a file defines. With workers, run it, show its progress, and print the best trials.

    Without workers it prints the sweep's id; any `jobtable worker` of its queue then plans and runs the trials, and
    --follow waits for them. The exit code is 5 if the sweep ends otherwise than COMPLETED.
    """
    from jobtable.systems.sweeps.sweep_file import read_sweep  # noqa: PLC0415 - needs an extra that the other commands do not

    sweep = read_sweep(file)
    settings = chosen_settings(store, objects, user=user, lease_seconds=lease_seconds, creates=True)
    with services_of(settings) as services:
        job = services.get(Sweeps).submit(sweep, sweep_id=sweep_id, user=settings.user)
        _go_on(services, settings, job.job_id, workers, inline=inline, is_followed=is_followed, as_json=as_json)


@app.command(example="jobtable sweeps resume 6f1c1ad0 --workers 2")
@on_services(lease_seconds=LeaseSeconds, user=User)
def resume(
    services: Services,
    settings: Settings,
    sweep_id: SweepId,
    workers: Workers = 0,
    is_followed: Follow = False,
    inline: Inline = False,
    as_json: AsJson = False,
) -> None:
    """Requeue every trial that ended without being COMPLETED, from its last checkpoint.

    Trials that were stopped early, because they were not good enough, stay so.
    """
    say(f"Requeued trials: {services.get(Sweeps).resume(sweep_id, by=settings.user)}")
    _go_on(services, settings, sweep_id, workers, inline=inline, is_followed=is_followed, as_json=as_json)


@app.command(example="jobtable sweeps extend 6f1c1ad0 --trials 20 --workers 2")
@on_services(lease_seconds=LeaseSeconds, user=User)
def extend(
    services: Services,
    settings: Settings,
    sweep_id: SweepId,
    trials: Annotated[int | None, typer.Option(min=1, help="Number of trials to add")] = None,
    total: Annotated[
        int | None, typer.Option(min=1, help="Total number of trials; repeating it changes nothing")
    ] = None,
    workers: Workers = 0,
    is_followed: Follow = False,
    inline: Inline = False,
    as_json: AsJson = False,
) -> None:
    """Add trials to a sweep that runs or is COMPLETED, as if it had them from the start."""
    if (trials is None) == (total is None):
        raise typer.BadParameter("use either --trials or --total")
    extended = services.get(Sweeps).extend(sweep_id, trials=trials, total=total, by=settings.user)
    say(f"Total trials: {extended}")
    _go_on(services, settings, sweep_id, workers, inline=inline, is_followed=is_followed, as_json=as_json)


@app.command(example="jobtable sweeps show 6f1c1ad0 --trials")
@on_services
def show(
    services: Services,
    sweeps: Sweeps,
    sweep_id: SweepId,
    trials: Annotated[bool, typer.Option("--trials", help="Also show every trial, by number")] = False,
    is_followed: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a sweep and its best trials."""
    if is_followed:
        follow(sweeps, sweep_id, services.jobs.clock, lambda: None)
    progress = sweeps.get_progress(sweep_id)
    every = list(sweeps.list_trials(sweep_id)) if trials else None
    if as_json:
        print_json(_as_json(progress) if every is None else {**_as_json(progress), "trials": every})
        return
    print_fields(_fields(progress))
    print_part("Trials", [_row(trial) for trial in every or ()])


@app.command("list", example="jobtable sweeps list -n 5")
@on_services
def list_sweeps(sweeps: Sweeps, limit: Limit = 20, as_json: AsJson = False) -> None:
    """List sweeps, newest first."""
    empty = "There are no sweeps yet; run one with `jobtable sweeps run FILE`."
    print_list(sweeps.list_sweeps(), _entry_row, as_json=as_json, empty=empty, limit=limit)


@app.command(example="jobtable sweeps best 6f1c1ad0 -n 3 --json")
@on_services
def best(sweeps: Sweeps, sweep_id: SweepId, limit: Limit = 1, as_json: AsJson = False) -> None:
    """Print the best completed trials with their parameters."""
    found = sweeps.list_best(sweep_id, limit=limit)
    if not found:
        raise NotFoundError(f"no trial of sweep {sweep_id} has completed")
    print_list(found, _row, as_json=as_json, empty="")


@app.command(example="jobtable sweeps export 6f1c1ad0 > trials.csv")
@on_services
def export(sweeps: Sweeps, sweep_id: SweepId, as_json: AsJson = False) -> None:
    """Print every trial by number, as CSV with a column per parameter, or as JSON.

    In CSV text stands as it is, all other values as JSON; of a parameter that a trial does not have, nothing.
    """
    if as_json:
        print_json(list(sweeps.list_trials(sweep_id)))
        return
    names = sweeps.get_definition(sweep_id).space.names
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["number", "job_id", "status", "value", *(f"params.{name}" for name in names), "message"])
    for trial in sweeps.list_trials(sweep_id):
        rows.writerow(_export_row(trial, names))


@app.command(example="jobtable sweeps stop 6f1c1ad0")
@on_services(user=User)
def stop(sweeps: Sweeps, settings: Settings, sweep_id: SweepId, as_json: AsJson = False) -> None:
    """Stop a sweep: start no more trials and let running ones end early. `jobtable sweeps resume` continues it."""
    sweeps.stop(sweep_id, by=settings.user)
    _print_progress(sweeps.get_progress(sweep_id), as_json=as_json)


def _go_on(
    services: Services,
    settings: Settings,
    sweep_id: str,
    workers: int,
    *,
    inline: bool,
    is_followed: bool,
    as_json: bool,
) -> None:
    """Follow a sweep to its end, or only print its id."""
    sweeps = services.get(Sweeps)
    if not (workers or is_followed):
        if as_json:
            _print_progress(sweeps.get_progress(sweep_id), as_json=True)
        else:
            print_text(sweep_id)
        return
    say(f"Sweep {sweep_id}: if you stop this command, continue with `jobtable sweeps resume {sweep_id}`.")
    sweep = sweeps.get_definition(sweep_id)
    needed = _needed_by(sweep)
    with (
        LocalWorkers(settings, [sweep.queue], count=workers, preload=needed, inline=inline)
        if workers
        else ServerWorkers(services, [sweep.queue])
    ) as working:
        progress = follow(sweeps, sweep_id, services.jobs.clock, working.check)
    _print_progress(progress, as_json=as_json)
    if progress.status is not Status.COMPLETED:
        raise typer.Exit(ExitCode.NOT_COMPLETED)


def _needed_by(sweep: Sweep) -> list[str]:
    """Return the modules that every trial or planning job needs; importing them once makes each start fast."""
    optuna = ["jobtable.systems.sweeps.optuna_samplers"] if isinstance(sweep.sampler, Optuna) else []
    return ["jobtable.systems.sweeps.running", *optuna, sweep.task.partition(":")[0]]


def _as_json(progress: Progress) -> dict[str, Any]:
    return {**vars(progress), "made": progress.made}


def _print_progress(progress: Progress, *, as_json: bool) -> None:
    if as_json:
        print_json(_as_json(progress))
    else:
        print_fields(_fields(progress))


def _fields(progress: Progress) -> dict[str, Any]:
    best = progress.best
    return {
        "sweep": progress.sweep_id,
        "name": progress.name,
        "status": progress.status,
        "trials": f"{counts(progress)} of {progress.total}",
        "problem": progress.problem,
        "target": _target_text(progress),
        "best": None if best is None else f"{progress.objective} = {best.value:.6g} (trial {best.number})",
        "parameters": None if best is None else params_text(best.params),
    }


def _target_text(progress: Progress) -> str | None:
    if progress.target is None:
        return None
    reached = "reached; no more trials are planned" if progress.has_reached_target else "not reached"
    return f"{progress.objective} = {progress.target:.6g} {reached}"


def _row(trial: TrialResult) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "status": trial.status,
        "value": trial.value,
        "parameters": params_text(trial.params),
        "message": first_line(trial.message),
    }


def _entry_row(entry: SweepEntry) -> dict[str, Any]:
    return {
        "sweep": entry.job_id,
        "name": entry.name,
        "created": entry.created_at,
        "by": entry.created_by,
        "objective": f"{entry.direction} {entry.objective}",
        "trials": entry.trial_count,
    }


def _export_row(trial: TrialResult, names: list[str]) -> list[Any]:
    params = [_cell(trial.params[name]) if name in trial.params else None for name in names]
    return [trial.number, trial.job_id, trial.status, trial.value, *params, first_line(trial.message)]


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
