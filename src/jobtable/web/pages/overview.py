"""The overview: running, waiting and ended jobs, throughput, and tasks for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from fastapi import APIRouter, Request, Response

from jobtable.app import Services
from jobtable.clock import wall_time
from jobtable.inbox.waiting_tasks import Waiting, list_waiting
from jobtable.jobs.read.progress import GroupProgress, read_group_progress
from jobtable.jobs.read.waiting import ServedQueues
from jobtable.jobs.stored.entities import Instance, Job, JobStatus, Queue
from jobtable.jobs.stored.field_types import FINAL, Health, InstanceStatus, Status
from jobtable.store import Store
from jobtable.web.guard import READ, PageRoute, allow
from jobtable.web.injection import AllServices
from jobtable.web.pages.frame import render, render_fragment
from jobtable.web.pages.jobs import OwnerLink, execution_link
from jobtable.web.pages.queues import known_workers

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_SHOWN = 8
_MOST_COUNTED = 500
"""Maximum number of ends to count; if jobs end faster, the span is shorter."""
_SPAN = timedelta(hours=1)
_BARS = 30


@dataclass(frozen=True)
class JobThroughput:
    """The number of jobs that ended in each part of a span of time that ends now."""

    span: timedelta
    completed: list[int]
    failed: list[int]

    @property
    def most(self) -> int:
        return max(map(sum, zip(self.completed, self.failed, strict=True)))

    @property
    def bars(self) -> list[tuple[int, int]]:
        return list(zip(self.completed, self.failed, strict=True))

    @property
    def per_minute(self) -> float:
        return sum(self.completed) / (self.span.total_seconds() / 60)


@dataclass(frozen=True)
class Overview:
    """What the page shows."""

    queues: list[Queue]
    """All queues, fullest first."""
    workers: list[Instance]
    running: list[Job]
    groups: dict[str, GroupProgress]
    """The progress of running groups."""
    known_workers: frozenset[str]
    """The workers of running jobs that are registered."""
    failed: list[Job]
    """The last jobs that failed and were not retried."""
    ended: list[Job]
    """The last jobs that ended, with any status."""
    throughput: JobThroughput
    for_people: list[Waiting]
    """What waits for a person, the oldest first."""
    has_more_for_people: bool

    @property
    def running_count(self) -> int:
        return sum(queue.running_count for queue in self.queues)

    @property
    def waiting_count(self) -> int:
        """Jobs in queues that no worker runs."""
        return sum(queue.waiting_count for queue in self.queues)

    @property
    def served(self) -> ServedQueues:
        return ServedQueues(self.workers, is_whole=True)

    @property
    def stuck(self) -> list[tuple[Queue, str]]:
        """The queues whose waiting jobs cannot start, each with the reason."""
        served = self.served
        return [(queue, why) for queue in self.queues if (why := served.why_stuck(queue)) is not None]

    @property
    def unhealthy(self) -> list[Instance]:
        return [worker for worker in self.workers if worker.health_status is Health.UNHEALTHY]

    def execution_of(self, job: Job) -> OwnerLink | None:
        """The page of the execution that a job moves."""
        return execution_link(job)

    @property
    def slots(self) -> int:
        return sum(worker.slots for worker in self.workers)


def read_overview(services: Services) -> Overview:
    """Read the overview. All queues and workers are read, but the cost does not grow with the number of jobs."""
    queries, store = services.jobs.queries, services.store
    now = wall_time(store.clock)
    running = queries.list_jobs_by_status(Status.RUNNING, newest_first=True).page(size=_SHOWN).items
    for_people = list_waiting(services.jobs, _SHOWN + 1)
    return Overview(
        queues=sorted(queries.list_queues(), key=lambda queue: queue.job_count, reverse=True),
        workers=list(queries.list_instances_by_status(InstanceStatus.RUNNING)),
        running=running,
        groups=read_group_progress(store, running),
        known_workers=known_workers(store, running),
        failed=_failed_last(services),
        ended=_ended_last(store, FINAL),
        throughput=_throughput(services, now),
        for_people=for_people[:_SHOWN],
        has_more_for_people=len(for_people) > _SHOWN,
    )


def _failed_last(services: Services) -> list[Job]:
    """Return the newest failed jobs, and the last failures of older jobs."""
    newest = services.jobs.queries.list_jobs_by_status(Status.FAILED, newest_first=True).page(size=_SHOWN).items
    found = {job.job_id: job for job in [*newest, *_ended_last(services.store, [Status.FAILED])]}
    return sorted(found.values(), key=lambda job: job.ended_at or job.created_at, reverse=True)[:_SHOWN]


def _ended_last(store: Store, statuses: Iterable[Status]) -> list[Job]:
    """Return the jobs that reached one of these statuses last, without those restarted since."""
    changes = [
        change
        for status in statuses
        for change in store.query(JobStatus.by_status(status=status), newest_first=True, limit=_SHOWN)
    ]
    changes.sort(key=lambda change: change.updated_at, reverse=True)
    ids = dict.fromkeys(change.job_id for change in changes[:_SHOWN])
    jobs = store.batch_get(Job.key(job_id=job_id) for job_id in ids)
    return [job for job in jobs if job is not None and job.is_final]


def _throughput(services: Services, now: datetime) -> JobThroughput:
    ends = {}
    for status in (Status.COMPLETED, Status.FAILED):
        changes = JobStatus.by_status(status=status)
        since = services.store.query(changes, after=now - _SPAN, newest_first=True, limit=_MOST_COUNTED)
        ends[status] = [change.updated_at for change in since]
    cut = [times[-1] for times in ends.values() if len(times) == _MOST_COUNTED]
    span = min(_SPAN, max(now - max(cut), timedelta(seconds=_BARS))) if cut else _SPAN
    counted = {status: _in_parts(times, now, span) for status, times in ends.items()}
    return JobThroughput(span, counted[Status.COMPLETED], counted[Status.FAILED])


def _in_parts(times: list[datetime], now: datetime, span: timedelta) -> list[int]:
    part = span / _BARS
    counts = Counter(_BARS - 1 - int((now - time) / part) for time in times)
    return [counts[number] for number in range(_BARS)]


def overview_event(services: Services) -> dict[str, str]:
    """Return the changing part of the page, made once for all viewers."""
    return {
        "html": render_fragment("overview_body.html", now=wall_time(services.store.clock), seen=read_overview(services))
    }


@router.get("/")
@allow(READ)
def show_overview(request: Request, services: AllServices) -> Response:
    return render(request, "overview.html", title="Overview", seen=read_overview(services))
