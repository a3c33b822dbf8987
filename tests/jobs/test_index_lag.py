"""Jobs whose indexes are behind the table, as those of DynamoDB are for a moment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.jobs.engines import LEASE_SECONDS, check_records, engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import NotFoundError
from jobtable.jobs.definition import DependsOn, EdgeCondition, NewJob, ParentWaits
from jobtable.jobs.engine import Jobs
from jobtable.jobs.entities import Job
from jobtable.jobs.leases import Lease, Outcome
from jobtable.jobs.records import Status
from jobtable.store import Store
from jobtable.testing import FakeClock, Faults, FaultyBackend


class Cloud:
    """An engine whose indexes can be held, and another one that sees everything as it is."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self._backend = EmbeddedBackend(None, durability="normal")
        self.jobs = engine(Store(self._backend, clock=self.clock), self.clock)
        self._lagging: list[FaultyBackend] = []

    def held(self) -> Jobs:
        """An engine for which the indexes stay as they are now, from its first write on."""
        lagging = FaultyBackend(self._backend, Faults(index_lag=1), seed=1, lagging=10_000, clock=self.clock)
        self._lagging.append(lagging)
        return Jobs(Store(lagging, clock=self.clock), self.jobs.objects, clock=self.clock)

    def catch_up(self) -> None:
        """Let the indexes know everything."""
        for lagging in self._lagging:
            lagging.stop()

    def status(self, job: Job) -> Status:
        return self.jobs.queries.get_job(job.job_id).status


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    cloud = Cloud()
    with cloud.jobs.store:
        yield cloud


def new(name: str, *on: DependsOn, parent: Job | None = None) -> NewJob:
    if parent is None:
        return NewJob(name=name, task="x:y", depends_on=on)
    return NewJob(name=name, task="x:y", depends_on=on, parent_job_id=parent.job_id, parent_waits=ParentWaits())


def claim(jobs: Jobs, limit: int = 10) -> list[Lease]:
    return jobs.claim("default", limit=limit, instance_id="worker-1", lease_seconds=LEASE_SECONDS)


# --- trees --------------------------------------------------------------------------------------------------------


def test_a_group_is_cancelled_with_children_that_the_index_does_not_show(cloud: Cloud) -> None:
    jobs = cloud.held()
    group = jobs.open_group(NewJob(name="group"))
    child = jobs.submit(new("child", parent=group))
    jobs.seal(group.job_id)
    jobs.cancel(group.job_id)
    assert cloud.status(child) is Status.CANCELLED
    check_records(cloud.jobs)


def test_a_tree_is_deleted_whose_end_the_index_does_not_show(cloud: Cloud) -> None:
    group = cloud.jobs.open_group(NewJob(name="group"))
    first, second = cloud.jobs.submit_many([new("first", parent=group), new("second", parent=group)])
    cloud.jobs.seal(group.job_id)
    jobs = cloud.held()
    jobs.cancel(group.job_id)
    jobs.delete(first.job_id)
    jobs.delete(group.job_id, tree=True)
    assert list(cloud.jobs.queries.list_jobs()) == []
    with pytest.raises(NotFoundError):
        cloud.status(second)
