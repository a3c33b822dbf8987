"""Chains of jobs that are longer than the stack of the interpreter."""

from __future__ import annotations

import pytest
from tests.jobs.engines import LEASE_SECONDS, check_records, engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import DependencyCycleError, JobStateError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import DependsOn, NewJob, ParentWaits
from jobtable.store import Store

TASK = "tests.jobs.sample_tasks:add"
LENGTH = 260
DEPTH = 1100


@pytest.fixture
def jobs() -> Jobs:
    return engine(Store(EmbeddedBackend(None)))


def submit_chain(jobs: Jobs) -> None:
    """Jobs of which each waits for the one before it."""
    jobs.submit_many(
        NewJob(
            name=f"{number}",
            task=TASK,
            job_id=f"job-{number}",
            depends_on=(DependsOn(f"job-{number - 1}"),) if number else (),
        )
        for number in range(LENGTH)
    )


def fail_first(jobs: Jobs) -> None:
    (lease,) = jobs.claim("default", limit=1, instance_id="worker-1", lease_seconds=LEASE_SECONDS)
    jobs.finish(lease, Outcome.failed("boom"))


def test_a_chain_of_dependents_ends_when_the_first_one_fails(jobs: Jobs) -> None:
    submit_chain(jobs)
    fail_first(jobs)
    statuses = [jobs.queries.get_job(f"job-{number}").status for number in range(LENGTH)]
    assert statuses == [Status.FAILED, *[Status.CANCELLED] * (LENGTH - 1)]
    assert jobs.queries.get_job("job-7").message == "job job-6 ended CANCELLED"
    check_records(jobs)


def test_a_long_cycle_is_told_in_few_words(jobs: Jobs) -> None:
    submit_chain(jobs)
    with pytest.raises(
        DependencyCycleError, match=r"the start of job-0 waits for .* waits for \.\.\. \(\d+ more\) \.\.\. waits for"
    ) as refused:
        jobs.add_dependency("job-0", DependsOn(f"job-{LENGTH - 1}"))
    assert len(str(refused.value)) < 500


def test_groups_in_groups_end_when_the_innermost_job_fails(jobs: Jobs) -> None:
    parent: str | None = None
    for number in range(LENGTH):
        waits = None if parent is None else ParentWaits()
        group = NewJob(name="group", job_id=f"group-{number}", parent_job_id=parent, parent_waits=waits)
        parent = jobs.open_group(group).job_id
    jobs.submit(NewJob(name="job", task=TASK, parent_job_id=parent, parent_waits=ParentWaits()))
    for number in range(LENGTH):
        jobs.seal(f"group-{number}")
    fail_first(jobs)
    statuses = {jobs.queries.get_job(f"group-{number}").status for number in range(LENGTH)}
    assert statuses == {Status.FAILED}
    check_records(jobs)


def test_a_tree_of_any_depth_is_walked(jobs: Jobs) -> None:
    jobs.submit_many(
        NewJob(name="level", task=TASK, job_id=f"level-{level}", parent_job_id=f"level-{level - 1}" if level else None)
        for level in range(DEPTH)
    )
    with pytest.raises(JobStateError, match="is PENDING and cannot be retried"):
        jobs.retry("level-0", tree=True)


def test_a_job_is_not_deleted_from_above_others_and_few_of_them_are_read_for_that(jobs: Jobs) -> None:
    jobs.submit(NewJob(name="parent", task=TASK, job_id="parent"))
    jobs.submit_many(NewJob(name="child", task=TASK, parent_job_id="parent") for _ in range(300))
    with jobs.store.capacity.measure() as spent, pytest.raises(JobStateError, match="has children"):
        jobs.delete("parent")
    assert sum(units.calls for units in spent.values()) == 3
