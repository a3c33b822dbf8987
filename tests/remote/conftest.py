"""A server, and who speaks to it from elsewhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.running import run_jobs
from tests.web.conftest import Served
from typer.testing import CliRunner, Result

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.cli.background import beside
from jobtable.cli.main import app
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


def working(served: Served, *queues: str) -> AbstractContextManager[None]:
    """Run the jobs of some queues of the server while the block runs."""

    def work(is_over: threading.Event) -> None:
        while not is_over.wait(0.02):
            for queue in queues:
                run_jobs(served.services.engine, queue)

    return beside(work, "worker")


def run_far(served: Served, *arguments: str, code: int = 0) -> Result:
    """Run `jobtable --server URL --token TOKEN` with some arguments; it must end with this code."""
    command = ["--server", served.url, "--token", served.token(Role.FULL), *arguments]
    result = CliRunner().invoke(app, command, env={"JOBTABLE_STORE": ""})
    assert result.exit_code == code, f"{result.exit_code}: {result.output}"
    return result


def json_far(served: Served, *arguments: str) -> Any:
    """Return what such a command prints as JSON."""
    return json.loads(run_far(served, *arguments, "--json").stdout)
