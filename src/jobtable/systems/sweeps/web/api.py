"""Sweeps: submission, stop, resumption and extension; progress and best trials."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from jobtable.jobs.stored.entities import JobMetric
from jobtable.systems.sweeps.parameters import MOST_POINTS
from jobtable.systems.sweeps.service import Progress, Sweeps, TrialResult
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.web.api.route_parts import Body, Id, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import CallerName, CallerOf, path_id, service

router = api_router("sweeps")
creation = api_router("sweeps", CreationRoute)

EXAMPLES: dict[str, Any] = {
    "submit_sweep": {
        "sweep_id": "learning-rates",
        "sweep": {
            "name": "learning rates",
            "task": "training:train",
            "objective": "val_loss",
            "direction": "minimize",
            "trials": 20,
            "sampler": "random",
            "stopper": {"name": "asha", "first_epoch": 1, "factor": 3, "last_epoch": 9},
            "seed": 7,
            "space": {
                "learning_rate": {"type": "float", "low": 0.0001, "high": 1, "log": True},
                "layers": {"type": "int", "low": 1, "high": 4},
                "optimizer": ["sgd", "adam"],
            },
        },
    },
    "extend_sweep": {"total": 50},
}

SweepId = Annotated[str, path_id("9b2d-sweep")]
Most = Annotated[int, Query(ge=1, le=1000)]

TheSweeps = Annotated[Sweeps, service(Sweeps)]


class NewSweep(Body):
    """A sweep to submit. The same id again finishes a submission that was interrupted."""

    sweep: Sweep = Field(
        examples=[
            {
                "name": "learning rates",
                "task": "training.tasks:train",
                "space": {"learning_rate": {"type": "float", "low": 0.0001, "high": 0.1, "log": True}},
                "trials": 20,
            }
        ]
    )
    sweep_id: Id | None = None


class MoreTrials(Body):
    """The new size of a sweep; give one of the two."""

    trials: Annotated[int, Field(ge=1, le=MOST_POINTS)] | None = Field(None, description="Number of trials to add.")
    total: Annotated[int, Field(ge=1, le=MOST_POINTS)] | None = Field(
        None, description="Total number of trials; the same request again changes nothing.", examples=[50]
    )


@router.get("/sweeps/{sweep_id}/trials")
@allow(READ)
def list_trials(
    sweep_id: SweepId, sweeps: TheSweeps, first: Annotated[int, Query(ge=0, le=10**6)] = 0, limit: Most = 100
) -> list[TrialResult]:
    """List the trials of a sweep by number, starting at `first`."""
    return list(islice(sweeps.list_trials(sweep_id, first=first), limit))


@router.get("/sweeps/{sweep_id}/best")
@allow(READ)
def list_best(sweep_id: SweepId, sweeps: TheSweeps, limit: Most = 10) -> list[TrialResult]:
    """List the best completed trials, best first."""
    return sweeps.list_best(sweep_id, limit=limit)


@router.get("/sweeps/{sweep_id}/reports")
@allow(READ)
def list_latest_reports(sweep_id: SweepId, sweeps: TheSweeps, limit: Most = 100) -> list[JobMetric]:
    """List the latest reports of the objective by any trial, newest first."""
    return sweeps.list_latest_reports(sweep_id, limit=limit)


@creation.post("/sweeps/{sweep_id}/extend")
@allow(WRITE)
def extend_sweep(sweep_id: SweepId, body: MoreTrials, sweeps: TheSweeps, caller: CallerOf) -> Progress:
    """Add trials to a running or completed sweep, as if it had had them from the start."""
    sweeps.extend(sweep_id, trials=body.trials, total=body.total, by=caller.name)
    return sweeps.get_progress(sweep_id)


add_verbs(creation, TheSweeps, {"user": CallerName}, ("submit_sweep", "POST /sweeps 201", Sweeps.submit, NewSweep))
add_verbs(
    router,
    TheSweeps,
    {"sweep_id": SweepId, "by": CallerName},
    ("list_sweeps", "GET /sweeps", Sweeps.list_sweeps),
    ("get_progress", "GET /sweeps/{sweep_id}", Sweeps.get_progress),
    ("get_definition", "GET /sweeps/{sweep_id}/definition", Sweeps.get_definition),
    ("stop_sweep", "POST /sweeps/{sweep_id}/stop", Sweeps.stop),
    ("resume_sweep", "POST /sweeps/{sweep_id}/resume", Sweeps.resume),
)
