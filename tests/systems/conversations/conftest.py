"""A job engine with the tables of conversations, on each kind of backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.running import jobs_in_memory, jobs_with_s3

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.store import Store
from jobtable.systems.conversations.service import tables


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    """On the embedded engine, with objects in memory."""
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(main, *tables())
        yield jobs_in_memory(store)


@pytest.fixture
def each_jobs(each_store: Store, request: pytest.FixtureRequest) -> Iterator[Jobs]:
    """On each store in turn; the real S3 server has the objects where DynamoDB Local has the items."""
    each_store.tables.create(main, *tables())
    if isinstance(each_store.backend, EmbeddedBackend):
        yield jobs_in_memory(each_store)
        return
    with jobs_with_s3(each_store, request.getfixturevalue("s3_url")) as jobs:
        yield jobs
