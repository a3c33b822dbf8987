"""Jobs, the newest first, by any filter: for the command line, the API and the pages."""

from __future__ import annotations

import base64
import binascii
import heapq
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from jobtable.errors import CursorError
from jobtable.jobs.read.queries import children_of
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.fields import Status
from jobtable.model.fields import format_timestamp
from jobtable.store import Query, Store

_MOST_EXAMINED = 2000
"""A page of rare matches ends after so many jobs, with a cursor to look further: no request reads the whole table."""
_LARGEST_CHUNK = 400
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class JobFilter:
    """Which jobs are wanted; what is None does not matter."""

    status: Status | None = None
    user: str | None = None
    queue: str | None = None
    tag: str | None = None
    job_type: str | None = None
    task: str | None = None
    text: str | None = None
    """Stands in the name, the task or a parameter (as `name=value`), or begins the id."""
    is_root: bool = False
    """Only jobs that stand under no other."""
    parent: str | None = None
    """Only the children of this job, not those under them. Whoever lists them gets NotFoundError where it is not."""

    def matches(self, job: Job) -> bool:
        """Whether the job is wanted."""
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
    said = (f"{name}={_said(value)}" for name, value in definition.params.items())
    return text in (definition.task or "").casefold() or any(text in each.casefold() for each in said)


def _said(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True)
class JobPage:
    """Some jobs, and the cursor to go on from; None behind the last one."""

    items: list[Job]
    cursor: str | None
    is_cut: bool
    """Whether the page is shorter than asked for because matches are rare: there may be more behind the cursor."""


def list_jobs(store: Store, wanted: JobFilter, *, cursor: str | None, limit: int) -> JobPage:
    """A page of jobs, the newest first. Examines at most some thousand jobs, whatever the filter."""
    place = _read_cursor(cursor) if cursor else None
    found: list[Job] = []
    last: Job | None = None
    for examined, job in enumerate(_behind(store, wanted, place, limit + 1)):
        if len(found) == limit or examined == _MOST_EXAMINED:
            return JobPage(found, cursor_behind(last) if last else None, is_cut=len(found) < limit)
        last = job
        if wanted.matches(job):
            found.append(job)
    return JobPage(found, None, is_cut=False)


def newest_first(store: Store, wanted: JobFilter, *, chunk: int) -> Iterator[Job]:
    """All jobs that are wanted, the newest first. `chunk` is how many are read at first: as many as are shown."""
    streams = (in_chunks(query, chunk) for query in _queries(store, wanted))
    return filter(wanted.matches, _once(heapq.merge(*streams, key=lambda job: job.created_at, reverse=True)))


def _behind(store: Store, wanted: JobFilter, place: tuple[datetime, str] | None, chunk: int) -> Iterator[Job]:
    """All jobs that the best index for the filter gives, behind a place, the newest first."""
    queries = _queries(store, wanted, None if place is None else (_BEGINNING, place[0]))
    streams = (_by_place(in_chunks(query, chunk)) for query in queries)
    jobs = _once(heapq.merge(*streams, key=_place, reverse=True))
    return (job for job in jobs if place is None or _place(job) < place)


def _queries(store: Store, wanted: JobFilter, created: tuple[datetime, datetime] | None = None) -> list[Query[Job]]:
    """What the best index for the filter is asked: the jobs of that span of time, the newest first."""
    if wanted.parent is not None:
        keys = [children_of(store.get(Job.key(job_id=wanted.parent)))]
    elif wanted.user is not None:
        keys = [Job.by_user(created_by=wanted.user)]
    else:
        keys = [Job.by_status(status=each) for each in ([wanted.status] if wanted.status else Status)]
    return [store.query(key, between=created, newest_first=True) for key in keys]


def _once(jobs: Iterable[Job]) -> Iterator[Job]:
    """Jobs by creation without those that come twice: one may change its status while it is read."""
    for _, same in groupby(jobs, key=lambda job: job.created_at):
        shown: set[str] = set()
        for job in same:
            if job.job_id not in shown:
                shown.add(job.job_id)
                yield job


def _by_place(jobs: Iterable[Job]) -> Iterator[Job]:
    """Jobs by creation, those of one instant in the order of their ids."""
    for _, same in groupby(jobs, key=lambda job: job.created_at):
        yield from sorted(same, key=_place, reverse=True)


def in_chunks(query: Query[Job], chunk: int) -> Iterator[Job]:
    """The results of a query, read in chunks that grow: who takes few has read few."""
    cursor = None
    while True:
        chunk = min(chunk, _LARGEST_CHUNK)
        page = query.page(cursor, size=chunk)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return
        chunk *= 2


def _place(job: Job) -> tuple[datetime, str]:
    return job.created_at, job.job_id


def cursor_behind(job: Job) -> str:
    """The cursor of a page that begins behind a job: with the one that was created before it."""
    place = json.dumps([format_timestamp(job.created_at), job.job_id])
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        place = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
        moment, job_id = place
        at = datetime.fromisoformat(moment)
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise CursorError("this is no cursor of jobs; start again without one") from error
    if not isinstance(job_id, str) or at.tzinfo is None:
        raise CursorError("this is no cursor of jobs; start again without one")
    return at, job_id
