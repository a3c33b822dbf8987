"""The pages of sweeps: the list, and one sweep."""

from __future__ import annotations

from itertools import accumulate, islice
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response

from jobtable.app import Services
from jobtable.jobs.read.waiting import Waiting, WaitKind
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import CLAIMABLE, Status
from jobtable.systems.sweeps.service import Sweeps, TrialResult
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.web.importance import parameter_importance
from jobtable.web.guard import READ, PageRoute, allow
from jobtable.web.injection import AllServices, path_id
from jobtable.web.pages.frame import render

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_MOST_TRIALS = 1000
_MOST_ROWS = 200
_MOST_COMPARED = 5


@router.get("/sweeps")
@allow(READ)
def show_sweeps(request: Request, services: AllServices, cursor: str = "") -> Response:
    """Show all sweeps with their progress, newest first."""
    page = services.get(Sweeps).list_sweeps().page(cursor or None, size=20)
    found = ((entry, services.get(Sweeps).find_progress(entry.job_id)) for entry in page.items)
    rows = [(entry, progress) for entry, progress in found if progress is not None]  # some are being deleted
    return render(request, "sweeps/sweeps.html", title="Sweeps", rows=rows, cursor=page.cursor, is_first=not cursor)


@router.get("/sweeps/{sweep_id}")
@allow(READ)
def show_sweep(request: Request, sweep_id: Annotated[str, path_id("9b2d-sweep")], services: AllServices) -> Response:
    """Show one sweep: its progress, its trials, and how its parameters affect them."""
    definition = services.get(Sweeps).get_definition(sweep_id)
    trials = list(islice(services.get(Sweeps).list_trials(sweep_id), _MOST_TRIALS + 1))
    is_cut = len(trials) > _MOST_TRIALS
    trials = trials[:_MOST_TRIALS]
    valued = [trial for trial in trials if trial.value is not None]
    is_max = definition.direction == "maximize"
    completed = [trial for trial in valued if trial.status is Status.COMPLETED]
    # The last value of a stopped trial is not a result, however good it looks.
    stopped = [trial for trial in valued if trial.status is not Status.COMPLETED]
    ranked = [*_ranked(completed, is_max), *_ranked(stopped, is_max)]
    best = services.get(Sweeps).list_best(sweep_id, limit=_MOST_ROWS) if is_cut else ranked
    names = sorted({name for trial in trials for name in trial.params})
    next_job = _next_job(services, sweep_id, trials)
    shown = (best + [trial for trial in trials if trial.value is None])[:_MOST_ROWS]
    return render(
        request,
        "sweeps/sweep.html",
        title=definition.name,
        sweep=services.get(Sweeps).get_progress(sweep_id),
        definition=definition,
        job=services.jobs.queries.get_job(sweep_id),
        next_job=next_job,
        waiting=_why_waiting(services, next_job),
        trials=shown,
        runner_up=_runner_up(best),
        compared=[trial.job_id for trial in shown if trial.value is not None][:_MOST_COMPARED],
        drawn=f"of the first {len(trials):,} trials" if is_cut else "",
        names=names,
        importance=parameter_importance([(trial.params, trial.value) for trial in valued if trial.value is not None]),
        history=_history(completed, stopped, definition.objective, is_max),
        coordinates=_coordinates(ranked, names, definition),
    )


def _next_job(services: Services, sweep_id: str, trials: list[TrialResult]) -> Job | None:
    """Return the next trial or planning job if no trial runs."""
    if any(trial.status is Status.RUNNING for trial in trials):
        return None
    waiting = next((trial.job_id for trial in trials if trial.status in CLAIMABLE), None)
    if waiting is not None:
        return services.store.find(Job.key(job_id=waiting))
    return services.get(Sweeps).find_last_planning(sweep_id)


def _why_waiting(services: Services, job: Job | None) -> Waiting | None:
    """Return what keeps the next job from starting, if anything."""
    waiting = services.jobs.why_waiting(job) if job is not None else None
    is_kept = waiting is not None and any(reason.kind is not WaitKind.NEXT for reason in waiting.reasons)
    return waiting if is_kept else None


def _ranked(trials: list[TrialResult], is_max: bool) -> list[TrialResult]:
    return sorted(trials, key=lambda trial: trial.value or 0.0, reverse=is_max)


def _runner_up(best: list[TrialResult]) -> tuple[TrialResult, float | None] | None:
    """Return the second best completed trial, and how far it is from the best, as a share of the best (None if 0)."""
    completed = [trial for trial in best if trial.status is Status.COMPLETED]
    if len(completed) < 2:
        return None
    first, second = (trial.value or 0.0 for trial in completed[:2])
    return completed[1], abs((second - first) / first) if first else None


def _history(completed: list[TrialResult], stopped: list[TrialResult], objective: str, is_max: bool) -> dict[str, Any]:
    """Return the plot of all values, those of stopped trials apart, and of the best so far."""
    best = list(accumulate((trial.value or 0.0 for trial in completed), max if is_max else min))
    ended = [trial.number for trial in completed]
    last = max((trial.number for trial in [*completed, *stopped]), default=0)
    if ended and ended[-1] < last:  # it is still the best after the last completed trial
        ended, best = [*ended, last], [*best, best[-1]]
    traces = [
        {**_points(completed), "name": "completed", "colour": "accent-ground"},
        {**_points(stopped), "name": "stopped early", "colour": "muted", "symbol": "circle-open"},
        {"x": ended, "y": best, "mode": "lines", "name": "best so far", "colour": "good-fill", "shape": "hv"},
    ]
    return {"title": "", "traces": [trace for trace in traces if trace["x"]], "x": "trial", "y": objective}


def _points(trials: list[TrialResult]) -> dict[str, Any]:
    return {"x": [trial.number for trial in trials], "y": [trial.value for trial in trials], "mode": "markers"}


def _coordinates(ranked: list[TrialResult], names: list[str], definition: Sweep) -> dict[str, Any]:
    """Return the plot of every trial on one axis per parameter, best first."""
    rows = [[*(trial.params.get(name) for name in names), trial.value] for trial in ranked]
    is_log = [getattr(definition.space.root.get(name), "log", False) for name in names]
    return {"axes": [*names, definition.objective], "isLog": [*is_log, False], "rows": rows[:300]}
