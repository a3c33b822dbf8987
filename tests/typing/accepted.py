"""What the type checkers must accept, and the types that they must see."""

from __future__ import annotations

from typing import assert_type

from tests.samples import Job, JobMetric, Status

from jobtable.model import Attribute, Condition, Selection, Update
from jobtable.store import Page, Query, Store


def use(store: Store) -> None:
    job = Job(job_id="1", created_at=JobMetric.timestamp, created_by="ann")
    assert_type(job.status, Status)
    assert_type(job.queue, str | None)
    assert_type(Job.status, Attribute[Status])
    assert_type(Job.key(job_id="1"), Selection[Job])
    assert_type(JobMetric.by_name(metric_name="loss"), Selection[JobMetric])
    assert_type(store.get(Job.key(job_id="1")), Job)
    assert_type(store.find(Job.key(job_id="1")), Job | None)
    assert_type(store.query(JobMetric.by_name(metric_name="loss")), Query[JobMetric])
    assert_type(store.query(JobMetric.by_name(metric_name="loss")).page(), Page[JobMetric])
    assert_type(store.query(JobMetric.by_name(metric_name="loss")).first(), JobMetric | None)
    for metric in store.query(JobMetric.key(job_id="1"), where=JobMetric.value > 0.5):
        assert_type(metric, JobMetric)
    assert_type(Job.status.set(Status.RUNNING), Update)
    assert_type(Job.status == Status.PENDING, Condition)
    assert_type((Job.priority > 3) & ~(Job.attempts == 0), Condition)
    updated = store.update(
        Job.key(job_id="1"), Job.status.set(Status.RUNNING), Job.attempts.increment(), when=Job.status == Status.PENDING
    )
    assert_type(updated, Job)
    assert_type(store.upsert(Job.key(job_id="1"), Job.attempts.increment()), Job)
    assert_type(store.batch_get([Job.key(job_id="1")]), list[Job | None])
    assert_type(store.get_together(Job.key(job_id="1"), JobMetric.key(job_id="1")), tuple[Job | None, JobMetric | None])
    assert_type(store.values(Job.key(job_id="1"), Job.status), Query[Status])
    assert_type(store.values(Job.key(job_id="1"), Job.status, Job.attempts), Query[tuple[Status, int]])
    store.query(JobMetric.key(job_id="1"), where=(JobMetric.value > 0.5))
    with store.transaction() as tx:
        tx.add(job)
        tx.update(Job.key(job_id="1"), Job.queue.set(None), when=Job.queue == "default")
