"""What tests of the job engine share: an engine, and what must hold of its records at any time."""

from __future__ import annotations

from itertools import pairwise

from jobtable.jobs.dependencies import Dependencies
from jobtable.jobs.edges import count_dependents
from jobtable.jobs.engine import Jobs
from jobtable.jobs.entities import Job, JobGates, QueueJob, main
from jobtable.jobs.leases import has_lease
from jobtable.jobs.records import CLAIMABLE, FINAL, Status
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.testing import FakeClock

LEASE_SECONDS = 30.0


def engine(store: Store, clock: FakeClock | None = None) -> Jobs:
    """An engine on a store whose tables are made, with a clock that stands still."""
    clock = clock or FakeClock()
    store.tables.create(main)
    return Jobs(store, MemoryObjectStore(clock), clock=clock)


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
        _check_history(jobs, job)
        assert job.dependents == count_dependents(jobs.queries.list_dependents(job.job_id))
        if job.is_gated:
            counted = Dependencies(jobs.store, jobs.clock, jobs.queries).count_gates(job.job_id)
            stored = jobs.store.get(JobGates.key(job_id=job.job_id))
            assert stored.model_copy(update={"broken_by": counted.broken_by}) == counted


def _check_place(place: QueueJob, job: Job) -> None:
    if place.rank is not None:
        assert job.status in CLAIMABLE
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
