"""The job items: partitions that several kinds share, the ready key, and the best value of a sweep."""

from __future__ import annotations

import pytest
from tests.access_patterns.jobs import at

from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.stored.entities import Instance, Job, JobMetric, JobStatus, QueueJob, main
from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.store import Store


def job(job_id: str, status: Status, second: int) -> Job:
    return Job(job_id=job_id, name=job_id, created_at=at(second), created_by="ada", status=status)


@pytest.fixture
def verbs(each_store: Store) -> JobQueries:
    each_store.tables.create(main)
    return JobQueries(each_store)


def test_a_status_that_kinds_share_gives_full_pages_of_the_one_asked_for(verbs: JobQueries, each_store: Store) -> None:
    each_store.batch_put(job(f"job-{number:03d}", Status.RUNNING, number) for number in range(120))
    each_store.batch_put(
        JobStatus(job_id=f"job-{number:03d}", status=Status.RUNNING, updated_at=at(number)) for number in range(120)
    )
    each_store.batch_put(
        Instance(instance_id=f"i-{n:03d}", instance_type="p3", status=InstanceStatus.RUNNING, launched_at=at(n))
        for n in range(120)
    )
    page = verbs.list_jobs_by_status(Status.RUNNING).page(size=50)
    after = verbs.list_jobs_by_status(Status.RUNNING).page(page.cursor, size=50)
    assert [len(page.items), len(after.items)] == [50, 50]
    assert [each.job_id for each in (*page.items, *after.items)] == [f"job-{number:03d}" for number in range(100)]
    assert len(list(verbs.list_statuses_by_status(Status.RUNNING))) == 120
    assert len(list(verbs.list_instances_by_status(InstanceStatus.RUNNING))) == 120


def test_a_job_that_is_claimed_leaves_the_ready_key(verbs: JobQueries, each_store: Store) -> None:
    for job_id, rank, second in (("late", 499, 2), ("early", 499, 1), ("urgent", 0, 3)):
        each_store.add(QueueJob(queue_name="gpu", job_id=job_id, enqueued_at=at(second), rank=rank))
    assert [each.job_id for each in verbs.list_ready("gpu")] == ["urgent", "early", "late"]
    with each_store.capacity.measure() as spent:
        (following,) = verbs.list_ready("gpu", limit=1)
    assert sum(units.read for units in spent.values()) == 0.5
    each_store.update(following, QueueJob.rank.set(None))
    assert [each.job_id for each in verbs.list_ready("gpu")] == ["early", "late"]
    assert len(list(verbs.list_jobs_of_queue("gpu"))) == 3


def test_the_best_value_is_one_read_of_one_item(verbs: JobQueries, each_store: Store) -> None:
    def report(number: int) -> JobMetric:
        value = (number - 150) / 7
        child = f"job-{number}"
        return JobMetric(
            job_id="sweep", metric_name="loss", timestamp=at(number), value=value, child_job_id=child, unit="x" * 2000
        )

    each_store.batch_put(report(number) for number in range(300))
    with each_store.capacity.measure() as spent:
        best = verbs.find_best_metric("sweep", "loss")
    assert best is not None
    assert (best.child_job_id, best.value) == ("job-0", -150 / 7)
    assert sum(units.read for units in spent.values()) == 0.5
    worst = verbs.find_best_metric("sweep", "loss", highest=True)
    assert worst is not None
    assert worst.child_job_id == "job-299"
    assert verbs.find_best_metric("sweep", "accuracy") is None


def test_metrics_of_a_job_itself_are_not_ranked(verbs: JobQueries, each_store: Store) -> None:
    each_store.add(JobMetric(job_id="job-1", metric_name="loss", timestamp=at(0), value=1))
    assert verbs.find_best_metric("job-1", "loss") is None
