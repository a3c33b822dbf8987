"""What a worker does on behalf of all, and when one that runs until its queues are empty may end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.jobs.engines import LEASE_SECONDS, DisturbedBackend, engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConflictError, Throttled
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.stored.entities import JobGates
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import DependsOn, NewJob, ParentWaits
from jobtable.jobs.worker.worker import Upkeep
from jobtable.store import Backoff, Store
from jobtable.testing import FakeClock


def refuse() -> None:
    raise Throttled("too many requests")


def test_a_group_that_could_not_be_told_of_its_last_child_is_concluded_first() -> None:
    clock = FakeClock()
    backend = DisturbedBackend(EmbeddedBackend(None, durability="normal"))
    jobs = engine(Store(backend, clock=clock, backoff=Backoff(attempts=1, clock=clock)), clock)
    group = jobs.open_group(NewJob(name="group"))
    jobs.submit(NewJob(name="child", task="x:y", parent_job_id=group.job_id, parent_waits=ParentWaits()))
    jobs.seal(group.job_id)
    upkeep = Upkeep(jobs, ["default"], LEASE_SECONDS)
    upkeep.run()
    (lease,) = jobs.claim("default", limit=1, instance_id="worker-1", lease_seconds=LEASE_SECONDS)
    backend.disturb(refuse, writes=1)
    with pytest.raises(Throttled):
        jobs.finish(lease, Outcome.completed())
    assert jobs.queries.get_job(group.job_id).status is Status.RUNNING
    for _ in range(10):
        if upkeep.is_all_done():
            break
        clock.advance(0.5)
        upkeep.run()
    assert upkeep.is_all_done()
    assert jobs.queries.get_job(group.job_id).status is Status.COMPLETED
    assert clock.monotonic() < LEASE_SECONDS / 3


def test_a_queue_in_which_something_goes_wrong_all_the_time_holds_up_no_other_and_no_recovery() -> None:
    clock = FakeClock()
    with Store(EmbeddedBackend(None, durability="normal"), clock=clock) as store:
        jobs = engine(store, clock)
        soon = clock.now() + timedelta(seconds=1)
        jobs.submit(NewJob(name="lost", task="x:y", queue="lost", job_id="lost"))
        jobs.claim("lost", limit=1, instance_id="dead", lease_seconds=LEASE_SECONDS)
        first = jobs.submit(NewJob(name="first", task="x:y", queue="a"))
        after_first = (DependsOn(first.job_id),)
        jobs.submit(NewJob(name="second", task="x:y", queue="a", depends_on=after_first, job_id="second"))
        jobs.submit(NewJob(name="soon", task="x:y", queue="b", not_before=soon))
        store.delete(JobGates.key(job_id="second"))  # as another program has left it: it can never be told
        with pytest.raises(ConflictError):
            jobs.cancel(first.job_id)
        upkeep = Upkeep(jobs, ["a", "b"], LEASE_SECONDS)
        for _ in range(8):
            clock.advance(LEASE_SECONDS / 2)
            with pytest.raises(ConflictError, match="could not notify job second that"):
                upkeep.run()
        assert [place.queue_name for place in jobs.queries.list_ready("b")] == ["b"]
        assert jobs.queries.get_job("lost").status is Status.INTERRUPTED
