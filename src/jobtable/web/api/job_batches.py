"""Many jobs at once: submitted, or acted on, each with an outcome of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from fastapi import Body as JsonBody
from pydantic import BaseModel, Field

from jobtable.errors import JobtableError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.verbs import ActedOn
from jobtable.web.api.jobs import NewJobBody
from jobtable.web.api.parts import Body, api_router
from jobtable.web.dependencies import CallerOf, TheJobs
from jobtable.web.guard import WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.problems import Problem, problem_of

router = api_router("job-batches")
creation = api_router("job-batches", CreationRoute)

_MOST_ACTED_ON = 100
"""So that a request does not take long: with a job, everything under it may be ended or deleted."""


class ManyJobsBody(Body):
    """Which jobs. What can be no id is one of those that are not there, and does not stop the others."""

    job_ids: list[str] = Field(min_length=1, max_length=_MOST_ACTED_ON, examples=[["3f6c1a2b-train", "91d2e07c-train"]])


class EndManyBody(ManyJobsBody):
    """Which jobs, whether those under them too, and why, for their history."""

    tree: bool = True
    message: str | None = Field(None, max_length=1000)


class RetryManyBody(ManyJobsBody):
    """Which jobs, and whether everything under them that has not completed."""

    tree: bool = False


class DeleteManyBody(ManyJobsBody):
    """Which jobs, and whether those under them; without, a job that has some is refused."""

    tree: bool = False


class JobOutcome(BaseModel):
    """What became of one job: the job as it is then, or the problem that a request for it would have met."""

    job_id: str
    job: Job | None = None
    problem: Problem | None = None


class JobOutcomes(BaseModel):
    """The outcomes in the order of the request, and how many there are of each kind."""

    done: int
    refused: int
    outcomes: list[JobOutcome]


class DeletionOutcome(BaseModel):
    """What became of one job: how many items were deleted, or the problem that a request for it would have met."""

    job_id: str
    count: int | None = None
    problem: Problem | None = None


class DeletionOutcomes(BaseModel):
    """The outcomes in the order of the request, and how many there are of each kind."""

    done: int
    refused: int
    outcomes: list[DeletionOutcome]


@creation.post("/job-batches", status_code=201)
@allow(WRITE)
def submit_jobs(
    bodies: Annotated[list[NewJobBody], JsonBody(min_length=1, max_length=1000)], jobs: TheJobs, caller: CallerOf
) -> list[Job]:
    """Submit many jobs. If it is interrupted, the same request again finishes it, where the jobs have keys or ids."""
    return jobs.submit_many(body.new_job(caller.name) for body in bodies)


@router.post("/job-batches/cancel")
@allow(WRITE)
def cancel_jobs(body: EndManyBody, jobs: TheJobs, caller: CallerOf) -> JobOutcomes:
    """Cancel up to 100 jobs, as each would be alone. One that cannot be cancelled does not stop the others."""
    return _outcomes(jobs.many.cancel(body.job_ids, by=caller.name, message=body.message, tree=body.tree))


@router.post("/job-batches/stop")
@allow(WRITE)
def stop_jobs(body: EndManyBody, jobs: TheJobs, caller: CallerOf) -> JobOutcomes:
    """Stop up to 100 jobs, as each would be alone. One that cannot be stopped does not stop the others."""
    return _outcomes(jobs.many.stop(body.job_ids, by=caller.name, message=body.message, tree=body.tree))


@router.post("/job-batches/retry")
@allow(WRITE)
def retry_jobs(body: RetryManyBody, jobs: TheJobs, caller: CallerOf) -> JobOutcomes:
    """Let up to 100 jobs begin anew, as each would alone. One that cannot be retried does not stop the others."""
    return _outcomes(jobs.many.retry(body.job_ids, by=caller.name, tree=body.tree))


@router.post("/job-batches/delete")
@allow(WRITE)
def delete_jobs(body: DeleteManyBody, jobs: TheJobs) -> DeletionOutcomes:
    """Delete up to 100 ended jobs, as each would be alone. One that cannot be deleted does not stop the others."""
    acted = list(jobs.many.delete(body.job_ids, tree=body.tree))
    outcomes = [DeletionOutcome(job_id=each.job_id, count=each.given, problem=_problem(each.error)) for each in acted]
    refused = sum(each.error is not None for each in acted)
    return DeletionOutcomes(done=len(acted) - refused, refused=refused, outcomes=outcomes)


def _outcomes(results: Iterable[ActedOn[Job]]) -> JobOutcomes:
    acted = list(results)
    outcomes = [JobOutcome(job_id=each.job_id, job=each.given, problem=_problem(each.error)) for each in acted]
    refused = sum(each.error is not None for each in acted)
    return JobOutcomes(done=len(acted) - refused, refused=refused, outcomes=outcomes)


def _problem(error: JobtableError | None) -> Problem | None:
    return None if error is None else problem_of(error)
