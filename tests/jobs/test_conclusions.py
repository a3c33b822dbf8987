"""How the runs of a worker are concluded when answers of the store are lost, or it cannot be used."""

from __future__ import annotations

from tests.jobs.engines import LEASE_SECONDS, engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import BackendUnavailable, Throttled
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.stored.fields import Status
from jobtable.jobs.submit.definition import DependsOn, NewJob
from jobtable.jobs.worker.holding import Conclusions, Heartbeats, WorkerReport
from jobtable.store import Backoff, Request, Response, Store
from jobtable.testing import FakeClock


class Deaf:
    """A backend that can lose the answer to the next transaction, and then fail to read so many times."""

    def __init__(self) -> None:
        self._backend = EmbeddedBackend(None, durability="normal")
        self.loses_answer = False
        self.failing_reads = 0

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "BatchGetItem" and self.failing_reads:
            self.failing_reads -= 1
            raise Throttled("too many requests")
        response = self._backend.execute(operation, request)
        if operation == "TransactWriteItems" and self.loses_answer:
            self.loses_answer = False
            raise BackendUnavailable("the answer was lost")
        return response

    def close(self) -> None:
        self._backend.close()


class Working:
    """A worker that holds a job."""

    def __init__(self, new: NewJob) -> None:
        clock = FakeClock()
        self.backend = Deaf()
        self.jobs = engine(Store(self.backend, clock=clock, backoff=Backoff(attempts=1, clock=clock)), clock)
        self.jobs.submit(new)
        heartbeats = Heartbeats(self.jobs, LEASE_SECONDS, beat_instance=lambda: None, on_failure=lambda error: None)
        self.conclusions = Conclusions(self.jobs, heartbeats)
        (lease,) = self.jobs.claim("default", limit=1, instance_id="i", lease_seconds=LEASE_SECONDS)
        self.held = heartbeats.hold(lease, clock.monotonic())

    @property
    def status(self) -> Status:
        return self.jobs.queries.get_job(self.held.lease.job.job_id).status


def test_an_end_whose_answer_was_lost_is_counted_as_one() -> None:
    working = Working(NewJob(name="job", task="x:y"))
    working.backend.loses_answer = True
    working.conclusions.finish(working.held, Outcome.completed())
    assert working.status is Status.COMPLETED
    assert working.conclusions.report() == WorkerReport(completed=1)


def test_a_run_that_cannot_be_looked_at_is_given_up() -> None:
    working = Working(NewJob(name="job", task="x:y"))
    working.backend.loses_answer = True
    working.backend.failing_reads = 1
    working.conclusions.finish(working.held, Outcome.completed())
    assert working.status is Status.COMPLETED
    assert working.conclusions.report() == WorkerReport(lost=1)


def test_a_run_has_ended_whose_job_waits_for_its_children() -> None:
    working = Working(NewJob(name="parent", task="x:y"))
    parent, child = working.held.lease.job, working.jobs.submit(NewJob(name="child", task="x:y"))
    working.jobs.add_dependency(parent.job_id, DependsOn(child.job_id, gate="completion"))
    working.backend.loses_answer = True
    working.conclusions.finish(working.held, Outcome.completed())
    assert working.jobs.queries.get_job(parent.job_id).is_awaiting
    assert working.conclusions.report() == WorkerReport(completed=1)
