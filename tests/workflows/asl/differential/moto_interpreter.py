"""Runs machines in moto's interpreter."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from moto import mock_aws

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

_ROLE = "arn:aws:iam::123456789012:role/differential"
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Outcome:
    """How an execution ended, and the types of its events in order."""

    status: str
    error: str | None
    cause: str | None
    output: Any
    events: tuple[str, ...]


class MotoInterpreter:
    """moto's interpreter in this process."""

    def __init__(self, client: SFNClient) -> None:
        self._client = client
        self._names = count()

    def run(self, definition: dict[str, Any], payload: Any) -> Outcome:
        """Run a machine to its end."""
        machine = self._client.create_state_machine(
            name=f"machine{next(self._names)}", definition=json.dumps(definition), roleArn=_ROLE
        )
        started = self._client.start_execution(stateMachineArn=machine["stateMachineArn"], input=json.dumps(payload))
        arn = started["executionArn"]
        gives_up_at = time.monotonic() + _PATIENCE_SECONDS
        while (found := self._client.describe_execution(executionArn=arn))["status"] == "RUNNING":
            assert time.monotonic() < gives_up_at, definition
            time.sleep(0.001)
        history = self._client.get_execution_history(executionArn=arn, maxResults=1000)["events"]
        return Outcome(
            found["status"],
            found.get("error"),
            found.get("cause"),
            _read(found.get("output")),
            tuple(event["type"] for event in history),
        )


def _read(text: str | None) -> Any:
    """Read an output; moto writes one that is a string without quotes."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


@contextmanager
def moto_interpreter() -> Iterator[MotoInterpreter]:
    """Mock AWS, with machines that run."""
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        config = Config(parameter_validation=False)
        yield MotoInterpreter(boto3.client("stepfunctions", region_name="us-east-1", config=config))
