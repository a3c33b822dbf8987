"""Every verb of the job engine while indexes show each item as it was some writes ago."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache

import pytest
from tests.jobs.deaths import Verb, run
from tests.jobs.engines import LEASE_SECONDS, check_ended, check_records, engine
from tests.jobs.stale_indexes import StaleIndexes
from tests.jobs.test_interruptions import VERBS

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConflictError, JobStateError, NotFoundError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.recovery import LeaseObserver
from jobtable.jobs.stored.field_types import Status
from jobtable.store import Store
from jobtable.testing import FakeClock

SEEDS = range(2)
MOST_ROUNDS = 50


class Cloud:
    """An engine whose indexes may be stale, and one that sees everything as it is."""

    def __init__(self, seed: int) -> None:
        clock = FakeClock()
        self.backend = EmbeddedBackend(None, durability="normal", clock=clock)
        self.indexes = StaleIndexes(self.backend, seed=seed, clock=clock)
        self.jobs = engine(Store(self.indexes, clock=clock), clock)
        self.records = Jobs(Store(self.backend, clock=clock), self.jobs.objects, clock=clock)

    @contextmanager
    def stale(self) -> Iterator[None]:
        self.indexes.is_stale = True
        try:
            yield
        finally:
            self.indexes.is_stale = False

    def act(self, verb: Verb) -> None:
        """Let a verb be called, again in a moment if it is refused, and content if it is told that it is done."""
        with self.stale():
            try:
                verb.act(self.jobs)
            except ConflictError:
                pass
            else:
                return
        check_records(self.records)
        self.jobs.clock.sleep(60)
        try:
            verb.act(self.jobs)
        except (ConflictError, JobStateError, NotFoundError):
            return

    def work(self) -> dict[str, Status]:
        """Let workers do all there is to do; gives how the jobs ended."""
        jobs = self.jobs
        for each in self.records.queries.list_jobs_by_status(Status.RUNNING):
            if each.definition.is_group:
                with self.stale():
                    jobs.seal(each.job_id)
        observer = jobs.observer()
        for _ in range(MOST_ROUNDS):
            with self.stale():
                self._work_once(observer)
            check_records(self.records)
            if all(job.is_final for job in self.records.queries.list_jobs()):
                break
        jobs.clock.sleep(60)
        self._work_once(observer)  # tells what has not been told while indexes were stale
        check_ended(self.records, by_stale_indexes=True)
        return {found.name: found.status for found in self.records.queries.list_jobs()}

    def _work_once(self, observer: LeaseObserver) -> None:
        jobs = self.jobs
        observer.recover()
        jobs.clock.sleep(LEASE_SECONDS / 3 + 1)
        observer.recover()
        for queue in list(self.records.queries.list_queues()):
            name = jobs.resume_queue(queue.queue_name).queue_name
            jobs.promote_due(name)
            for lease in jobs.claim(name, limit=3, instance_id="last", lease_seconds=LEASE_SECONDS):
                jobs.finish(lease, run(jobs, lease))

    def close(self) -> None:
        self.jobs.store.close()


@cache
def ended(name: str) -> dict[str, Status]:
    """How the jobs end where indexes show everything."""
    with closing(Cloud(0)) as cloud:
        VERBS[name].before(cloud.jobs)
        VERBS[name].act(cloud.jobs)
        return cloud.work()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", VERBS)
def test_everything_comes_to_its_end_by_stale_indexes(name: str, seed: int) -> None:
    with closing(Cloud(seed)) as cloud:
        VERBS[name].before(cloud.jobs)
        cloud.act(VERBS[name])
        assert cloud.work() == ended(name)
