"""Submit many jobs at once, or act on many, each with an outcome of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Generic, TypeVar

from fastapi import Body as JsonBody
from pydantic import BaseModel, Field

from jobtable.errors import JobtableError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.verbs import ActedOn
from jobtable.web.api.jobs import NewJobBody
from jobtable.web.api.route_parts import Body, api_router
from jobtable.web.guard import WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import CallerOf, TheJobs
from jobtable.web.problems import Problem, problem_of

router = api_router("job-batches")
creation = api_router("job-batches", CreationRoute)

_MOST_ACTED_ON = 100
"""It keeps requests short: a job may be ended or deleted together with its descendants."""


class ManyJobsBody(Body):
    """The jobs to act on. An invalid id counts as a missing job and does not stop the others."""

    job_ids: list[str] = Field(min_length=1, max_length=_MOST_ACTED_ON, examples=[["3f6c1a2b-train", "91d2e07c-train"]])


class EndManyBody(ManyJobsBody):
    """The jobs to end, whether to end their descendants too, and the reason for their history."""

    tree: bool = True
    message: str | None = Field(None, max_length=1000)


class RetryManyBody(ManyJobsBody):
    """The jobs to retry, and whether to retry their descendants that did not complete."""

    tree: bool = False


class DeleteManyBody(ManyJobsBody):
    """The jobs to delete, and whether to delete their descendants; otherwise a job with children is refused."""

    tree: bool = False


class BatchOutcome(BaseModel):
    """The outcome for one job; `problem` is what a single request would return."""

    job_id: str
    problem: Problem | None = None


class JobOutcome(BatchOutcome):
    """The outcome for one job: the job after the operation, or the problem that a single request would return."""

    job: Job | None = None


class DeletionOutcome(BatchOutcome):
    """The outcome for one job: how many items were deleted, or the problem that a single request would return."""

    count: int | None = None


AnyOutcome = TypeVar("AnyOutcome", bound=BatchOutcome)


class Outcomes(BaseModel, Generic[AnyOutcome]):
    """The outcomes in the order of the request, and how many succeeded and were refused."""

    done: int
    refused: int
    outcomes: list[AnyOutcome]


@creation.post("/job-batches", status_code=201)
@allow(WRITE)
def submit_jobs(
    bodies: Annotated[list[NewJobBody], JsonBody(min_length=1, max_length=1000)], jobs: TheJobs, caller: CallerOf
) -> list[Job]:
    """Submit up to 1,000 jobs. An interrupted request can be repeated if the jobs have keys or ids."""
    return jobs.submit_many(body.new_job(caller.name) for body in bodies)


@router.post("/job-batches/cancel")
@allow(WRITE)
def cancel_jobs(body: EndManyBody, jobs: TheJobs, caller: CallerOf) -> Outcomes[JobOutcome]:
    """Cancel up to 100 jobs. A job that cannot be cancelled does not stop the others."""
    return _outcomes(jobs.many.cancel(body.job_ids, by=caller.name, message=body.message, tree=body.tree))


@router.post("/job-batches/stop")
@allow(WRITE)
def stop_jobs(body: EndManyBody, jobs: TheJobs, caller: CallerOf) -> Outcomes[JobOutcome]:
    """Stop up to 100 jobs. A job that cannot be stopped does not stop the others."""
    return _outcomes(jobs.many.stop(body.job_ids, by=caller.name, message=body.message, tree=body.tree))


@router.post("/job-batches/retry")
@allow(WRITE)
def retry_jobs(body: RetryManyBody, jobs: TheJobs, caller: CallerOf) -> Outcomes[JobOutcome]:
    """Retry up to 100 jobs. A job that cannot be retried does not stop the others."""
    return _outcomes(jobs.many.retry(body.job_ids, by=caller.name, tree=body.tree))


@router.post("/job-batches/delete")
@allow(WRITE)
def delete_jobs(body: DeleteManyBody, jobs: TheJobs) -> Outcomes[DeletionOutcome]:
    """Delete up to 100 ended jobs. A job that cannot be deleted does not stop the others."""
    acted = jobs.many.delete(body.job_ids, tree=body.tree)
    return _counted(
        [DeletionOutcome(job_id=each.job_id, count=each.given, problem=_problem(each.error)) for each in acted]
    )


def _outcomes(acted: Iterable[ActedOn[Job]]) -> Outcomes[JobOutcome]:
    return _counted([JobOutcome(job_id=each.job_id, job=each.given, problem=_problem(each.error)) for each in acted])


def _counted(outcomes: list[AnyOutcome]) -> Outcomes[AnyOutcome]:
    refused = sum(each.problem is not None for each in outcomes)
    return Outcomes(done=len(outcomes) - refused, refused=refused, outcomes=outcomes)


def _problem(error: JobtableError | None) -> Problem | None:
    return None if error is None else problem_of(error)
