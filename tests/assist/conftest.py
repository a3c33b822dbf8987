"""The job engine under a fake clock, on each kind of store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobtable.jobs.engine import Jobs
from jobtable.store import Store
from jobtable.testing import FakeClock
from tests.jobs.engines import engine


@pytest.fixture(autouse=True)
def _tests_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes that a test starts import the tests: they get the path of this one."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))


@pytest.fixture
def clock() -> FakeClock:
    """A clock at the present: calls of jobs that were created at the same instant might wait for each other."""
    return FakeClock(datetime.now(UTC))


@pytest.fixture
def jobs(each_store: Store, clock: FakeClock) -> Jobs:
    return engine(each_store, clock)
