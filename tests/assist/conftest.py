"""The job engine under a fake clock, on each kind of store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobtable.jobs.engine import Jobs
from jobtable.store import Store
from jobtable.testing import FakeClock
from tests.jobs.engines import engine


@pytest.fixture
def clock() -> FakeClock:
    """A clock at the present: calls of jobs that were created at the same instant might wait for each other."""
    return FakeClock(datetime.now(UTC))


@pytest.fixture
def jobs(each_store: Store, clock: FakeClock) -> Jobs:
    return engine(each_store, clock)
