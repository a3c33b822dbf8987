"""A store in a file, with a driver that runs its executions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from mypy_boto3_lambda import LambdaClient
from tests.workflows.durable.driving import Driver, JumpingClock
from tests.workflows.durable.lambda_serving import lambda_client, lambda_served, working

from jobtable.app import Services


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
def services(tmp_path: Path, clock: JumpingClock) -> Iterator[Services]:
    with Services.open(f"file:{tmp_path}/jobs.db", clock=clock) as services:
        _ = services.durable
        yield services


@pytest.fixture
def driver(services: Services, clock: JumpingClock, tmp_path: Path) -> Driver:
    return Driver(services.engine, clock, tmp_path / "effects")


@pytest.fixture
def client(services: Services) -> Iterator[LambdaClient]:
    with lambda_served(services) as url, closing(lambda_client(url)) as client:
        yield client


@pytest.fixture
def worker(driver: Driver) -> Iterator[Driver]:
    with working(driver):
        yield driver
