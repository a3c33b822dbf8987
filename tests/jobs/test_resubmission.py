"""A job as a new one: what is copied, what is not, and what cannot be."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from tests.jobs.engines import engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import JobStateError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import DependsOn, NewJob, RetryPolicy
from jobtable.jobs.submit.submission import copy_of
from jobtable.store import Store
from jobtable.testing import FakeClock

NOT_COPIED = {
    "user",
    "key",
    "job_id",
    "parent_job_id",
    "job_stage",
    "parent_waits",
    "depends_on",
    "group_id",
    "owner",
    "roll_up",
    "not_before",
    "on_end",
}


def test_everything_that_says_what_to_do_is_copied_and_nothing_that_ties_the_job() -> None:
    with Store(EmbeddedBackend(None)) as store:
        jobs = engine(store)
        other = jobs.submit(NewJob(name="other", task="m:f"))
        wanted = NewJob(
            name="train",
            task="training:train",
            params={"rate": 0.5, "layers": [1, None]},
            queue="gpu",
            description="nightly",
            job_type="training",
            priority=7,
            tags=frozenset({"x"}),
            estimated_duration=60.0,
            max_attempts=3,
            timeout_seconds=5.0,
            memory_mb=100.0,
            retry=RetryPolicy(first_delay_seconds=9),
            most_interruptions=1,
            grace_seconds=2.0,
            max_cost=0.5,
            max_tokens=1000,
            config={"keep_checkpoints": 2},
        )
        assert {each.name for each in fields(NewJob) if getattr(wanted, each.name) == each.default} <= NOT_COPIED
        tied = replace(wanted, user="ada", key="k", job_stage="s", depends_on=(DependsOn(other.job_id),))
        job = jobs.submit(replace(tied, parent_job_id=other.job_id, not_before=jobs.clock.now()))
        assert copy_of(job) == wanted


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "it is a group"),
        ({"retry": 3}, "the retry of its job_config cannot be 3"),
        ({"task": "m:f", "owner": {"system": "evals", "id": "e1"}}, "part of something larger"),
    ],
)
def test_what_does_nothing_by_itself_is_not_copied(config: dict[str, object], said: str) -> None:
    job = Job(job_id="1", name="a", created_at=FakeClock().now(), created_by="ada", job_config=config)
    with pytest.raises(JobStateError, match=f"job 1 cannot be submitted again: .*{said}"):
        copy_of(job)
