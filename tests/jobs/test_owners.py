"""Jobs that carry an owner and a roll-up rule, in the words of no particular system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.jobs.engines import LEASE_SECONDS, engine

from jobtable import system
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import JobStateError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle import owners
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import JobMetric
from jobtable.jobs.submit.definition import NewJob, RollUp
from jobtable.store import Store
from jobtable.system import Owner, System

EVALS = System(name="evals", title="Evals", thing="eval", delete_command="evals delete {id}")
RULE = RollUp(job_id="group", metrics=("loss",), results={"loss": "loss.last"})
CHILD = NewJob(name="child", task="m:f", parent_job_id="group", roll_up=RULE)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    known = {each.name: each for each in (*system.registered(), EVALS)}
    monkeypatch.setattr(owners, "system_named", known.get)
    with Store(EmbeddedBackend(None)) as store:
        jobs = engine(store)
        jobs.open_group(NewJob(name="group", job_id="group"))
        yield jobs


def claim(jobs: Jobs) -> Lease:
    (lease,) = jobs.claim("default", limit=1, instance_id="i", lease_seconds=LEASE_SECONDS)
    return lease


def recorded(jobs: Jobs, job_id: str) -> list[tuple[str, float, str | None]]:
    return [(each.metric_name, each.value, each.child_job_id) for each in jobs.queries.list_metrics(job_id)]


def test_reports_and_results_are_recorded_under_both_jobs(jobs: Jobs) -> None:
    child = jobs.submit(CHILD)
    lease = claim(jobs)
    with JobContext(jobs, lease) as context:
        context.metric("loss", 0.5)
        context.metric("accuracy", 0.75)
    jobs.finish(lease, Outcome.completed({"loss": 0.25, "note": "done"}))
    own = [("accuracy", 0.75, None), ("loss", 0.5, None), ("loss.last", 0.25, None)]
    assert recorded(jobs, child.job_id) == own
    assert recorded(jobs, "group") == [("loss", 0.5, child.job_id), ("loss.last", 0.25, child.job_id)]


def test_only_numbers_of_a_completed_job_are_rolled_up(jobs: Jobs) -> None:
    jobs.submit(CHILD)
    jobs.finish(claim(jobs), Outcome.completed({"loss": "low"}))
    jobs.submit(CHILD)
    jobs.finish(claim(jobs), Outcome.failed("no memory", retryable=False))
    assert recorded(jobs, "group") == []


def test_what_was_rolled_up_is_deleted_with_the_job(jobs: Jobs) -> None:
    children = [jobs.submit(CHILD) for _ in range(2)]
    for _ in children:
        jobs.finish(claim(jobs), Outcome.completed({"loss": 0.25}))
    jobs.delete(children[0].job_id)
    assert {child for _, _, child in recorded(jobs, "group")} == {children[1].job_id}


def test_the_queue_lists_the_jobs_of_a_group_also_when_they_are_retried(jobs: Jobs) -> None:
    child = jobs.submit(CHILD)
    other = jobs.submit(replace(CHILD, roll_up=None, group_id="other"))
    assert [each.job_id for each in jobs.queries.list_queued_of_group("default", "other")] == [other.job_id]
    jobs.cancel(child.job_id)
    jobs.retry(child.job_id)
    assert [each.job_id for each in jobs.queries.list_queued_of_group("default", "group")] == [child.job_id]


def test_a_malformed_rule_fails_the_run_and_holds_up_nothing_else(jobs: Jobs) -> None:
    child = jobs.submit(replace(CHILD, roll_up=None, config={"roll_up": {"job_id": "group", "metrics": 5}}))
    lease = claim(jobs)
    with pytest.raises(ValueRefusedError, match=f"the metrics of the roll-up rule of job {child.job_id} cannot be 5"):
        JobContext(jobs, lease)
    jobs.finish(lease, Outcome.failed("malformed", retryable=False))
    assert jobs.delete(child.job_id) > 0
    assert list(jobs.store.query(JobMetric.key(job_id="group"))) == []


def test_a_job_with_an_owner_is_deleted_by_its_system_alone(jobs: Jobs) -> None:
    job = jobs.submit(NewJob(name="part", task="m:f", owner=Owner("evals", "e1")))
    assert owners.owner_of(job) == Owner("evals", "e1")
    jobs.cancel(job.job_id)
    with pytest.raises(JobStateError, match="jobtable evals delete e1"):
        jobs.delete(job.job_id)
    assert jobs.delete_for_system(job.job_id) > 0


def test_an_owner_whose_system_is_not_installed_holds_nothing_back(jobs: Jobs) -> None:
    job = jobs.submit(NewJob(name="part", task="m:f", owner=Owner("removed", "1")))
    jobs.cancel(job.job_id)
    assert jobs.delete(job.job_id) > 0
