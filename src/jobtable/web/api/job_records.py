"""The history, logs, metrics, checkpoints, artifacts and resources of jobs."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query

from jobtable.jobs.read.log_search import LONGEST_WANTED, FoundLine
from jobtable.jobs.read.logs import JobLogs
from jobtable.jobs.report.log_lines import levels_from
from jobtable.jobs.stored.entities import (
    JobArtifact,
    JobCheckpoint,
    JobLog,
    JobLogText,
    JobMetric,
    JobResource,
    JobStatus,
)
from jobtable.jobs.stored.field_types import LogLevel, Status
from jobtable.model.expressions import attribute_of
from jobtable.web.api.route_parts import NewestFirst, api_router
from jobtable.web.guard import READ, allow
from jobtable.web.injection import Instant, JobId, PageOf, Paging, TheObjects, TheQueries, TheStore, path_id

router = api_router("job records")

MetricName = Annotated[str, path_id("val_loss")]


@router.get("/jobs/{job_id}/statuses")
@allow(READ)
def list_statuses(
    job_id: JobId, queries: TheQueries, paging: Paging, newest_first: NewestFirst = False
) -> PageOf[JobStatus]:
    """List the status history of a job."""
    return paging.page(queries.list_statuses(job_id, newest_first=newest_first), under=partial(queries.get_job, job_id))


@router.get("/statuses")
@allow(READ)
def list_statuses_by_status(status: Status, queries: TheQueries, paging: Paging) -> PageOf[JobStatus]:
    """List every change to a status, of all jobs, oldest first."""
    return paging.page(queries.list_statuses_by_status(status))


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


@router.get("/logs")
@allow(READ)
def list_logs_of_all_jobs(queries: TheQueries, paging: Paging) -> PageOf[JobLog]:
    """List every log line, by job and then by time."""
    return paging.page(queries.list_logs_of_all_jobs())


@router.get("/jobs/{job_id}/log-texts")
@allow(READ)
def list_log_texts(job_id: JobId, store: TheStore, queries: TheQueries, paging: Paging) -> PageOf[JobLogText]:
    """List where the full output of each run is stored; read it with GET /objects."""
    return paging.page(store.query(JobLogText.key(job_id=job_id)), under=partial(queries.get_job, job_id))


@router.get("/jobs/{job_id}/metrics")
@allow(READ)
def list_metrics(job_id: JobId, queries: TheQueries, paging: Paging, since: Instant | None = None) -> PageOf[JobMetric]:
    """List the metrics of a job, its own and those of its children, by name and then by time."""
    return paging.page(queries.list_metrics(job_id, since=since), under=partial(queries.get_job, job_id))


@router.get("/jobs/{job_id}/metrics/{metric_name}")
@allow(READ)
def list_metric(
    job_id: JobId, metric_name: MetricName, queries: TheQueries, paging: Paging, since: Instant | None = None
) -> PageOf[JobMetric]:
    """List the values of one metric of a job, oldest first."""
    return paging.page(queries.list_metric(job_id, metric_name, since=since), under=partial(queries.get_job, job_id))


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


@router.get("/jobs/{job_id}/checkpoints")
@allow(READ)
def list_checkpoints(
    job_id: JobId, queries: TheQueries, paging: Paging, newest_first: NewestFirst = False
) -> PageOf[JobCheckpoint]:
    """List the checkpoints of a job."""
    return paging.page(
        queries.list_checkpoints(job_id, newest_first=newest_first), under=partial(queries.get_job, job_id)
    )


@router.get("/checkpoints")
@allow(READ)
def list_checkpoints_of_all_jobs(queries: TheQueries, paging: Paging) -> PageOf[JobCheckpoint]:
    """List every checkpoint, by job and then by time."""
    return paging.page(queries.list_checkpoints_of_all_jobs())


@router.get("/jobs/{job_id}/artifacts")
@allow(READ)
def list_artifacts(job_id: JobId, store: TheStore, queries: TheQueries, paging: Paging) -> PageOf[JobArtifact]:
    """List the artifacts of a job, by name; read them with GET /objects."""
    return paging.page(store.query(JobArtifact.key(job_id=job_id)), under=partial(queries.get_job, job_id))


@router.get("/jobs/{job_id}/resources")
@allow(READ)
def list_resources(job_id: JobId, queries: TheQueries, paging: Paging) -> PageOf[JobResource]:
    """List the resources that a job holds or held."""
    return paging.page(queries.list_resources(job_id), under=partial(queries.get_job, job_id))


@router.get("/resources/{resource_id}")
@allow(READ)
def list_uses_of_resource(
    resource_id: Annotated[str, path_id("gpu-0")], queries: TheQueries, paging: Paging
) -> PageOf[JobResource]:
    """List the jobs that used a resource."""
    return paging.page(queries.list_uses_of_resource(resource_id))
