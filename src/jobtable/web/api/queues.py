"""Create, change, pause, resume, delete and read queues."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query
from pydantic import Field

from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.stored.entities import DEFAULT_CONCURRENCY, QueueJob
from jobtable.jobs.stored.field_types import Priority
from jobtable.jobs.verbs import JobVerbs
from jobtable.web.api.route_parts import Body, Id, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import JobId, PageOf, Paging, TheJobs, TheQueries, path_id

router = api_router("queues")
creation = api_router("queues", CreationRoute)

QueueName = Annotated[str, path_id("gpu")]
Concurrency = Annotated[int, Field(ge=1, le=10**6)]


class NewQueue(Body):
    """A queue to create."""

    name: Id = Field(alias="queue_name", examples=["gpu"])
    max_concurrent_jobs: Concurrency = DEFAULT_CONCURRENCY
    priority: Priority = 500
    description: str = Field("", max_length=10_000)


class QueueChange(Body):
    """The settings to change; null leaves a setting as it is."""

    max_concurrent_jobs: Concurrency | None = None
    priority: Priority | None = None
    description: str | None = Field(None, max_length=10_000)


@router.get("/queues/{queue_name}/jobs")
@allow(READ)
def list_jobs_of_queue(
    queue_name: QueueName,
    queries: TheQueries,
    paging: Paging,
    group_id: Annotated[str | None, Query(min_length=1, description="Only entries of this group.")] = None,
) -> PageOf[QueueJob]:
    """List the entries of a queue, which a job has from its submission to its end, in no particular order."""
    found = queries.list_jobs_of_queue(queue_name)
    if group_id is not None:
        found = queries.list_queued_of_group(queue_name, group_id)
    return paging.page(found, under=partial(queries.get_queue, queue_name))


add_verbs(creation, TheJobs, {}, ("create_queue", "POST /queues 201", JobVerbs.create_queue, NewQueue))
add_verbs(
    router,
    TheJobs,
    {"name": Annotated[str, path_id("gpu", alias="queue_name")]},
    ("change_queue", "PATCH /queues/{queue_name}", JobVerbs.change_queue, QueueChange),
    ("pause_queue", "POST /queues/{queue_name}/pause", JobVerbs.pause_queue),
    ("resume_queue", "POST /queues/{queue_name}/resume", JobVerbs.resume_queue),
    ("delete_queue", "DELETE /queues/{queue_name}", JobVerbs.delete_queue),
)
add_verbs(
    router,
    TheQueries,
    {"queue_name": QueueName, "job_id": JobId},
    ("list_queues", "GET /queues", JobQueries.list_queues),
    ("get_queue", "GET /queues/{queue_name}", JobQueries.get_queue),
    ("list_ready", "GET /queues/{queue_name}/ready", JobQueries.list_ready),
    ("list_queues_of_job", "GET /jobs/{job_id}/queues", JobQueries.list_queues_of_job),
    under=[JobQueries.get_queue, JobQueries.get_job],
)
