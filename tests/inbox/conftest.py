"""An inbox on each kind of backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.inbox import labels
from tests.running import jobs_in_memory
from tests.web.conftest import browser

from jobtable.embedded import EmbeddedBackend
from jobtable.inbox import Inbox
from jobtable.inbox.inbox_watch import InboxWatch
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.store import Store
from jobtable.testing import FakeClock
from jobtable.workflows.table_and_queues import workflows

__all__ = ["browser"]


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    """An engine on an embedded store, with a clock that a test moves, and a queue whose description is A."""
    with Store(EmbeddedBackend(None), clock=FakeClock()) as store:
        store.tables.create(main, workflows)
        made = jobs_in_memory(store)
        made.create_queue("q", description="A", priority=0)
        labels.DELIVERED.clear()
        yield made


@pytest.fixture
def inbox(jobs: Jobs) -> Inbox:
    return Inbox(jobs)


@pytest.fixture
def watch(jobs: Jobs) -> InboxWatch:
    return InboxWatch(jobs)


@pytest.fixture
def clock(jobs: Jobs) -> FakeClock:
    assert isinstance(jobs.clock, FakeClock)
    return jobs.clock
