"""Lambda's API on a free port, with a worker thread that runs what is invoked and jumps to what is due."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from mypy_boto3_lambda import LambdaClient
from tests.workflows.durable.driving import Driver

from jobtable.app import Services
from jobtable.embedded.server import LambdaProtocol, Server, SignatureCheck

ACCESS_KEY, SECRET_KEY = "AKIDEXAMPLE", "the/secret+key"
REGION = "eu-central-1"


@contextmanager
def lambda_served(services: Services, signatures: SignatureCheck | None = None) -> Iterator[str]:
    """Serve Lambda while the block runs; yields the URL."""
    with Server(LambdaProtocol(services.lambda_functions, signatures).respond) as server:
        yield server.url


def lambda_client(url: str, *, secret_key: str = SECRET_KEY) -> LambdaClient:
    """Return boto3's client, which sends each request once."""
    client: LambdaClient = boto3.client(
        "lambda",
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=secret_key,
        config=Config(retries={"total_max_attempts": 1}),
    )
    return client


@contextmanager
def working(driver: Driver) -> Iterator[None]:
    """Run all jobs in a thread while the block runs."""
    is_over = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not is_over.is_set():
                if not (driver.work_once() or driver.jump()):
                    is_over.wait(0.01)
        except BaseException as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    assert not failures


def refused(call: Any, **request: Any) -> tuple[str, int, str]:
    """Return the code, the status and the message with which a call is refused."""
    with pytest.raises(ClientError) as error:
        call(**request)
    response: Any = error.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Message"]
