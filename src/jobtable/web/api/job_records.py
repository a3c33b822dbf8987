"""The history, logs, metrics, checkpoints, artifacts and resources of jobs."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query

from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.read.log_search import LONGEST_WANTED, FoundLine
from jobtable.jobs.read.logs import JobLogs
from jobtable.jobs.report.log_lines import levels_from
from jobtable.jobs.stored.entities import JobLog, JobMetric
from jobtable.jobs.stored.field_types import LogLevel
from jobtable.model.expressions import attribute_of
from jobtable.web.api.route_parts import NewestFirst, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, allow
from jobtable.web.injection import Instant, JobId, PageOf, Paging, TheObjects, TheQueries, TheStore, path_id

router = api_router("job records")

MetricName = Annotated[str, path_id("val_loss")]


@router.get("/jobs/{job_id}/logs")
@allow(READ)
def list_logs(
    job_id: JobId,
    store: TheStore,
    queries: TheQueries,
    paging: Paging,
    *,
    newest_first: NewestFirst = False,
    level: Annotated[LogLevel | None, Query(description="Only lines of this level or a more severe one.")] = None,
    after: Annotated[Instant | None, Query(description="Only lines after this time.")] = None,
) -> PageOf[JobLog]:
    """List the log lines of a job."""
    worse = None if level is None else attribute_of(JobLog.log_level).is_in(*levels_from(level))
    lines = store.query(JobLog.key(job_id=job_id), after=after, newest_first=newest_first, where=worse)
    return paging.page(lines, under=partial(queries.get_job, job_id))


@router.get("/jobs/{job_id}/logs/search")
@allow(READ)
def search_logs(
    job_id: JobId,
    store: TheStore,
    objects: TheObjects,
    paging: Paging,
    *,
    text: Annotated[str, Query(min_length=1, max_length=LONGEST_WANTED, description="The text to find.")],
    run: Annotated[int | None, Query(ge=1, le=99_999, description="Search only this run.")] = None,
    ignore_case: bool = False,
) -> PageOf[FoundLine]:
    """Search the whole log of a job: its full output, or the stored lines if it has none.

    Each page searches a few megabytes, so it may be short or empty although its cursor leads to more.
    """
    found = JobLogs(store, objects).search(job_id, text, epoch=run, ignore_case=ignore_case)
    page = found.page(paging.cursor, paging.limit)
    return PageOf(items=page.items, cursor=page.cursor)


@router.get("/metrics/{metric_name}")
@allow(READ)
def list_metric_of_all_jobs(
    metric_name: MetricName,
    queries: TheQueries,
    paging: Paging,
    by_job: Annotated[bool, Query(description="Order by job instead of by time.")] = False,
    job_id: Annotated[str | None, Query(min_length=1, description="Only this job; implies by_job.")] = None,
    since: Annotated[Instant | None, Query(description="Only values after this time; not with by_job.")] = None,
) -> PageOf[JobMetric]:
    """List the values of a metric of all jobs, oldest first, or job by job."""
    if by_job or job_id is not None:
        return paging.page(queries.list_metric_by_job(metric_name, job_id))
    return paging.page(queries.list_metric_of_all_jobs(metric_name, since=since))


add_verbs(
    router,
    TheQueries,
    {
        "job_id": JobId,
        "metric_name": MetricName,
        "newest_first": NewestFirst,
        "resource_id": Annotated[str, path_id("gpu-0")],
        "since": Instant | None,
    },
    ("list_statuses", "GET /jobs/{job_id}/statuses", JobQueries.list_statuses),
    ("list_statuses_by_status", "GET /statuses", JobQueries.list_statuses_by_status),
    ("list_logs_of_all_jobs", "GET /logs", JobQueries.list_logs_of_all_jobs),
    ("list_log_texts", "GET /jobs/{job_id}/log-texts", JobQueries.list_log_texts),
    ("list_metrics", "GET /jobs/{job_id}/metrics", JobQueries.list_metrics),
    ("list_metric", "GET /jobs/{job_id}/metrics/{metric_name}", JobQueries.list_metric),
    ("list_checkpoints", "GET /jobs/{job_id}/checkpoints", JobQueries.list_checkpoints),
    ("list_checkpoints_of_all_jobs", "GET /checkpoints", JobQueries.list_checkpoints_of_all_jobs),
    ("list_artifacts", "GET /jobs/{job_id}/artifacts", JobQueries.list_artifacts),
    ("list_resources", "GET /jobs/{job_id}/resources", JobQueries.list_resources),
    ("list_uses_of_resource", "GET /resources/{resource_id}", JobQueries.list_uses_of_resource),
    under=[JobQueries.get_job],
)
