"""Dependencies between jobs, and the metrics that children roll up."""

from __future__ import annotations

from functools import partial

from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.stored.entities import Job, JobMetric
from jobtable.jobs.verbs import JobVerbs
from jobtable.web.api.job_records import MetricName
from jobtable.web.api.route_parts import api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import JobId, PageOf, Paging, TheJobs, TheQueries

router = api_router("dependencies")
creation = api_router("dependencies", CreationRoute)


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


add_dependency = ("add_dependency", "POST /jobs/{job_id}/dependencies 201", JobVerbs.add_dependency)
add_verbs(creation, TheJobs, {"job_id": JobId}, add_dependency)
add_verbs(
    router,
    TheQueries,
    {"job_id": JobId, "metric_name": MetricName},
    ("list_dependencies", "GET /jobs/{job_id}/dependencies", JobQueries.list_dependencies),
    ("list_dependents", "GET /jobs/{job_id}/dependents", JobQueries.list_dependents),
    (
        "list_reports_of_epoch",
        "GET /jobs/{job_id}/metrics/{metric_name}/epochs/{epoch}",
        JobQueries.list_reports_of_epoch,
    ),
    under=[JobQueries.get_job],
)
