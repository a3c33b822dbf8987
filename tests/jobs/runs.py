"""A run of a job to test with: an engine, and the lease of a job that it has claimed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.jobs.engines import LEASE_SECONDS, engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import BackendUnavailable, JobtableError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.read.logs import JobLogs
from jobtable.jobs.stored.entities import Job, main
from jobtable.jobs.submit.definition import NewJob
from jobtable.store import Store
from jobtable.store.backend import Request, Response
from jobtable.testing import FakeClock


class AwayBackend(EmbeddedBackend):
    """Takes no transactions while it is away."""

    def __init__(self) -> None:
        super().__init__(None)
        self.is_away = False
        self.error: JobtableError = BackendUnavailable("the store is away")
        self.transactions = 0

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "TransactWriteItems":
            self.transactions += 1
            if self.is_away:
                raise self.error
        return super().execute(operation, request)


@dataclass(frozen=True)
class Run:
    """One run of one job."""

    jobs: Jobs
    lease: Lease
    clock: FakeClock

    @property
    def job_id(self) -> str:
        return self.lease.job.job_id

    @property
    def logs(self) -> JobLogs:
        return JobLogs(self.jobs.store, self.jobs.objects, clock=self.clock)

    def messages(self) -> list[str]:
        return [line.message for line in self.logs.lines(self.job_id)]

    def lose(self) -> Lease:
        """Let another worker have the job."""
        self.jobs.release(self.lease, "taken for dead")
        return claimed(self.jobs)

    def finish(self) -> None:
        self.jobs.finish(self.lease, Outcome.completed())


def claimed(jobs: Jobs) -> Lease:
    (lease,) = jobs.claim("default", limit=1, instance_id="worker-1", lease_seconds=LEASE_SECONDS)
    return lease


def make_job(store: Store, job_id: str) -> None:
    """A job of which records can be stored, and nothing else."""
    store.tables.create(main)
    store.put(Job(job_id=job_id, name=job_id, created_at=store.clock.now(), created_by="test"))


def run_on(store: Store, clock: FakeClock | None = None, config: Mapping[str, Any] | None = None) -> Run:
    """A job that was just claimed, on a store without tables."""
    clock = clock or FakeClock()
    jobs = engine(store, clock)
    jobs.submit(NewJob(name="job", task="tests.jobs.sample_tasks:add", params={"x": 1}, config=config or {}))
    return Run(jobs, claimed(jobs), clock)


def run_in_memory(config: Mapping[str, Any] | None = None) -> Run:
    """A run on a store of its own."""
    return run_on(Store(EmbeddedBackend(None)), config=config)
