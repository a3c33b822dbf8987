"""Queues: made, changed, paused, resumed, deleted, looked into."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from jobtable.jobs.stored.entities import DEFAULT_CONCURRENCY, Queue, QueueJob
from jobtable.jobs.stored.fields import Priority
from jobtable.web.api.parts import Body, Id, api_router
from jobtable.web.dependencies import JobId, PageOf, Paging, TheJobs, TheQueries, path_id
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute

router = api_router("queues")
creation = api_router("queues", CreationRoute)

QueueName = Annotated[str, path_id("gpu")]
Concurrency = Annotated[int, Field(ge=1, le=10**6)]


class NewQueue(Body):
    """A queue to make."""

    queue_name: Id = Field(examples=["gpu"])
    max_concurrent_jobs: Concurrency = DEFAULT_CONCURRENCY
    priority: Priority = 500
    description: str = Field("", max_length=10_000)


class QueueChange(Body):
    """The settings to change; what is null stays."""

    max_concurrent_jobs: Concurrency | None = None
    priority: Priority | None = None
    description: str | None = Field(None, max_length=10_000)


@creation.post("/queues", status_code=201)
@allow(WRITE)
def create_queue(body: NewQueue, jobs: TheJobs) -> Queue:
    """Make a queue. One that a job names first is made with the usual settings."""
    return jobs.create_queue(
        body.queue_name,
        max_concurrent_jobs=body.max_concurrent_jobs,
        priority=body.priority,
        description=body.description,
    )


@router.get("/queues")
@allow(READ)
def list_queues(queries: TheQueries, paging: Paging) -> PageOf[Queue]:
    """All queues, by name."""
    return paging.page(queries.list_queues())


@router.get("/queues/{queue_name}")
@allow(READ)
def get_queue(queue_name: QueueName, queries: TheQueries) -> Queue:
    """One queue."""
    return queries.get_queue(queue_name)


@router.patch("/queues/{queue_name}")
@allow(WRITE)
def change_queue(queue_name: QueueName, body: QueueChange, jobs: TheJobs) -> Queue:
    """Change the settings that are given."""
    return jobs.change_queue(queue_name, **body.model_dump())


@router.delete("/queues/{queue_name}", status_code=204)
@allow(WRITE)
def delete_queue(queue_name: QueueName, jobs: TheJobs) -> Response:
    """Remove a queue in which nothing waits or runs. A job that names it makes it again, with the usual settings."""
    jobs.delete_queue(queue_name)
    return Response(status_code=204)


@router.post("/queues/{queue_name}/pause")
@allow(WRITE)
def pause_queue(queue_name: QueueName, jobs: TheJobs) -> Queue:
    """Let no more jobs of the queue start; those that run go on."""
    return jobs.pause_queue(queue_name)


@router.post("/queues/{queue_name}/resume")
@allow(WRITE)
def resume_queue(queue_name: QueueName, jobs: TheJobs) -> Queue:
    """Let jobs of the queue start again."""
    return jobs.resume_queue(queue_name)


@router.get("/queues/{queue_name}/jobs")
@allow(READ)
def list_jobs_of_queue(
    queue_name: QueueName,
    queries: TheQueries,
    paging: Paging,
    group_id: Annotated[str | None, Query(min_length=1, description="Only the jobs of this group.")] = None,
) -> PageOf[QueueJob]:
    """The jobs in a queue, from their submission to their end, in no order."""
    found = queries.list_jobs_of_queue(queue_name)
    if group_id is not None:
        found = queries.list_queued_of_group(queue_name, group_id)
    return paging.page(found, under=partial(queries.get_queue, queue_name))


@router.get("/queues/{queue_name}/ready")
@allow(READ)
def list_ready(queue_name: QueueName, queries: TheQueries, paging: Paging) -> PageOf[QueueJob]:
    """The jobs of a queue that can be claimed: the most urgent first, and of those the oldest."""
    return paging.page(queries.list_ready(queue_name), under=partial(queries.get_queue, queue_name))


@router.get("/jobs/{job_id}/queues")
@allow(READ)
def list_queues_of_job(job_id: JobId, queries: TheQueries, paging: Paging) -> PageOf[QueueJob]:
    """The queues that a job is in."""
    return paging.page(queries.list_queues_of_job(job_id), under=partial(queries.get_job, job_id))
