"""The job engine under a fake clock, on each kind of store."""

from __future__ import annotations

import pytest
from tests.jobs.engines import engine

from jobtable.jobs.engine import Jobs
from jobtable.store import Store
from jobtable.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def jobs(each_store: Store, clock: FakeClock) -> Jobs:
    return engine(each_store, clock)
