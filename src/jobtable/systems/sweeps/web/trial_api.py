"""What the runs of sweeps ask for on other machines, in the name of the job that they hold."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from jobtable.systems.sweeps.desk import EarlierRuns, SweepDesk
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.trials import LAST_RUNG
from jobtable.web.api.parts import Written, api_router
from jobtable.web.api.work import LeaseBody, held_lease
from jobtable.web.dependencies import JobId, TheJobs
from jobtable.web.guard import WORK, allow

router = api_router("sweeps as they run")

Rung = Annotated[int, Field(ge=0, le=LAST_RUNG)]
TheLease = Annotated[LeaseBody, Query()]


class PlanBody(LeaseBody):
    """What only a worker knows of the trials that are to be made."""

    is_inline: bool = Field(False, description="Whether the sweep's task may run in a worker's own process.")


class StopBody(LeaseBody):
    """What a trial has when it stops itself."""

    value: float
    training_epoch: Annotated[int, Field(ge=0, le=10**15)] | None = None


class RungBody(LeaseBody):
    """What a trial has at a rung."""

    value: float
    training_epoch: int = Field(ge=0, le=10**15)
    is_stopped: bool = Field(False, description="Whether the trial ends there.")


def _desk(jobs: TheJobs, job_id: str, told: LeaseBody) -> SweepDesk:
    return jobs.desk(SweepDesk, held_lease(jobs, job_id, told))


@router.get("/jobs/{job_id}/sweep")
@allow(WORK)
def get_sweep_of_job(job_id: JobId, told: TheLease, jobs: TheJobs) -> Sweep:
    """The definition of the sweep that a held job belongs to."""
    return _desk(jobs, job_id, told).get_definition()


@router.post("/jobs/{job_id}/sweep/plan")
@allow(WORK)
def plan_trials(job_id: JobId, body: PlanBody, jobs: TheJobs) -> Written:
    """Make the trials that a held planning job is to plan; gives their number. Again it makes none twice."""
    return Written(count=_desk(jobs, job_id, body).plan(is_inline=body.is_inline))


@router.post("/jobs/{job_id}/sweep/adapt")
@allow(WORK)
def adapt_sweep(job_id: JobId, body: LeaseBody, jobs: TheJobs) -> Written:
    """Put the trials that wait in order, the most promising first; gives how many have changed."""
    return Written(count=_desk(jobs, job_id, body).adapt())


@router.get("/jobs/{job_id}/trial")
@allow(WORK)
def get_earlier_runs(job_id: JobId, told: TheLease, jobs: TheJobs) -> EarlierRuns:
    """What a held trial has come to, when others ran it."""
    return _desk(jobs, job_id, told).find_earlier_runs()


@router.put("/jobs/{job_id}/trial/rungs/{rung}", status_code=204)
@allow(WORK)
def keep_rung(job_id: JobId, rung: Rung, body: RungBody, jobs: TheJobs) -> Response:
    """Record what a held trial has at a rung, in place of what it had there."""
    desk = _desk(jobs, job_id, body)
    desk.keep_rung(rung, body.value, epoch=body.training_epoch, is_stopped=body.is_stopped)
    return Response(status_code=204)


@router.put("/jobs/{job_id}/trial/stop", status_code=204)
@allow(WORK)
def keep_stop(job_id: JobId, body: StopBody, jobs: TheJobs) -> Response:
    """Record what a held trial had when it stopped itself."""
    _desk(jobs, job_id, body).keep_stop(body.value, epoch=body.training_epoch)
    return Response(status_code=204)


@router.get("/jobs/{job_id}/trial/rungs/{rung}")
@allow(WORK)
def list_others_at_rung(job_id: JobId, rung: Rung, told: TheLease, jobs: TheJobs) -> list[float]:
    """What the other trials of the sweep have had at a rung so far."""
    return _desk(jobs, job_id, told).list_others_at(rung)
