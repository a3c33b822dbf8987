"""boto3's client of Step Functions on a store in memory, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import boto3
import pytest
from botocore.config import Config
from mypy_boto3_stepfunctions import SFNClient

from jobtable.app import Services
from jobtable.embedded.server import Server, StepFunctionsProtocol


@pytest.fixture
def services() -> Iterator[Services]:
    with Services.open("memory:") as services:
        yield services


@pytest.fixture
def states(services: Services) -> Iterator[SFNClient]:
    with Server(StepFunctionsProtocol(services.step_functions).respond) as server:
        client: SFNClient = boto3.client(
            "stepfunctions",
            endpoint_url=server.url,
            region_name="eu-central-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=Config(retries={"total_max_attempts": 1}, inject_host_prefix=False),
        )
        with closing(client):
            yield client
