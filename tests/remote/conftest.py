"""A server, and who speaks to it from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.remote.work import ServerWork, open_work
from jobtable.settings import Settings

REPOSITORY = Path(__file__).parents[2]
"""From where workers find the tasks of the tests."""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server that demands tokens."""
    made = Served(require_token=True)
    yield made
    made.stop()


@pytest.fixture
def remote(served: Served) -> Iterator[Services]:
    """Its services, for somebody who may change things."""
    with Services.from_settings(Settings(server=served.url, token=served.token(Role.FULL))) as services:
        yield services


@pytest.fixture
def work(served: Served) -> Iterator[ServerWork]:
    """The work of its jobs, with the role that may do nothing else."""
    opened = open_work(served.url, served.token(Role.WORKER))
    yield opened
    opened.store.close()
