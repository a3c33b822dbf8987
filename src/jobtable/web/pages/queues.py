"""Queues and workers."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Request, Response

from jobtable.jobs.read.queries import JobQueries
from jobtable.jobs.read.serving import ServedQueues
from jobtable.jobs.stored.entities import Instance, Job
from jobtable.jobs.stored.fields import InstanceStatus, Status
from jobtable.store import Page, Store
from jobtable.web.dependencies import TheQueries, TheStore, path_id
from jobtable.web.guard import READ, PageRoute, allow
from jobtable.web.pages.frame import render
from jobtable.web.queue_pace import read_pace

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_MOST_WORKERS = 100
_MOST_HELD = 100
_MOST_RUNNING = 300
_MOST_GONE = 20
_MOST_EXAMINED = 2000
"""Of workers that have ended in one way; with more, some of the newest may not be shown."""


@router.get("/queues")
@allow(READ)
def show_queues(request: Request, queries: TheQueries, cursor: str = "") -> Response:
    """All queues, and the workers that are there."""
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
    """What workers run now, as far as it was looked at."""

    def __init__(self, page: Page[Job]) -> None:
        self.is_whole = page.cursor is None
        self._by_worker: dict[str | None, list[Job]] = defaultdict(list)
        for job in page.items:
            self._by_worker[job.instance_id].append(job)

    def on(self, worker: Instance) -> list[Job]:
        """The jobs that a worker runs, the newest first."""
        return self._by_worker.get(worker.instance_id, [])


def _read_running(queries: JobQueries) -> Running:
    return Running(queries.list_jobs_by_status(Status.RUNNING, newest_first=True).page(size=_MOST_RUNNING))


def _live_workers(queries: JobQueries) -> Page[Instance]:
    return queries.list_instances_by_status(InstanceStatus.RUNNING).page(size=_MOST_WORKERS)


def _served(workers: Page[Instance]) -> ServedQueues:
    return ServedQueues(workers.items, is_whole=workers.cursor is None)


def _last_gone(queries: JobQueries) -> list[Instance]:
    """The workers that have ended, the newest first. The store has them by their ids, so many are looked at."""
    gone = (
        worker
        for status in (InstanceStatus.TERMINATED, InstanceStatus.STOPPED)
        for worker in queries.list_instances_by_status(status).take(_MOST_EXAMINED)
    )
    return heapq.nlargest(_MOST_GONE, gone, key=lambda worker: worker.launched_at)


@router.get("/queues/{queue_name}")
@allow(READ)
def show_queue(
    request: Request,
    queue_name: Annotated[str, path_id("gpu")],
    queries: TheQueries,
    store: TheStore,
    cursor: str = "",
) -> Response:
    """One queue: its settings, and what is next."""
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
    """One worker: what it runs and ran. The store has its jobs by their ids: of each page the newest come first."""
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
