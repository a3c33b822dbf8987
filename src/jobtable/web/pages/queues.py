"""The pages of queues and workers."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Request, Response

from jobtable.clock import wall_time
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.read.waiting import ServedQueues
from jobtable.jobs.stored.entities import Instance, Job, JobStatus, Queue
from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.store import Page, Store
from jobtable.web.guard import READ, PageRoute, allow
from jobtable.web.injection import TheQueries, TheStore, path_id
from jobtable.web.pages.frame import render

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_MOST_WORKERS = 100
_MOST_HELD = 100
_MOST_RUNNING = 300
_MOST_GONE = 20
_MOST_EXAMINED = 2000
"""Ended workers per status; if there are more, some of the newest may not be shown."""
_PACE_SPAN = timedelta(hours=1)
_SHORTEST_SPAN = timedelta(seconds=1)
_MOST_ENDS = 100
"""Maximum number of ends to read for each status; if jobs end faster, the span is shorter."""


@router.get("/queues")
@allow(READ)
def show_queues(request: Request, queries: TheQueries, cursor: str = "") -> Response:
    page = queries.list_queues().page(cursor or None, size=50)
    workers = _live_workers(queries)
    return render(
        request,
        "queues.html",
        title="Queues & workers",
        page=page,
        is_first=not cursor,
        workers=workers.items,
        served=_served(workers),
        gone=_last_gone(queries),
        running=_read_running(queries),
    )


class Running:
    """The running jobs by worker, as far as they were read."""

    def __init__(self, page: Page[Job]) -> None:
        self.is_whole = page.cursor is None
        self._by_worker: dict[str | None, list[Job]] = defaultdict(list)
        for job in page.items:
            self._by_worker[job.instance_id].append(job)

    def on(self, worker: Instance) -> list[Job]:
        """Return the jobs that a worker runs, newest first."""
        return self._by_worker.get(worker.instance_id, [])


def _read_running(queries: JobQueries) -> Running:
    return Running(queries.list_jobs_by_status(Status.RUNNING, newest_first=True).page(size=_MOST_RUNNING))


def _live_workers(queries: JobQueries) -> Page[Instance]:
    return queries.list_instances_by_status(InstanceStatus.RUNNING).page(size=_MOST_WORKERS)


def _served(workers: Page[Instance]) -> ServedQueues:
    return ServedQueues(workers.items, is_whole=workers.cursor is None)


def _last_gone(queries: JobQueries) -> list[Instance]:
    """Return the newest ended workers. The store orders them by id, so many are read."""
    gone = (
        worker
        for status in (InstanceStatus.TERMINATED, InstanceStatus.STOPPED)
        for worker in queries.list_instances_by_status(status).take(_MOST_EXAMINED)
    )
    return heapq.nlargest(_MOST_GONE, gone, key=lambda worker: worker.launched_at)


@router.get("/queues/{queue_name}")
@allow(READ)
def show_queue(
    request: Request, queue_name: Annotated[str, path_id("gpu")], queries: TheQueries, store: TheStore, cursor: str = ""
) -> Response:
    queue = queries.get_queue(queue_name)
    page = queries.list_ready(queue_name).page(cursor or None, size=50)
    jobs = store.batch_get(Job.key(job_id=place.job_id) for place in page.items)
    places = [(place, job) for place, job in zip(page.items, jobs, strict=True) if job is not None]
    return render(
        request,
        "queue.html",
        title=f"Queue {queue_name}",
        queue=queue,
        served=_served(_live_workers(queries)),
        pace=read_pace(store, queue) if queue.waiting_count else None,
        places=places,
        cursor=page.cursor,
        is_first=not cursor,
    )


@router.get("/workers/{instance_id}")
@allow(READ)
def show_worker(
    request: Request,
    instance_id: Annotated[str, path_id("worker-1")],
    queries: TheQueries,
    store: TheStore,
    cursor: str = "",
) -> Response:
    """Show one worker and its jobs. The store orders them by id; within a page, the newest come first."""
    worker = store.get(Instance.key(instance_id=instance_id))
    page = queries.list_jobs_of_instance(instance_id).page(cursor or None, size=_MOST_HELD)
    places = sorted(page.items, key=lambda place: place.assigned_at, reverse=True)
    held = list(zip(places, store.batch_get(Job.key(job_id=each.job_id) for each in places), strict=True))
    return render(
        request,
        "worker.html",
        title=f"Worker {instance_id}",
        worker=worker,
        running=_read_running(queries),
        held=held,
        cursor=page.cursor,
        is_first=not cursor,
    )


def known_workers(store: Store, jobs: Iterable[Job]) -> frozenset[str]:
    """Return the ids of the jobs' workers that have a page: a worker that claims by the API need not register."""
    named = dict.fromkeys(job.instance_id for job in jobs if job.instance_id)
    found = store.batch_get([Instance.key(instance_id=each) for each in named], consistent=False)
    return frozenset(worker.instance_id for worker in found if worker is not None)


@dataclass(frozen=True)
class Pace:
    """The number of jobs of a queue that ended within the last seconds."""

    ended: int
    seconds: float

    def seconds_for(self, count: int) -> float:
        """Return how long a number of jobs takes at this pace."""
        return count * self.seconds / self.ended


def read_pace(store: Store, queue: Queue) -> Pace | None:
    """Return the pace of a queue in the last hour, or less if many jobs ended, or None if none of its jobs ended."""
    now = wall_time(store.clock)
    ends, since = [], now - _PACE_SPAN
    for status in (Status.COMPLETED, Status.FAILED):
        newest = store.query(JobStatus.by_status(status=status), after=since, newest_first=True, limit=_MOST_ENDS)
        changes = list(newest)
        ends += changes
        if len(changes) == _MOST_ENDS:
            since = changes[-1].updated_at
    ids = {end.job_id for end in ends if end.updated_at >= since}
    jobs = store.batch_get((Job.key(job_id=each) for each in ids), consistent=False)
    ended = sum(job is not None and job.queue_name == queue.queue_name for job in jobs)
    return Pace(ended, max(now - since, _SHORTEST_SPAN).total_seconds()) if ended else None
