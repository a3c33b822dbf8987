"""Instances: the workers that run jobs."""

from __future__ import annotations

from typing import Annotated

from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.stored.entities import Instance
from jobtable.jobs.stored.field_types import InstanceStatus
from jobtable.web.api.route_parts import api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, allow
from jobtable.web.injection import JobId, PageOf, Paging, TheQueries, path_id

router = api_router("instances")

InstanceId = Annotated[str, path_id("worker-1")]


@router.get("/instances")
@allow(READ)
def list_instances(
    queries: TheQueries, paging: Paging, status: InstanceStatus = InstanceStatus.RUNNING
) -> PageOf[Instance]:
    """List the instances with a status."""
    return paging.page(queries.list_instances_by_status(status))


add_verbs(
    router,
    TheQueries,
    {"instance_id": InstanceId, "job_id": JobId},
    ("get_instance", "GET /instances/{instance_id}", JobQueries.get_instance),
    ("list_jobs_of_instance", "GET /instances/{instance_id}/jobs", JobQueries.list_jobs_of_instance),
    ("list_instances_of_job", "GET /jobs/{job_id}/instances", JobQueries.list_instances_of_job),
    under=[JobQueries.get_instance, JobQueries.get_job],
)
