"""Jobs side by side: their parameters, results, last metrics and configuration, with the differences first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from jobtable.errors import missing
from jobtable.jobs.read.listing import JobFilter, cursor_after, list_jobs
from jobtable.jobs.stored.entities import Job
from jobtable.store import Store
from jobtable.web.formats import NOTHING, setting_text
from jobtable.web.guard import READ, PageRoute, allow
from jobtable.web.injection import TheStore
from jobtable.web.pages.frame import render
from jobtable.web.pages.metric_series import last_values
from jobtable.web.pages.queues import known_workers

router = APIRouter(route_class=PageRoute, include_in_schema=False)

MOST_COMPARED = 8
_MOST_EARLIER = 4
_MOST_LIKE = 50
"""Number of earlier jobs of a task that are searched for the same name."""
_OWN_ROWS = {"task", "params"}


@dataclass(frozen=True)
class Row:
    """One value of each job."""

    name: str
    values: list[str]
    differs: bool


@router.get("/compare")
@allow(READ)
def show_comparison(
    request: Request,
    store: TheStore,
    ids: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1000)]],
        Query(alias="id", min_length=1, max_length=MOST_COMPARED),
    ],
) -> Response:
    """Show jobs side by side, or one job with similar earlier ones."""
    jobs = [job for job in store.batch_get(Job.key(job_id=each) for each in dict.fromkeys(ids)) if job is not None]
    if not jobs:
        raise missing("job", ids[0])
    is_alone = len(ids) == 1
    jobs += _earlier(store, jobs[0]) if is_alone else []
    sections: list[tuple[str, list[Mapping[str, Any]]]] = [
        ("Parameters", [job.definition.params for job in jobs]),
        ("Result", [job.result if isinstance(job.result, Mapping) else {"": job.result} for job in jobs]),
        ("Metrics (last values)", [last_values(store, job.job_id) for job in jobs]),
        ("Configuration", [_configuration(job) for job in jobs]),
    ]
    return render(
        request,
        "comparison.html",
        title="Compare jobs",
        jobs=jobs,
        is_alone=is_alone,
        known_workers=known_workers(store, jobs),
        sections=[(title, rows) for title, values in sections if (rows := _rows(values))],
    )


def _earlier(store: Store, job: Job) -> list[Job]:
    """Return the last earlier jobs with the same task and name, or, if there are none, with the same task."""
    task = job.definition.task
    if task is None:
        return []
    found = list_jobs(store, JobFilter(task=task), cursor=cursor_after(job), limit=_MOST_LIKE).items
    return ([each for each in found if each.name == job.name] or found)[:_MOST_EARLIER]


def _configuration(job: Job) -> dict[str, Any]:
    given = job.job_config if isinstance(job.job_config, Mapping) else {}
    return {name: value for name, value in given.items() if name not in _OWN_ROWS}


def _rows(values: list[Mapping[str, Any]]) -> list[Row]:
    """Return a row for each name, those that differ first."""
    names = sorted({name for each in values for name, value in each.items() if name or value is not None})
    rows = [_row(name, values) for name in names]
    return sorted(rows, key=lambda row: not row.differs)


def _row(name: str, values: list[Mapping[str, Any]]) -> Row:
    first = values[0]
    differs = any((name in each) != (name in first) or each.get(name) != first.get(name) for each in values)
    return Row(name, [setting_text(each[name]) if name in each else NOTHING for each in values], differs)
