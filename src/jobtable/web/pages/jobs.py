"""The list of jobs, the page of one job, and the form that submits one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from pydantic import AfterValidator, BaseModel

from jobtable.errors import ValueRefusedError
from jobtable.jobs.lifecycle.owners import owner_of
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.read.listing import JobFilter, list_jobs
from jobtable.jobs.read.progress import read_group_progress
from jobtable.jobs.stored.entities import Job, JobDependency, JobLog
from jobtable.jobs.stored.field_types import LogLevel, Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.submit.submission import copy_of, why_no_copy
from jobtable.store import Page, Store
from jobtable.system import system_named
from jobtable.web.formats import segment
from jobtable.web.guard import READ, WRITE, PageRoute, allow
from jobtable.web.injection import JobId, TheAssist, TheJobs, TheQueries, TheStore
from jobtable.web.pages.assist import models_asked
from jobtable.web.pages.comparison import MOST_COMPARED
from jobtable.web.pages.frame import render
from jobtable.web.pages.metric_series import metric_series
from jobtable.web.pages.queues import known_workers
from jobtable.workflows.asl.execution.starting import JOB_TYPE

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_PAGE = 50
_MOST_CHILDREN = 100
_MOST_LINES = 300
_MOST_LETTERS = 2_000_000
"""Maximum number of characters of a log to read for a page, because a line may be as large as an item."""
_LONGEST_LINE = 5000
"""Characters of a line that are shown; job.js has the same number."""
_MOST_EDGES = 50


class FilterForm(BaseModel):
    """The filters as the form sends them; an empty field does not filter."""

    status: Annotated[str, AfterValidator(str.upper)] = ""
    user: str = ""
    queue: str = ""
    tag: str = ""
    task: str = ""
    text: str = ""

    def filter(self) -> JobFilter:
        """Return the filter of the list, or raise ValueRefusedError for an unknown status."""
        if self.status and self.status not in set(Status):
            raise ValueRefusedError(f"unknown status {self.status[:40]!r}; must be one of {', '.join(Status)}")
        given: dict[str, Any] = {name: value or None for name, value in self}
        given["status"] = Status(self.status) if self.status else None
        return JobFilter(**given)


@router.get("/jobs")
@allow(READ)
def show_jobs(
    request: Request, store: TheStore, queries: TheQueries, form: Annotated[FilterForm, Query()], cursor: str = ""
) -> Response:
    filters = form.model_dump()
    page = list_jobs(store, form.filter(), cursor=cursor or None, limit=_PAGE)
    return render(
        request,
        "jobs.html",
        title="Jobs",
        page=page,
        filters=filters,
        is_filtered=any(filters.values()),
        is_first=not cursor,
        statuses=list(Status),
        most_compared=MOST_COMPARED,
        groups=read_group_progress(store, page.items),
        queues=_queue_names(queries),
    )


def _queue_names(queries: JobQueries) -> list[str]:
    return [each.queue_name for each in queries.list_queues().page(size=100).items]


@router.get("/submit")
@allow(WRITE)
def show_submission(request: Request, queries: TheQueries, like: str = "") -> Response:
    """Show the form for a new job; `like` is a job to copy."""
    earlier = queries.get_job(like) if like else None
    return render(
        request,
        "submit.html",
        title="Submit a job",
        like=earlier,
        new=NewJob(name="") if earlier is None else copy_of(earlier),
        queues=_queue_names(queries),
    )


@router.get("/jobs/{job_id}")
@allow(READ)
def show_job(
    request: Request,
    job_id: JobId,
    store: TheStore,
    jobs: TheJobs,
    assist: TheAssist,
    *,
    under: str = "",
    calls: str = "",
) -> Response:
    """Show one job; `under` is the cursor of its children, `calls` that of its calls of models."""
    queries = jobs.queries
    job = queries.get_job(job_id)
    history = queries.list_statuses(job_id, newest_first=True).page(size=100).items
    children = queries.list_children(job).page(under or None, size=_MOST_CHILDREN)
    lines, has_earlier_lines = _last_lines(queries, job_id)
    groups = read_group_progress(store, [job, *children.items])
    parent = store.find(Job.key(job_id=job.parent_job_id)) if job.parent_job_id else None
    owner = owner_link(job, parent) or execution_link(job)
    return render(
        request,
        "job.html",
        title=job.name,
        job=job,
        waiting=jobs.why_waiting(job),
        has_copies=why_no_copy(job) is None,
        groups=groups,
        known_workers=known_workers(store, [job]),
        timing=jobs.timing_of(job, percent=groups[job_id].percent if job_id in groups else None),
        parent=parent,
        owner=owner,
        history=history,
        lines=lines,
        longest_line=_LONGEST_LINE,
        has_earlier_lines=has_earlier_lines,
        levels=list(LogLevel),
        children=children.items,
        is_first_page=not under,
        under=children.cursor,
        asked=models_asked(assist, job, calls),
        waits_for=_edges(store, queries.list_dependencies(job_id).page(size=_MOST_EDGES), "dependency_job_id"),
        waited_for_by=_edges(store, queries.list_dependents(job_id).page(size=_MOST_EDGES), "job_id"),
        checkpoints=queries.list_checkpoints(job_id, newest_first=True).page(size=50).items,
        artifacts=queries.list_artifacts(job_id).page(size=100).items,
        log_texts=queries.list_log_texts(job_id).page(size=50).items,
        resources=queries.list_resources(job_id).page(size=50).items,
        # The metrics of a system's group are those of its children, which have charts of their own.
        series=[] if owner is not None and job.definition.is_group else metric_series(store, job_id),
    )


def _last_lines(queries: JobQueries, job_id: str) -> tuple[list[JobLog], bool]:
    """Return the end of a log, and whether it has earlier lines."""
    lines: list[JobLog] = []
    letters = 0
    for line in queries.list_logs(job_id, newest_first=True).take(_MOST_LINES + 1):
        if len(lines) == _MOST_LINES or letters > _MOST_LETTERS:
            return lines[::-1], True
        lines.append(line)
        letters += len(line.message) + len(line.exception or "")
    return lines[::-1], False


def _edges(store: Store, page: Page[JobDependency], end: str) -> tuple[list[tuple[JobDependency, Job | None]], bool]:
    """Return edges with the job at one end of each, and whether there are more."""
    jobs = store.batch_get(Job.key(job_id=getattr(edge, end)) for edge in page.items)
    return list(zip(page.items, jobs, strict=True)), page.cursor is not None


@dataclass(frozen=True)
class OwnerLink:
    """The page of what a job belongs to."""

    name: str
    path: str


_EXECUTIONS = {
    "durable execution": ("Durable execution", "/workflows/durable", "function"),
    JOB_TYPE: ("Execution", "/workflows/executions", "machine"),
}
"""For the jobs of executions: what they are, where their pages are, and the parameter that names the program."""


def execution_link(job: Job) -> OwnerLink | None:
    """Return the page of the execution that a job moves; None for any other job."""
    params = job.definition.params
    title, path, program = _EXECUTIONS.get(job.job_type, ("", "", ""))
    if program not in params or "name" not in params:
        return None
    return OwnerLink(f"{title} {params['name']}", f"{path}/{segment(params[program])}/{segment(params['name'])}")


def owner_link(job: Job, parent: Job | None) -> OwnerLink | None:
    """Return the page of what a job under that parent belongs to; None for a job that stands alone."""
    owner = owner_of(job, parent)
    system = None if owner is None else system_named(owner.system)
    if owner is None or system is None or system.job_page is None:
        return None
    page_id = owner.id if owner.page_id is None else owner.page_id
    path = system.job_page.format(id=quote(page_id, safe=""))
    return OwnerLink(f"{system.thing or system.title} {page_id}", path) if page_id else None
