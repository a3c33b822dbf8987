"""A job engine with the tables of albums, on each kind of backend."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.clouds import LateIndexes
from tests.running import jobs_in_memory, jobs_with_s3
from tests.systems.albums import driving

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.store import Store
from jobtable.systems.albums.entities import workflows
from jobtable.testing import FakeClock
from jobtable.workflows.table_and_queues import workflows as runs


@pytest.fixture(autouse=True)
def _forget_deliveries(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What was delivered is of one test alone; the SDK logs what fails on purpose."""
    caplog.set_level(logging.CRITICAL, logger="aws_durable_execution_sdk_python")
    monkeypatch.delenv("JOBTABLE_ALBUMS_CATALOGUE", raising=False)
    driving.DELIVERED.clear()
    yield
    driving.DELIVERED.clear()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def jobs(clock: FakeClock) -> Iterator[Jobs]:
    """On the embedded engine under a fake clock, with objects in memory."""
    with Store(EmbeddedBackend(None, clock=clock), clock=clock) as store:
        store.tables.create(main, workflows, runs)
        yield jobs_in_memory(store)


@pytest.fixture
def late_jobs(clock: FakeClock) -> Iterator[Jobs]:
    """As `jobs`, but indexes show what was written only when a second has passed."""
    with Store(LateIndexes(clock), clock=clock) as store:
        store.tables.create(main, workflows, runs)
        clock.advance(2)
        yield jobs_in_memory(store)


@pytest.fixture
def each_jobs(each_store: Store, request: pytest.FixtureRequest) -> Iterator[Jobs]:
    """On each store in turn; the real S3 server has the objects where DynamoDB Local has the items."""
    each_store.tables.create(main, workflows, runs)
    if isinstance(each_store.backend, EmbeddedBackend):
        yield jobs_in_memory(each_store)
        return
    with jobs_with_s3(each_store, request.getfixturevalue("s3_url")) as jobs:
        yield jobs
