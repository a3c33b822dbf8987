"""Why a job waits: what is between it and its start, or, once it has done its own work, its completion."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from jobtable.clock import Clock, wall_time
from jobtable.jobs.lifecycle.leases import has_lease
from jobtable.jobs.read.queries import JobQueries
from jobtable.jobs.read.serving import ServedQueues
from jobtable.jobs.stored.entities import Job, JobDependency, JobGates, Queue, QueueJob
from jobtable.jobs.stored.fields import CLAIMABLE, InstanceStatus, Status
from jobtable.jobs.submit.definition import EdgeCondition, Gate
from jobtable.store import Store

MOST_AHEAD = 100
"""How many of the jobs ahead of a job are counted."""
MOST_LISTED = 10
"""How many of the jobs that a job waits for are named; all are counted."""
_MOST_EDGES = 200
"""Among how many edges the open ones are looked for."""
_MOST_WORKERS = 500


class WaitKind(StrEnum):
    """What kind of thing a job waits for."""

    DEPENDENCIES = "dependencies"
    OPEN_GROUP = "open_group"
    """It is a group, and may get more children."""
    TIME = "time"
    NO_QUEUE = "no_queue"
    """It stands in no queue: another program wrote it."""
    QUEUE_PAUSED = "queue_paused"
    QUEUE_FULL = "queue_full"
    NO_WORKER = "no_worker"
    BEHIND = "behind"
    NEXT = "next"
    """Nothing is in its way."""


@dataclass(frozen=True)
class WaitReason:
    """One thing that a job waits for, as a sentence."""

    kind: WaitKind
    text: str


@dataclass(frozen=True)
class AwaitedJob:
    """A job that another one still waits for."""

    job_id: str
    name: str | None
    """None, like the status, if the job is gone."""
    status: Status | None
    type: str
    condition: str
    gate: Gate


@dataclass(frozen=True)
class Waiting:
    """Everything that a job waits for now, and what is known of it."""

    reasons: tuple[WaitReason, ...]
    dependencies: tuple[AwaitedJob, ...] = ()
    """The first of the jobs that it waits for."""
    dependency_count: int = 0
    until: datetime | None = None
    ahead: int | None = None
    """How many jobs of its queue start before it, counted up to a hundred; None if it is not ready to start."""


class Waits:
    """Tells why jobs wait. It reads some hundred items at most, however long the queue is."""

    def __init__(self, store: Store, clock: Clock, queries: JobQueries) -> None:
        self._store = store
        self._clock = clock
        self._queries = queries

    def why(self, job: Job) -> Waiting | None:
        """All that the job waits for, as far as it can be told; None if it does not wait: it works, or has ended."""
        if job.status in CLAIMABLE:
            return self._why_not_started(job)
        if job.status is Status.RUNNING and not has_lease(job):
            return self._why_not_complete(job)
        return None

    # --- before its start -------------------------------------------------------------------------------------------

    def _why_not_started(self, job: Job) -> Waiting:
        gates = self._gates_of(job)
        count = 0 if gates is None else gates.open_starts
        place = self._queries.find_entry(job)
        ahead = None if place is None or place.rank is None else self._count_ahead(place)
        reasons = [WaitReason(WaitKind.DEPENDENCIES, f"Its start waits for {_jobs(count)}.")] if count else []
        reasons += self._reasons_of_place(job, place, ahead)
        if not reasons and job.queue_name is not None:
            reasons.append(WaitReason(WaitKind.NEXT, f"It is next in the queue {job.queue_name}."))
        return Waiting(
            reasons=tuple(reasons),
            dependencies=self._awaited(job, "start") if count else (),
            dependency_count=count,
            until=None if place is None else place.not_before,
            ahead=ahead,
        )

    def _reasons_of_place(self, job: Job, place: QueueJob | None, ahead: int | None) -> list[WaitReason]:
        queue = None if place is None else self._store.find(Queue.key(queue_name=place.queue_name))
        if place is None or queue is None:
            return [WaitReason(WaitKind.NO_QUEUE, "It stands in no queue, so no worker finds it.")]
        name, reasons = queue.queue_name, []
        if place.not_before is not None:
            reasons.append(self._reason_of_time(job, place.not_before))
        if queue.paused_at is not None:
            reasons.append(WaitReason(WaitKind.QUEUE_PAUSED, f"The queue {name} is paused: nothing starts in it."))
        if ahead is not None and queue.running_count >= queue.max_concurrent_jobs:
            full = f"The queue {name} runs {_jobs(queue.running_count)}, which is as many as it may."
            reasons.append(WaitReason(WaitKind.QUEUE_FULL, full))
        if not self._is_served(name):
            reasons.append(WaitReason(WaitKind.NO_WORKER, f"No live worker serves the queue {name}."))
        if ahead:
            least = "at least " if ahead == MOST_AHEAD else ""
            reasons.append(WaitReason(WaitKind.BEHIND, f"It is behind {least}{_jobs(ahead)} of the queue {name}."))
        return reasons

    def _reason_of_time(self, job: Job, due: datetime) -> WaitReason:
        told = due.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        if due <= wall_time(self._clock):
            return WaitReason(WaitKind.TIME, f"Its time has come at {told}: a worker that looks makes it ready.")
        if job.attempts:
            number = f"{job.attempts + 1} of {job.max_attempts}"
            return WaitReason(WaitKind.TIME, f"Its next attempt, {number}, begins at {told} or later.")
        return WaitReason(WaitKind.TIME, f"It begins at {told} or later.")

    def _count_ahead(self, place: QueueJob) -> int:
        first = [each.job_id for each in self._queries.list_ready(place.queue_name, limit=MOST_AHEAD)]
        return first.index(place.job_id) if place.job_id in first else len(first)

    def _is_served(self, queue: str) -> bool:
        """Whether a live worker serves a queue. Where there are more than are looked at, some other may."""
        workers = self._queries.list_instances_by_status(InstanceStatus.RUNNING).page(size=_MOST_WORKERS)
        return queue in ServedQueues(workers.items, is_whole=workers.cursor is None)

    # --- before its completion --------------------------------------------------------------------------------------

    def _why_not_complete(self, job: Job) -> Waiting | None:
        gates = self._gates_of(job)
        if gates is None:
            return None
        count, reasons = gates.open_completions, []
        if count:
            reasons.append(WaitReason(WaitKind.DEPENDENCIES, f"Its completion waits for {_jobs(count)}."))
        if job.definition.is_group and not job.is_awaiting:
            reasons.append(WaitReason(WaitKind.OPEN_GROUP, "It is an open group, and goes on until it is sealed."))
        if not reasons:
            return None
        return Waiting(tuple(reasons), self._awaited(job, "completion") if count else (), count)

    # --- other jobs -------------------------------------------------------------------------------------------------

    def _gates_of(self, job: Job) -> JobGates | None:
        return self._store.find(JobGates.key(job_id=job.job_id)) if job.is_gated else None

    def _awaited(self, job: Job, gate: Gate) -> tuple[AwaitedJob, ...]:
        edges = self._store.query(JobDependency.key(job_id=job.job_id)).page(size=_MOST_EDGES).items
        open_ones = [edge for edge in edges if edge.gate == gate and edge.outcome is None][:MOST_LISTED]
        found = self._store.batch_get([Job.key(job_id=edge.dependency_job_id) for edge in open_ones])
        return tuple(
            AwaitedJob(
                job_id=edge.dependency_job_id,
                name=None if other is None else other.name,
                status=None if other is None else other.status,
                type=edge.type,
                condition=edge.condition or EdgeCondition.COMPLETED,
                gate=edge.gate,
            )
            for edge, other in zip(open_ones, found, strict=True)
        )


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"
