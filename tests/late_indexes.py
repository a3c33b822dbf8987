"""A job engine on a store whose indexes are some writes behind, by a seed: for tests of the systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Status
from jobtable.model import Table
from jobtable.store import Store
from jobtable.testing import FakeClock, Faults, FaultyBackend
from tests.jobs.engines import check_records
from tests.running import jobs_in_memory, run_jobs

SEEDS = range(3)
MOST_BEHIND = 60
"""Items of a transaction count one by one, so these are the last five transactions or so."""
A_MOMENT = 10.0
"""Longer than a dependent takes to hear of an end from another process."""


@contextmanager
def behind(seed: int, *tables: Table) -> Iterator[tuple[Jobs, FakeClock]]:
    """An engine that sees old indexes in half of the cases, at random; what it has done, it has done once."""
    clock, lag = FakeClock(), Faults(index_lag=0.5)
    backend = FaultyBackend(
        EmbeddedBackend(None, clock=clock), lag, seed=seed, lagging=MOST_BEHIND, lagging_seconds=A_MOMENT, clock=clock
    )
    with Store(backend, clock=clock) as store:
        store.tables.create(main, *tables)
        yield jobs_in_memory(store), clock
        assert backend.injected["index_lag"] > 0
        backend.stop()
        check_records(jobs_in_memory(store))


def work(jobs: Jobs, clock: FakeClock, queue: str, look_after: Callable[[], object] = lambda: None) -> None:
    """Run what is ready, as often as time shows something that was not shown before."""
    idle = 0
    while idle < 3:
        idle = 0 if run_jobs(jobs, queue) else idle + 1
        clock.advance(A_MOMENT + 1)
        jobs.promote_due(queue)
        look_after()


def check_once(jobs: Jobs, but: str = "") -> None:
    """Every job is COMPLETED and was claimed once, except those whose id contains this text."""
    found = [job for job in jobs.queries.list_jobs() if not job.definition.is_group]
    assert {job.status for job in found} == {Status.COMPLETED}
    assert {job.lease_epoch for job in found if not but or but not in job.job_id} == {1}


def everything(jobs: Jobs, *tables: Table) -> set[str]:
    """The kinds of items that are left in the tables, and the keys of objects."""
    left = {found.key for found in jobs.objects.list()}
    for table in (main, *tables):
        for item in jobs.store.backend.execute("Scan", {"TableName": table.name})["Items"]:
            left.add(item[table.type_attribute]["S"] if table.type_attribute else table.name)
    return left
