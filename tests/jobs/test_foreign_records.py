"""Jobs and queues that another program has written, with no more than the attributes that it knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jobtable.app import open_jobs
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Queue
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob

AT = "2025-01-01T00:00:00"


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    opened = open_jobs("memory:")
    yield opened
    opened.store.close()


def put_raw(jobs: Jobs, **attributes: Any) -> None:
    item = {name: value if isinstance(value, dict) else {"S": value} for name, value in attributes.items()}
    jobs.store.backend.execute("PutItem", {"TableName": "jobtable", "Item": item})


def put_job(jobs: Jobs, job_id: str, status: str) -> None:
    put_raw(
        jobs,
        PK=f"JOB#{job_id}",
        SK="JOB",
        TYPE="JOB",
        GSI1PK=f"STATUS#{status}",
        GSI1SK=f"CREATED#{AT}",
        GSI2PK="USER#dana",
        GSI2SK=f"CREATED#{AT}",
        name="train",
        description={"NULL": True},
        created_at=AT,
        created_by="dana",
        status=status,
        priority={"N": "500"},
        job_config={"M": {"model": {"S": "layoutlm"}}},
    )


def test_a_queue_without_a_count_of_what_runs_takes_jobs(jobs: Jobs) -> None:
    put_raw(
        jobs,
        PK="QUEUE#gpu",
        SK="QUEUE",
        TYPE="QUEUE",
        GSI1PK="QUEUE",
        GSI1SK="QUEUE#gpu",
        description="from elsewhere",
        created_at=AT,
        max_concurrent_jobs={"N": "2"},
        priority={"N": "500"},
        job_count={"N": "0"},
    )
    jobs.submit(NewJob(name="one", task="m:f", queue="gpu"))
    (lease,) = jobs.claim("gpu", limit=1, instance_id="me", lease_seconds=60)
    assert lease.job.status is Status.RUNNING
    assert jobs.store.get(Queue.key(queue_name="gpu")).running_count == 1


def test_a_job_can_be_waited_for_and_cancelled(jobs: Jobs) -> None:
    put_job(jobs, "old", "PENDING")
    after_it = DependsOn("old", condition=EdgeCondition.FINISHED)
    waiting = jobs.submit(NewJob(name="next", task="m:f", depends_on=(after_it,)))
    assert jobs.cancel("old").status is Status.CANCELLED
    assert jobs.queries.get_job(waiting.job_id).status is Status.PENDING
