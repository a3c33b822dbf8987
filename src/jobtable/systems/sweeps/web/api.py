"""Sweeps: submitted, stopped, resumed; how far they are and what is best."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from jobtable.jobs.stored.entities import Job, JobMetric
from jobtable.jobs.stored.fields import Status
from jobtable.systems.sweeps.entities import SweepEntry
from jobtable.systems.sweeps.parameters import MOST_POINTS
from jobtable.systems.sweeps.service import Sweeps, TrialResult
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.web.api.parts import Body, Id, Written, api_router
from jobtable.web.dependencies import CallerOf, PageOf, Paging, path_id, service
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute

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
    """How many trials a sweep gets: one of the two is given."""

    trials: Annotated[int, Field(ge=1, le=MOST_POINTS)] | None = Field(None, description="So many more.")
    total: Annotated[int, Field(ge=1, le=MOST_POINTS)] | None = Field(
        None, description="So many in all: the same request again changes nothing.", examples=[50]
    )


class ProgressView(BaseModel):
    """How far a sweep is."""

    sweep_id: str
    name: str
    status: Status
    objective: str
    total: int
    completed: int
    stopped: int
    failed: int
    cancelled: int
    open: int
    best: TrialResult | None
    problem: str | None
    target: float | None
    has_reached_target: bool


@creation.post("/sweeps", status_code=201)
@allow(WRITE)
def submit_sweep(body: NewSweep, sweeps: TheSweeps, caller: CallerOf) -> Job:
    """Submit a sweep; gives its parent job. Workers of its queue plan its trials and run them."""
    return sweeps.submit(body.sweep, sweep_id=body.sweep_id, user=caller.name)


@router.get("/sweeps")
@allow(READ)
def list_sweeps(sweeps: TheSweeps, paging: Paging) -> PageOf[SweepEntry]:
    """All sweeps, the newest first."""
    return paging.page(sweeps.list_sweeps())


@router.get("/sweeps/{sweep_id}")
@allow(READ)
def get_progress(sweep_id: SweepId, sweeps: TheSweeps) -> ProgressView:
    """How far a sweep is, and its best trial."""
    return ProgressView.model_validate(sweeps.get_progress(sweep_id), from_attributes=True)


@router.get("/sweeps/{sweep_id}/definition")
@allow(READ)
def get_definition(sweep_id: SweepId, sweeps: TheSweeps) -> Sweep:
    """What a sweep is to do."""
    return sweeps.get_definition(sweep_id)


@router.get("/sweeps/{sweep_id}/trials")
@allow(READ)
def list_trials(
    sweep_id: SweepId, sweeps: TheSweeps, first: Annotated[int, Query(ge=0, le=10**6)] = 0, limit: Most = 100
) -> list[TrialResult]:
    """The trials of a sweep by number, from the `first` on."""
    return list(islice(sweeps.list_trials(sweep_id, first=first), limit))


@router.get("/sweeps/{sweep_id}/best")
@allow(READ)
def list_best(sweep_id: SweepId, sweeps: TheSweeps, limit: Most = 10) -> list[TrialResult]:
    """The best trials that ran to their end, the best first."""
    return sweeps.list_best(sweep_id, limit=limit)


@router.get("/sweeps/{sweep_id}/reports")
@allow(READ)
def list_latest_reports(sweep_id: SweepId, sweeps: TheSweeps, limit: Most = 100) -> list[JobMetric]:
    """The latest reports of the objective, the newest first, of whichever trials."""
    return sweeps.list_latest_reports(sweep_id, limit=limit)


@creation.post("/sweeps/{sweep_id}/extend")
@allow(WRITE)
def extend_sweep(sweep_id: SweepId, body: MoreTrials, sweeps: TheSweeps, caller: CallerOf) -> ProgressView:
    """Give a sweep that runs or is COMPLETED more trials, as if it had had them from the beginning."""
    sweeps.extend(sweep_id, trials=body.trials, total=body.total, by=caller.name)
    return get_progress(sweep_id, sweeps)


@router.post("/sweeps/{sweep_id}/stop")
@allow(WRITE)
def stop_sweep(sweep_id: SweepId, sweeps: TheSweeps, caller: CallerOf) -> Job:
    """Make no more trials, let those that run end in order, and keep what there is."""
    return sweeps.stop(sweep_id, by=caller.name)


@router.post("/sweeps/{sweep_id}/resume")
@allow(WRITE)
def resume_sweep(sweep_id: SweepId, sweeps: TheSweeps, caller: CallerOf) -> Written:
    """Put every trial back into the queue that has ended but is not completed; gives their number."""
    return Written(count=sweeps.resume(sweep_id, by=caller.name))
