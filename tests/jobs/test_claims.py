"""Jobs that are claimed, or made ready, while the store begins to fail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.jobs.engines import LEASE_SECONDS, DisturbedBackend, check_records, engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import Throttled
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.claims import MOST_DUE, Claims
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob
from jobtable.store import Backoff, Store
from jobtable.testing import FakeClock


class Failing:
    """An engine whose store can refuse one of the next transactions."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self._backend = DisturbedBackend(EmbeddedBackend(None, durability="normal"))
        backoff = Backoff(attempts=1, clock=self.clock)
        self.jobs: Jobs = engine(Store(self._backend, clock=self.clock, backoff=backoff), self.clock)

    def refuse(self, *, writes: int) -> None:
        """Refuse the transaction behind so many."""

        def refuse() -> None:
            raise Throttled("too many requests")

        self._backend.disturb(refuse, writes=writes)

    def claim(self, limit: int) -> list[Lease]:
        return self.jobs.claim("default", limit=limit, instance_id="worker-1", lease_seconds=LEASE_SECONDS)


@pytest.fixture
def failing() -> Iterator[Failing]:
    failing = Failing()
    with failing.jobs.store:
        yield failing


def test_what_was_claimed_before_the_store_failed_is_given(failing: Failing) -> None:
    submitted = failing.jobs.submit_many([NewJob(name="job", task="x:y") for _ in range(40)])
    failing.refuse(writes=0)
    with pytest.raises(Throttled):
        failing.claim(40)
    failing.refuse(writes=1)
    first = failing.claim(40)
    rest = failing.claim(40)
    assert sorted(lease.job.job_id for lease in first + rest) == sorted(job.job_id for job in submitted)
    assert 0 < len(first) < 40


def test_nothing_is_kept_of_a_queue_whose_jobs_nobody_else_wants(failing: Failing) -> None:
    """Some give each of their runs a queue of its own, and a worker or a server goes on for months."""
    for number in range(5):
        failing.jobs.submit(NewJob(name="job", task="x:y", queue=f"run-{number}"))
        assert failing.jobs.claim(f"run-{number}", limit=1, instance_id="worker-1", lease_seconds=LEASE_SECONDS)
    assert _crowds(failing.jobs) == {}


def test_a_crowd_is_forgotten_when_nobody_is_in_the_way_any_more(failing: Failing) -> None:
    crowds = _crowds(failing.jobs)
    crowds["default"] = 1.5
    failing.jobs.submit_many([NewJob(name="job", task="x:y") for _ in range(10)])
    for _ in range(10):
        assert len(failing.claim(1)) == 1
    assert crowds == {}


def _crowds(jobs: Jobs) -> dict[str, float]:
    claims = getattr(jobs.claim, "__self__", None)
    assert isinstance(claims, Claims)
    return claims._crowds


def test_a_job_runs_of_whose_start_nobody_could_be_told(failing: Failing) -> None:
    first = failing.jobs.submit(NewJob(name="first", task="x:y"))
    on = DependsOn(first.job_id, condition=EdgeCondition.STARTED)
    second = failing.jobs.submit(NewJob(name="second", task="x:y", depends_on=(on,)))
    failing.refuse(writes=1)
    (lease,) = failing.claim(1)
    assert lease.job.job_id == first.job_id
    assert failing.claim(1) == []
    failing.jobs.promote_due("default")
    (lease,) = failing.claim(1)
    assert lease.job.job_id == second.job_id
    check_records(failing.jobs)


def test_a_job_that_cannot_be_made_ready_does_not_stand_in_the_way_of_others(failing: Failing) -> None:
    due = failing.jobs.clock.now() + timedelta(seconds=1)
    jobs = failing.jobs.submit_many([NewJob(name=name, task="x:y", not_before=due) for name in ("first", "second")])
    failing.clock.advance(2)
    failing.refuse(writes=0)
    with pytest.raises(Throttled):
        failing.jobs.promote_due("default")
    assert len(failing.claim(2)) == 1
    failing.jobs.promote_due("default")
    (lease,) = failing.claim(2)
    assert lease.job.job_id in {job.job_id for job in jobs}


def test_ended_jobs_whose_dependents_an_index_hides_hold_up_nobody_else(failing: Failing) -> None:
    """Each of them is looked at again and again, but in turn, and nobody waits for the index meanwhile."""
    jobs, clock = failing.jobs, failing.clock
    hidden = jobs.submit_many(NewJob(name="ended", task="x:y") for _ in range(MOST_DUE + 5))
    for job in hidden:  # as if one more waited for it than the index shows
        jobs.store.update(Job.key(job_id=job.job_id), Job.dependents.set(1))
        jobs.cancel(job.job_id)
    later = jobs.submit(NewJob(name="later", task="x:y", not_before=clock.now() + timedelta(seconds=30)))
    clock.advance(60)
    began = clock.monotonic()
    for _ in range(2):
        jobs.promote_due("default")
    assert clock.monotonic() == began
    assert [lease.job.job_id for lease in failing.claim(10)] == [later.job_id]
    for job in hidden:
        jobs.store.update(Job.key(job_id=job.job_id), Job.dependents.set(0))
    clock.advance(60)
    for _ in range(2):
        jobs.promote_due("default")
    assert jobs.queries.get_queue("default").job_count == 1
    check_records(jobs)
