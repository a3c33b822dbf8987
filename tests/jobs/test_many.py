"""Many jobs acted on by one call: each by itself, in order, as the results are read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobtable.app import open_jobs
from jobtable.errors import BackendUnavailable, JobStateError, NotFoundError, StorageError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.many import act_on_each
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with open_jobs("memory:") as opened:
        yield opened


def test_what_cannot_be_done_with_one_does_not_stop_the_others(jobs: Jobs) -> None:
    first, second = (job.job_id for job in jobs.submit_many(NewJob(name=name, task="m:f") for name in "ab"))
    jobs.stop(first)
    acted = list(jobs.many.cancel([first, "none", second], by="ada", message="enough"))
    assert [each.job_id for each in acted] == [first, "none", second]
    assert [type(each.error) for each in acted] == [JobStateError, NotFoundError, type(None)]
    assert acted[2].given == jobs.queries.get_job(second)
    assert (jobs.queries.get_job(second).status, jobs.queries.get_job(second).message) == (Status.CANCELLED, "enough")
    (retried,) = jobs.many.retry([second])
    assert retried.given is not None
    assert retried.given.status is Status.PENDING
    (stopped,) = jobs.many.stop([second])
    assert stopped.given is not None
    assert stopped.given.status is Status.STOPPED
    deleted, gone = jobs.many.delete([second, second])
    assert deleted.given is not None
    assert deleted.given > 1
    assert isinstance(gone.error, NotFoundError)


def test_jobs_are_acted_on_as_the_results_are_read(jobs: Jobs) -> None:
    ids = [job.job_id for job in jobs.submit_many(NewJob(name=name, task="m:f") for name in "ab")]
    acted = jobs.many.cancel(ids)
    next(acted)
    assert [jobs.queries.get_job(job_id).status for job_id in ids] == [Status.CANCELLED, Status.PENDING]


@pytest.mark.parametrize("error", [BackendUnavailable("no answer"), StorageError("locked")])
def test_behind_an_error_that_is_no_jobs_own_the_others_are_left_alone(error: Exception) -> None:
    tried: list[str] = []

    def act(job_id: str) -> str:
        tried.append(job_id)
        if job_id == "b":
            raise error
        return job_id.upper()

    acted = list(act_on_each("abcd", act))
    assert tried == ["a", "b"]
    assert [(each.given, each.error) for each in acted] == [("A", None), (None, error), (None, error), (None, error)]
