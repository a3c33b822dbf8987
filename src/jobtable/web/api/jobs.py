"""Submit, find, control and delete jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.read.listing import JobFilter, list_jobs
from jobtable.jobs.read.progress import GroupProgress, Timing, find_group_progress, percent_of
from jobtable.jobs.read.waiting import Waiting
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Priority, Status
from jobtable.jobs.submit.definition import DEFAULT_QUEUE, DependsOn, NewJob, ParentWaits, RetryPolicy, RollUp
from jobtable.jobs.verbs import JobVerbs
from jobtable.system import Owner
from jobtable.web.api.route_parts import Body, Id, Name, api_router, with_kind
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import CallerName, CallerOf, JobId, PageOf, Paging, TheJobs, TheQueries, TheStore

router = api_router("jobs")
creation = api_router("jobs", CreationRoute)

Seconds = Annotated[float, Field(gt=0, le=10**9)]


class NewJobBody(Body):
    """A job to submit. If one caller submits the same `key` again, no second job is created."""

    name: Name = Field(examples=["train the small model"])
    task: Annotated[str, Field(pattern=r"^[\w.]+:[\w.]+$", max_length=500)] | None = Field(
        None,
        description="Path of a function marked with @task, as in `module:function`. Only a group has none.",
        examples=["training.tasks:train"],
    )
    params: dict[str, Any] = Field({}, examples=[{"learning_rate": 0.01}])
    queue: Id = DEFAULT_QUEUE
    key: Name | None = None
    job_id: Id | None = None
    description: str = Field("", max_length=10_000)
    job_type: Name = "job"
    parent_job_id: Name | None = None
    priority: Priority = 500
    tags: frozenset[Name] = Field(frozenset(), max_length=100)
    estimated_duration: float | None = Field(None, ge=0, le=10**9)
    max_attempts: int = Field(1, ge=1, le=1000)
    timeout_seconds: Seconds | None = None
    memory_mb: Seconds | None = None
    retry: RetryPolicy = RetryPolicy()
    most_interruptions: int = Field(3, ge=0, le=1000)
    grace_seconds: float = Field(10.0, ge=0, le=10**6)
    max_cost: float | None = Field(
        None, ge=0, le=10**6, description="The most US dollars that models asked by the job and all below it may cost."
    )
    max_tokens: int | None = Field(
        None, ge=0, le=10**15, description="The most tokens that their requests and answers may have."
    )
    config: dict[str, Any] = Field({}, description="More entries of the job's configuration.")
    depends_on: list[DependsOn] = Field([], max_length=40)
    parent_waits: ParentWaits | None = None
    owner: Owner | None = None
    roll_up: RollUp | None = None
    group_id: Name | None = None
    not_before: datetime | None = None

    def new_job(self, user: str) -> NewJob:
        """Return the job as the engine takes it."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return NewJob(**{**values, "depends_on": tuple(self.depends_on)}, user=user)


@dataclass(frozen=True)
class JobProgress:
    """The progress of a job."""

    percent: float
    group: GroupProgress | None
    """For a group: how many of its descendants have ended."""
    timing: Timing | None
    """Only while it runs."""


Wanted = Annotated[str | None, Field(min_length=1, max_length=200)]


class FilterQuery(BaseModel):
    """Filters of the list of jobs."""

    status: Status | None = None
    user: Wanted = None
    queue: Wanted = None
    parent: Annotated[str | None, Field(min_length=1, max_length=1000)] = Field(
        None, description="Only the children of this job, not its other descendants."
    )
    tag: Wanted = None
    job_type: Wanted = None
    task: Annotated[str | None, Field(min_length=1, max_length=500)] = None
    text: Wanted = Field(
        None, description="Found in the name, the task or a parameter (as name=value), or at the start of the id."
    )

    def filter(self) -> JobFilter:
        """Return the filter of the list."""
        return JobFilter(**self.model_dump())


class Reason(Body):
    """The reason for an operation, recorded in the job's history."""

    message: str | None = Field(None, max_length=1000)


class NewPriority(Body):
    """The new priority of a job."""

    priority: Priority


@creation.post("/jobs", status_code=201)
@allow(WRITE)
def submit_job(body: NewJobBody, jobs: TheJobs, caller: CallerOf) -> Job:
    """Submit a job. It starts when its dependencies are met and a worker of its queue is free."""
    return jobs.submit(body.new_job(caller.name))


@creation.post("/job-groups", status_code=201)
@allow(WRITE)
def open_group(body: NewJobBody, jobs: TheJobs, caller: CallerOf) -> Job:
    """Create a group: a job that only has children. It runs until it is sealed and its children have ended."""
    return jobs.open_group(body.new_job(caller.name))


@router.get("/jobs")
@allow(READ)
def list_all_jobs(store: TheStore, paging: Paging, wanted: Annotated[FilterQuery, Query()]) -> PageOf[Job]:
    """List jobs, newest first. A page may be shorter than its limit although its cursor leads to more."""
    page = list_jobs(store, wanted.filter(), cursor=paging.cursor, limit=paging.limit)
    return PageOf.model_construct(items=page.items, cursor=page.cursor)


@router.get("/jobs/{job_id}/waiting")
@allow(READ)
def get_waiting(job_id: JobId, jobs: TheJobs) -> Waiting | None:
    """Return every reason why a job waits, or null if it is running or has ended."""
    return jobs.why_waiting(jobs.queries.get_job(job_id))


@router.get("/jobs/{job_id}/progress")
@allow(READ)
def get_job_progress(job_id: JobId, jobs: TheJobs) -> JobProgress:
    """Return the progress of a job, and its estimated end while it runs. A group counts its ended descendants."""
    job = jobs.queries.get_job(job_id)
    group = find_group_progress(jobs.store, job)
    timing = jobs.timing_of(job, percent=None if group is None else group.percent)
    return JobProgress(percent=percent_of(job, group), group=group, timing=timing)


@router.get("/jobs/{job_id}/everything")
@allow(READ)
def list_everything(job_id: JobId, queries: TheQueries, paging: Paging) -> PageOf[dict[str, Any]]:
    """List the job and every item stored under it, each with the name of its entity as `entity`."""
    page = paging.page(queries.list_everything(job_id), under=partial(queries.get_job, job_id))
    return PageOf(items=[with_kind(item) for item in page.items], cursor=page.cursor)


@router.get("/jobs/{job_id}/children")
@allow(READ)
def list_children(job_id: JobId, queries: TheQueries, paging: Paging) -> PageOf[Job]:
    """List the children of a job, oldest first."""
    return paging.page(queries.list_children(queries.get_job(job_id)))


@router.get("/jobs/{job_id}/descendants")
@allow(READ)
def list_descendants(job_id: JobId, queries: TheQueries, paging: Paging) -> PageOf[Job]:
    """List all descendants of a root job, by parent and then oldest first."""
    return paging.page(queries.list_descendants(job_id), under=partial(queries.get_job, job_id))


add_verbs(router, TheQueries, {"job_id": JobId}, ("get_job", "GET /jobs/{job_id}", JobQueries.get_job))
add_verbs(
    router,
    TheJobs,
    {"job_id": JobId, "by": CallerName},
    ("cancel_job", "POST /jobs/{job_id}/cancel", JobVerbs.cancel, Reason | None),
    ("stop_job", "POST /jobs/{job_id}/stop", JobVerbs.stop, Reason | None),
    ("prioritise_job", "PUT /jobs/{job_id}/priority", JobVerbs.prioritise, NewPriority),
    ("retry_job", "POST /jobs/{job_id}/retry", JobVerbs.retry),
    ("seal_group", "POST /jobs/{job_id}/seal", JobVerbs.seal),
    ("delete_job", "DELETE /jobs/{job_id}", JobVerbs.delete),
)
