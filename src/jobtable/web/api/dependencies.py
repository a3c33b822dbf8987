"""Dependencies between jobs, and the metrics that children roll up."""

from __future__ import annotations

from functools import partial

from jobtable.jobs.stored.entities import Job, JobDependency, JobMetric
from jobtable.jobs.submit.definition import DependsOn
from jobtable.web.api.job_records import MetricName
from jobtable.web.api.route_parts import api_router
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import JobId, PageOf, Paging, TheJobs, TheQueries

router = api_router("dependencies")
creation = api_router("dependencies", CreationRoute)


@creation.post("/jobs/{job_id}/dependencies", status_code=201)
@allow(WRITE)
def add_dependency(job_id: JobId, on: DependsOn, jobs: TheJobs) -> JobDependency:
    """Add a dependency; refused if it would create a cycle."""
    return jobs.add_dependency(job_id, on)


@router.get("/jobs/{job_id}/dependencies")
@allow(READ)
def list_dependencies(job_id: JobId, queries: TheQueries, paging: Paging) -> PageOf[JobDependency]:
    """List the dependencies of a job."""
    return paging.page(queries.list_dependencies(job_id), under=partial(queries.get_job, job_id))


@router.get("/jobs/{job_id}/dependents")
@allow(READ)
def list_dependents(job_id: JobId, queries: TheQueries, paging: Paging) -> PageOf[JobDependency]:
    """List the dependents of a job; for a group, also its children."""
    return paging.page(queries.list_dependents(job_id), under=partial(queries.get_job, job_id))


@router.get("/jobs/{job_id}/unfinished-children")
@allow(READ)
def list_unfinished_children(job_id: JobId, queries: TheQueries, paging: Paging) -> PageOf[Job]:
    """List the dependents of a job that are not COMPLETED. Each page examines up to `limit` dependents."""
    children = paging.page(queries.list_dependents(job_id), under=partial(queries.get_job, job_id))
    return PageOf.model_construct(items=list(queries.find_unfinished(children.items)), cursor=children.cursor)


@router.get("/jobs/{job_id}/best/{metric_name}")
@allow(READ)
def find_best_metric(
    job_id: JobId, metric_name: MetricName, queries: TheQueries, highest: bool = False
) -> JobMetric | None:
    """Return the lowest (or highest) value that children reported under a job, with the child's id, or null."""
    best = queries.find_best_metric(job_id, metric_name, highest=highest)
    if best is None:
        queries.get_job(job_id)
    return best


@router.get("/jobs/{job_id}/metrics/{metric_name}/epochs/{epoch}")
@allow(READ)
def list_reports_of_epoch(
    job_id: JobId, metric_name: MetricName, epoch: int, queries: TheQueries, paging: Paging
) -> PageOf[JobMetric]:
    """List the values of a metric that children reported under a job after an epoch, oldest first."""
    return paging.page(
        queries.list_reports_of_epoch(job_id, metric_name, epoch), under=partial(queries.get_job, job_id)
    )
