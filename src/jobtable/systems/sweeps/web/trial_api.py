"""The routes for the jobs of sweeps that remote workers hold."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from jobtable.systems.sweeps.desk import EarlierRuns, SweepDesk
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.trials import LAST_RUNG
from jobtable.web.api.route_parts import Written, api_router
from jobtable.web.api.work import LeaseBody, held_lease
from jobtable.web.guard import WORK, allow
from jobtable.web.injection import JobId, TheJobs

router = api_router("sweeps as they run")

Rung = Annotated[int, Field(ge=0, le=LAST_RUNG)]
TheLease = Annotated[LeaseBody, Query()]


class PlanBody(LeaseBody):
    """What only a worker knows about the trials to make."""

    is_inline: bool = Field(False, description="Whether the sweep's task may run in a worker's own process.")


class StopBody(LeaseBody):
    """The value of a trial that stops itself."""

    value: float
    training_epoch: Annotated[int, Field(ge=0, le=10**15)] | None = None


class RungBody(LeaseBody):
    """The value of a trial at a rung."""

    value: float
    training_epoch: int = Field(ge=0, le=10**15)
    is_stopped: bool = Field(False, description="Whether the trial ends there.")


def _desk(jobs: TheJobs, job_id: str, lease: LeaseBody) -> SweepDesk:
    return jobs.desk(SweepDesk, held_lease(jobs, job_id, lease))


@router.get("/jobs/{job_id}/sweep")
@allow(WORK)
def get_sweep_of_job(job_id: JobId, lease: TheLease, jobs: TheJobs) -> Sweep:
    """Return the definition of the sweep of a held job."""
    return _desk(jobs, job_id, lease).get_definition()


@router.post("/jobs/{job_id}/sweep/plan")
@allow(WORK)
def plan_trials(job_id: JobId, body: PlanBody, jobs: TheJobs) -> Written:
    """Make the trials of a held planning job; return their number. The same request again makes none twice."""
    return Written(count=_desk(jobs, job_id, body).plan(is_inline=body.is_inline))


@router.post("/jobs/{job_id}/sweep/adapt")
@allow(WORK)
def adapt_sweep(job_id: JobId, body: LeaseBody, jobs: TheJobs) -> Written:
    """Reorder the waiting trials, most promising first; return the number changed."""
    return Written(count=_desk(jobs, job_id, body).adapt())


@router.get("/jobs/{job_id}/trial")
@allow(WORK)
def get_earlier_runs(job_id: JobId, lease: TheLease, jobs: TheJobs) -> EarlierRuns:
    """Return what earlier runs of a held trial recorded."""
    return _desk(jobs, job_id, lease).find_earlier_runs()


@router.put("/jobs/{job_id}/trial/rungs/{rung}", status_code=204)
@allow(WORK)
def keep_rung(job_id: JobId, rung: Rung, body: RungBody, jobs: TheJobs) -> Response:
    """Record the value of a held trial at a rung, over an earlier one."""
    desk = _desk(jobs, job_id, body)
    desk.keep_rung(rung, body.value, epoch=body.training_epoch, is_stopped=body.is_stopped)
    return Response(status_code=204)


@router.put("/jobs/{job_id}/trial/stop", status_code=204)
@allow(WORK)
def keep_stop(job_id: JobId, body: StopBody, jobs: TheJobs) -> Response:
    """Record the value at which a held trial stopped itself."""
    _desk(jobs, job_id, body).keep_stop(body.value, epoch=body.training_epoch)
    return Response(status_code=204)


@router.get("/jobs/{job_id}/trial/rungs/{rung}")
@allow(WORK)
def list_others_at_rung(job_id: JobId, rung: Rung, lease: TheLease, jobs: TheJobs) -> list[float]:
    """List the values of the other trials at a rung so far."""
    return _desk(jobs, job_id, lease).list_others_at(rung)
