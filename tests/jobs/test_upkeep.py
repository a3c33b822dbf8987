"""When a worker that runs until its queues are empty may end."""

from __future__ import annotations

import pytest
from tests.jobs.engines import LEASE_SECONDS, DisturbedBackend, engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import Throttled
from jobtable.jobs.definition import NewJob, ParentWaits
from jobtable.jobs.leases import Outcome
from jobtable.jobs.records import Status
from jobtable.jobs.upkeep import Upkeep
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
