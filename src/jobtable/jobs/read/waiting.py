"""Why a job waits: for its start or, once its own work is done, for its completion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from jobtable.clock import Clock, wall_time
from jobtable.jobs.lifecycle.leases import has_lease
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.stored.entities import Instance, Job, JobDependency, JobGates, Queue, QueueJob
from jobtable.jobs.stored.field_types import CLAIMABLE, InstanceStatus, Status
from jobtable.jobs.submit.definition import EdgeCondition, Gate
from jobtable.store import Store

MOST_AHEAD = 100
"""How many of the jobs ahead of a job are counted."""
MOST_LISTED = 10
"""How many dependencies of a job are named; all are counted."""
_MOST_EDGES = 200
"""How many edges are searched for open ones."""
_MOST_WORKERS = 500


class WaitKind(StrEnum):
    """What a job waits for."""

    DEPENDENCIES = "dependencies"
    OPEN_GROUP = "open_group"
    """It is a group and may get more children."""
    TIME = "time"
    NO_QUEUE = "no_queue"
    """It is in no queue: another program wrote it."""
    QUEUE_PAUSED = "queue_paused"
    QUEUE_FULL = "queue_full"
    NO_WORKER = "no_worker"
    BEHIND = "behind"
    SUSPENDED = "suspended"
    """Its task suspended itself; an event wakes it."""
    NEXT = "next"
    """Nothing blocks it."""


@dataclass(frozen=True)
class WaitReason:
    """One thing that a job waits for, as a sentence."""

    kind: WaitKind
    text: str


@dataclass(frozen=True)
class AwaitedJob:
    """A dependency that is not met yet."""

    job_id: str
    name: str | None
    """None, like the status, if the job does not exist."""
    status: Status | None
    type: str
    condition: str
    gate: Gate


@dataclass(frozen=True)
class Waiting:
    """Everything that a job waits for now."""

    reasons: tuple[WaitReason, ...]
    dependencies: tuple[AwaitedJob, ...] = ()
    """The first of its open dependencies."""
    dependency_count: int = 0
    until: datetime | None = None
    ahead: int | None = None
    """How many jobs of its queue start before it, up to a hundred; None if it is not ready."""


class ServedQueues:
    """The queues that some workers serve; `is_whole` says whether these are all live workers."""

    def __init__(self, workers: Iterable[Instance], *, is_whole: bool) -> None:
        self._names = {queue for worker in workers for queue in worker.queues or ()}
        self._is_whole = is_whole

    def __contains__(self, queue_name: str) -> bool:
        """Return whether a live worker may serve a queue; if not all workers are known, any queue may be served."""
        return not self._is_whole or queue_name in self._names

    def why_stuck(self, queue: Queue) -> str | None:
        """Return what blocks the waiting jobs of a queue: `paused`, `no worker` or None."""
        if not queue.waiting_count:
            return None
        if queue.paused_at is not None:
            return "paused"
        return None if queue.queue_name in self else "no worker"


class Waits:
    """Finds out why jobs wait; reads at most some hundred items, however long the queue is."""

    def __init__(self, store: Store, clock: Clock, queries: JobQueries) -> None:
        self._store = store
        self._clock = clock
        self._queries = queries

    def why(self, job: Job) -> Waiting | None:
        """Return all that the job waits for, or None if it runs or has ended."""
        if job.status in CLAIMABLE:
            return self._why_not_started(job)
        if job.status is Status.RUNNING and not has_lease(job):
            return self._why_not_complete(job)
        return None

    # --- before its start -------------------------------------------------------------------------------------------

    def _why_not_started(self, job: Job) -> Waiting:
        gates = self._gates_of(job)
        count = 0 if gates is None else gates.open_starts
        entry = self._queries.find_entry(job)
        ahead = None if entry is None or entry.rank is None else self._count_ahead(entry)
        reasons = [WaitReason(WaitKind.DEPENDENCIES, f"Its start waits for {_jobs(count)}.")] if count else []
        reasons += self._reasons_of_entry(job, entry, ahead, has_open_gates=count > 0)
        if not reasons and job.queue_name is not None:
            reasons.append(WaitReason(WaitKind.NEXT, f"It is next in the queue {job.queue_name}."))
        return Waiting(
            reasons=tuple(reasons),
            dependencies=self._awaited(job, "start") if count else (),
            dependency_count=count,
            until=None if entry is None else entry.not_before,
            ahead=ahead,
        )

    def _reasons_of_entry(
        self, job: Job, entry: QueueJob | None, ahead: int | None, *, has_open_gates: bool
    ) -> list[WaitReason]:
        queue = None if entry is None else self._store.find(Queue.key(queue_name=entry.queue_name))
        if entry is None or queue is None:
            return [WaitReason(WaitKind.NO_QUEUE, "It is in no queue, so no worker finds it.")]
        name, reasons = queue.queue_name, []
        if entry.not_before is not None:
            reasons.append(self._reason_of_time(job, entry.not_before))
        elif entry.rank is None and not has_open_gates:
            reasons.append(WaitReason(WaitKind.SUSPENDED, "It is suspended until an event wakes it."))
        if queue.paused_at is not None:
            reasons.append(WaitReason(WaitKind.QUEUE_PAUSED, f"The queue {name} is paused."))
        if ahead is not None and queue.running_count >= queue.max_concurrent_jobs:
            full = f"The queue {name} runs {_jobs(queue.running_count)}, its limit."
            reasons.append(WaitReason(WaitKind.QUEUE_FULL, full))
        if not self._is_served(name):
            reasons.append(WaitReason(WaitKind.NO_WORKER, f"No live worker serves the queue {name}."))
        if ahead:
            least = "at least " if ahead == MOST_AHEAD else ""
            reasons.append(WaitReason(WaitKind.BEHIND, f"It is behind {least}{_jobs(ahead)} of the queue {name}."))
        return reasons

    def _reason_of_time(self, job: Job, due: datetime) -> WaitReason:
        when = due.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        if due <= wall_time(self._clock):
            return WaitReason(WaitKind.TIME, f"It was due at {when}; the next worker that looks makes it ready.")
        if job.attempts:
            number = f"{job.attempts + 1} of {job.max_attempts}"
            return WaitReason(WaitKind.TIME, f"Its next attempt, {number}, starts at {when} or later.")
        return WaitReason(WaitKind.TIME, f"It starts at {when} or later.")

    def _count_ahead(self, entry: QueueJob) -> int:
        first = [each.job_id for each in self._queries.list_ready(entry.queue_name, limit=MOST_AHEAD)]
        return first.index(entry.job_id) if entry.job_id in first else len(first)

    def _is_served(self, queue: str) -> bool:
        """Return whether a live worker may serve a queue; not all are read if there are many."""
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
            reasons.append(WaitReason(WaitKind.OPEN_GROUP, "It is an open group and runs until it is sealed."))
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
