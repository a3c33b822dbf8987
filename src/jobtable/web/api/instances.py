"""Instances: the workers that run jobs."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from jobtable.jobs.stored.entities import Instance, InstanceJob
from jobtable.jobs.stored.field_types import InstanceStatus
from jobtable.web.api.route_parts import api_router
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


@router.get("/instances/{instance_id}")
@allow(READ)
def get_instance(instance_id: InstanceId, queries: TheQueries) -> Instance:
    """Return one instance."""
    return queries.get_instance(instance_id)


@router.get("/instances/{instance_id}/jobs")
@allow(READ)
def list_jobs_of_instance(instance_id: InstanceId, queries: TheQueries, paging: Paging) -> PageOf[InstanceJob]:
    """List the jobs that an instance runs or ran."""
    found = queries.list_jobs_of_instance(instance_id)
    return paging.page(found, under=partial(queries.get_instance, instance_id))


@router.get("/jobs/{job_id}/instances")
@allow(READ)
def list_instances_of_job(job_id: JobId, queries: TheQueries, paging: Paging) -> PageOf[InstanceJob]:
    """List the instances that run or ran a job."""
    return paging.page(queries.list_instances_of_job(job_id), under=partial(queries.get_job, job_id))
