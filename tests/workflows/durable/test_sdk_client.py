"""Handlers in processes of their own, whose unchanged SDK makes its checkpoints over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_durable_execution_sdk_python.lambda_service import Operation
from tests.workflows.durable.driving import Driver
from tests.workflows.durable.lambda_serving import ACCESS_KEY, SECRET_KEY, lambda_served

from jobtable.app import Services
from jobtable.embedded.server import SignatureCheck
from jobtable.workflows.durable import handler_calls, store_client
from jobtable.workflows.durable.entities import DurableStatus
from jobtable.workflows.durable.handler_calls import Answered, Call
from jobtable.workflows.functions import Function

_ROOT = Path(__file__).parents[3]


@pytest.fixture
def invocations(monkeypatch: pytest.MonkeyPatch, services: Services) -> Iterator[list[dict[str, Any]]]:
    """Call each handler in a new process, as Lambda does; yields the payloads that were sent."""
    sent: list[dict[str, Any]] = []
    with lambda_served(services, SignatureCheck(ACCESS_KEY, SECRET_KEY, service="lambda")) as url:
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL_LAMBDA": url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        }

        def call_process(_service: Any, function: Function, call: Call, *_: Any) -> Answered:
            sent.append(payload_of(call))
            command = [sys.executable, "-m", "tests.workflows.durable.lambda_process", function.name]
            done = subprocess.run(
                command,
                cwd=_ROOT,
                env=environment,
                input=json.dumps(sent[-1]),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return Answered(json.loads(done.stdout))

        monkeypatch.setattr(store_client, "call_durable", call_process)
        yield sent


def payload_of(call: Call) -> dict[str, Any]:
    """Return what Lambda sends to a handler: instants are milliseconds since 1970."""
    return {
        "DurableExecutionArn": str(call.arn),
        "CheckpointToken": call.token,
        "InitialExecutionState": {
            "Operations": [Operation.from_dict(each).to_json_dict() for each in call.operations],
            "NextMarker": call.next_marker,
        },
        "UpdatedOperationIds": call.updated_ids,
    }


@pytest.mark.parametrize(
    ("handler", "output"),
    [
        ("steps_in_order", [0, 1, 2, 3, 4]),
        ("parallel_branches", [f"branch-{number}" for number in range(4)]),
        ("callback", {"answer": '"yes"'}),
        ("invoking", {"doubled": 42, "child": 5, "failed": "LookupError: nothing there"}),
    ],
)
def test_a_handler_ends_over_http_as_in_process(
    driver: Driver, invocations: list[dict[str, Any]], handler: str, output: Any
) -> None:
    execution = driver.run(handler)
    assert execution.status is DurableStatus.SUCCEEDED, execution.error
    assert json.loads(driver.service.output_of(execution) or "") == output
    assert invocations


def test_a_handler_reads_the_pages_of_its_state(
    driver: Driver, invocations: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_calls, "_PAGE_OPERATIONS", 2)
    execution = driver.run("large_results")
    assert json.loads(driver.service.output_of(execution) or "") == 600_000
    assert [len(each["InitialExecutionState"]["Operations"]) for each in invocations] == [1, 3]
    assert invocations[1]["InitialExecutionState"]["NextMarker"]
