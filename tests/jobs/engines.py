"""What tests of the job engine share: an engine, and what must hold of its records at any time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from jobtable.jobs.dependencies.edges import condition_of, count_edges, is_met_by
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import has_lease
from jobtable.jobs.stored.entities import (
    InstanceJob,
    Job,
    JobArtifact,
    JobCheckpoint,
    JobChild,
    JobDependency,
    JobGates,
    JobLog,
    JobLogText,
    JobMetric,
    JobResource,
    JobStatus,
    JobTimeline,
    QueueJob,
    main,
)
from jobtable.jobs.stored.field_types import CLAIMABLE, FINAL, Status, rank_of
from jobtable.jobs.stored.locations import JobObjects
from jobtable.jobs.submit.definition import EdgeCondition
from jobtable.objects import key_parts
from jobtable.objects.memory import MemoryObjectStore
from jobtable.objects.orphans import DEFAULT_GRACE, sweep
from jobtable.store import Store
from jobtable.store.backend import Backend, Request, Response
from jobtable.testing import FakeClock

LEASE_SECONDS = 30.0
_RECORDED = (JobArtifact, JobCheckpoint, JobLogText)
_UNDER_JOBS = (
    *_RECORDED,
    InstanceJob,
    JobChild,
    JobGates,
    JobLog,
    JobMetric,
    JobResource,
    JobStatus,
    JobTimeline,
    QueueJob,
)


def engine(store: Store, clock: FakeClock | None = None) -> Jobs:
    """An engine on a store whose tables are made, with a clock that stands still."""
    clock = clock or FakeClock()
    store.tables.create(main)
    return Jobs(store, MemoryObjectStore(clock), clock=clock)


class DisturbedBackend:
    """Lets something else happen just before one of the transactions that are asked for, or just behind it."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._writes = 0
        self._act: Callable[[], object] | None = None
        self._is_behind = False

    def disturb(self, act: Callable[[], object] | None, *, writes: int = 0, is_behind: bool = False) -> None:
        """Let this happen before the next transaction, or behind so many; `is_behind` that one, before what is read."""
        self._writes, self._act, self._is_behind = writes, act, is_behind

    def execute(self, operation: str, request: Request) -> Response:
        if operation != "TransactWriteItems":
            return self.backend.execute(operation, request)
        if not self._is_behind:
            self.happen()
            return self.backend.execute(operation, request)
        response = self.backend.execute(operation, request)
        self.happen()
        return response

    def happen(self) -> None:
        """Let happen what is to, if this is the write before which it should."""
        if self._act is None:
            return
        if self._writes == 0:
            act, self._act = self._act, None
            act()
        self._writes -= 1

    def close(self) -> None:
        self.backend.close()


def check_records(jobs: Jobs) -> None:
    """Every count equals a recount, every history fits its job, and whoever can be claimed can be found."""
    everyone = {job.job_id: job for job in jobs.queries.list_jobs()}
    for queue in jobs.queries.list_queues():
        places = list(jobs.queries.list_jobs_of_queue(queue.queue_name))
        held = [job for job in everyone.values() if job.queue_name == queue.queue_name and has_lease(job)]
        assert queue.job_count == len(places)
        assert queue.running_count == len(held)
        for place in places:
            _check_place(place, everyone[place.job_id])
    for job in everyone.values():
        if job.deleted_at is not None:
            continue  # what stands under it goes before it does
        _check_history(jobs, job)
        assert job.requested is None or has_lease(job)
        assert job.dependents == sum(not edge.met_at_once for edge in jobs.queries.list_dependents(job.job_id))
        if job.is_gated:
            _check_gates(jobs, job)


def _check_gates(jobs: Jobs, job: Job) -> None:
    gates = jobs.store.get(JobGates.key(job_id=job.job_id))
    edges = list(jobs.store.query(JobDependency.key(job_id=job.job_id)))
    assert gates == count_edges(job.job_id, edges, gates.broken_by)
    if job.is_final:
        return
    broken = [edge.dependency_job_id for edge in edges if _is_broken(edge)]
    assert gates.broken_by in broken or (_is_gone(jobs, gates.broken_by) if gates.broken_by else not broken)
    place = jobs.queries.find_entry(job)
    if gates.open_starts:
        assert job.status in CLAIMABLE
        assert place is not None
        assert place.rank is None


def _is_gone(jobs: Jobs, job_id: str) -> bool:
    return jobs.store.find(Job.key(job_id=job_id)) is None


def _is_broken(edge: JobDependency) -> bool:
    """Whether what an edge waited for has ended otherwise."""
    condition = condition_of(edge)
    if edge.outcome not in FINAL or condition is EdgeCondition.STARTED:
        return False
    return not is_met_by(condition, Job.model_construct(status=edge.outcome))


def _check_place(place: QueueJob, job: Job) -> None:
    assert place.priority == job.priority
    if place.rank is not None:
        assert job.status in CLAIMABLE
        assert place.rank == rank_of(job.priority)
    if job.status is Status.RUNNING:
        assert place.rank is None
        assert place.not_before is None


def _check_history(jobs: Jobs, job: Job) -> None:
    history = list(jobs.queries.list_statuses(job.job_id))
    assert history[-1].status is job.status
    assert history[-1].updated_at == job.changed_at
    for earlier, later in pairwise(history):
        assert earlier.updated_at < later.updated_at
        if earlier.status in FINAL:
            assert later.message is not None
            assert later.message.startswith("retried"), "a final status is left by a retry only"


def check_ended(jobs: Jobs, *, by_stale_indexes: bool = False) -> None:
    """All jobs have ended in order, no queue has any, every gate tells how, and nothing is left of who is gone.

    Where indexes were stale, edges may be left to who is gone, and a gate that was met at once may not have heard of a
    retry: neither holds anyone up.
    """
    check_records(jobs)
    everyone = {job.job_id: job for job in jobs.queries.list_jobs()}
    assert [job for job in everyone.values() if not job.is_final] == []
    assert [queue for queue in jobs.queries.list_queues() if queue.job_count] == []
    for edge in jobs.store.query(JobDependency.by_type()):
        if by_stale_indexes and (edge.met_at_once or edge.dependency_job_id not in everyone):
            assert edge.outcome is not None
        elif condition_of(edge) is not EdgeCondition.STARTED:
            _check_order(edge, everyone[edge.job_id], everyone[edge.dependency_job_id])
    for kind in _UNDER_JOBS:
        assert {item.model_dump()["job_id"] for item in jobs.store.query(kind.by_type())} <= everyone.keys()
    jobs.clock.sleep(2 * DEFAULT_GRACE.total_seconds())
    sweep(jobs.objects, JobObjects(jobs.store).is_referenced, clock=jobs.clock)
    kept = {found.key for found in jobs.objects.list("jobs")}
    for kind in _RECORDED:
        assert {item.model_dump()["s3_key"] for item in jobs.store.query(kind.by_type())} <= kept
    assert {key_parts(key)[1] for key in kept} <= everyone.keys()


def _check_order(edge: JobDependency, job: Job, dependency: Job) -> None:
    assert edge.outcome is dependency.status
    if job.status is Status.COMPLETED:
        assert is_met_by(condition_of(edge), dependency)
        assert job.ended_at is not None
        assert job.started_at is not None
        assert dependency.ended_at is not None
        assert (job.started_at if edge.gate == "start" else job.ended_at) > dependency.ended_at
