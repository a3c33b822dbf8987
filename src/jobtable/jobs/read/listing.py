"""Jobs by any filter, the newest first: for the command line, the API and the pages."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from jobtable.jobs.read.job_queries import children_of
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.model.fields import format_timestamp
from jobtable.model.wire import read_timestamp
from jobtable.store import Query, Store
from jobtable.store.cursors import made_up, read_cursor, write_cursor

_MOST_EXAMINED = 2000
"""A page of rare matches ends after so many jobs, so that no request reads the whole table."""
_LARGEST_CHUNK = 400
_BOUND_TO = b"jobs by creation"
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class JobFilter:
    """Which jobs to list; None matches any."""

    status: Status | None = None
    user: str | None = None
    queue: str | None = None
    tag: str | None = None
    job_type: str | None = None
    task: str | None = None
    text: str | None = None
    """Part of the name, the task or a parameter (as `name=value`), or the start of the id."""
    is_root: bool = False
    """Only jobs without a parent."""
    parent: str | None = None
    """Only the children of this job, without their descendants; NotFoundError if it does not exist."""

    def matches(self, job: Job) -> bool:
        return (
            (self.status is None or job.status is self.status)
            and (self.user is None or job.created_by == self.user)
            and (self.queue is None or job.queue_name == self.queue)
            and (self.tag is None or self.tag in job.tags)
            and (self.job_type is None or job.job_type == self.job_type)
            and (self.task is None or job.definition.task == self.task)
            and (self.text is None or _has_text(job, self.text.casefold()))
            and not (self.is_root and job.parent_job_id is not None)
            and (self.parent is None or job.parent_job_id == self.parent)
        )


def _has_text(job: Job, text: str) -> bool:
    if text in job.name.casefold() or job.job_id.casefold().startswith(text):
        return True
    definition = job.definition
    values = (f"{name}={_text_of(value)}" for name, value in definition.params.items())
    return text in (definition.task or "").casefold() or any(text in each.casefold() for each in values)


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True)
class JobPage:
    """Some jobs, and the cursor of the next page or None."""

    items: list[Job]
    cursor: str | None
    is_cut: bool
    """Whether the page is short because matches are rare: there may be more after the cursor."""


def list_jobs(store: Store, wanted: JobFilter, *, cursor: str | None, limit: int) -> JobPage:
    """Return a page of jobs, the newest first; examines at most some thousand jobs."""
    position = _read_cursor(cursor) if cursor else None
    found: list[Job] = []
    last: Job | None = None
    for examined, job in enumerate(_after(store, wanted, position, limit + 1)):
        if len(found) == limit or examined == _MOST_EXAMINED:
            return JobPage(found, cursor_after(last) if last else None, is_cut=len(found) < limit)
        last = job
        if wanted.matches(job):
            found.append(job)
    return JobPage(found, None, is_cut=False)


def newest_first(store: Store, wanted: JobFilter, *, chunk: int) -> Iterator[Job]:
    """Yield all matching jobs, the newest first; `chunk` is the size of the first read."""
    streams = (in_chunks(query, chunk) for query in _queries(store, wanted))
    return filter(wanted.matches, _once(heapq.merge(*streams, key=lambda job: job.created_at, reverse=True)))


def _after(store: Store, wanted: JobFilter, position: tuple[datetime, str] | None, chunk: int) -> Iterator[Job]:
    """Yield the jobs of the best index for the filter, after a position, the newest first."""
    queries = _queries(store, wanted, None if position is None else (_BEGINNING, position[0]))
    streams = (_by_position(in_chunks(query, chunk)) for query in queries)
    jobs = _once(heapq.merge(*streams, key=_position, reverse=True))
    return (job for job in jobs if position is None or _position(job) < position)


def _queries(store: Store, wanted: JobFilter, created: tuple[datetime, datetime] | None = None) -> list[Query[Job]]:
    """Return the queries of the best index for the filter, the newest first."""
    if wanted.parent is not None:
        keys = [children_of(store.get(Job.key(job_id=wanted.parent)))]
    elif wanted.user is not None:
        keys = [Job.by_user(created_by=wanted.user)]
    else:
        keys = [Job.by_status(status=each) for each in ([wanted.status] if wanted.status else Status)]
    return [store.query(key, between=created, newest_first=True) for key in keys]


def _once(jobs: Iterable[Job]) -> Iterator[Job]:
    """Yield jobs by creation, each once: one may change its status while it is read."""
    for _, same in groupby(jobs, key=lambda job: job.created_at):
        shown: set[str] = set()
        for job in same:
            if job.job_id not in shown:
                shown.add(job.job_id)
                yield job


def _by_position(jobs: Iterable[Job]) -> Iterator[Job]:
    """Yield jobs by creation, those of one instant by id."""
    for _, same in groupby(jobs, key=lambda job: job.created_at):
        yield from sorted(same, key=_position, reverse=True)


def in_chunks(query: Query[Job], chunk: int) -> Iterator[Job]:
    """Yield the results of a query in growing chunks, so that a caller that takes few reads few."""
    cursor = None
    while True:
        chunk = min(chunk, _LARGEST_CHUNK)
        page = query.page(cursor, size=chunk)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return
        chunk *= 2


def _position(job: Job) -> tuple[datetime, str]:
    return job.created_at, job.job_id


def cursor_after(job: Job) -> str:
    return write_cursor({"at": format_timestamp(job.created_at), "job": job.job_id}, _BOUND_TO)


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    position = read_cursor(cursor, _BOUND_TO)
    try:
        return read_timestamp(position["at"]), str(position["job"])
    except (KeyError, TypeError, ValueError) as error:
        raise made_up() from error
