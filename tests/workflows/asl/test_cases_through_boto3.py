"""Every case comes out through boto3 as it says: its machine, executions and history pass through HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from botocore.config import Config
from mypy_boto3_stepfunctions import SFNClient
from tests.workflows.asl.case_files import Case, expected_end, find_faults, read_cases
from tests.workflows.asl.execution.store_runner import MACHINE, NAME, ROLE, StoreRunner, VerbsFront

from jobtable.embedded.server import Server, StepFunctionsProtocol
from jobtable.embedded.server.http1 import HttpRequest, HttpResponse
from jobtable.workflows.asl.aws_api.step_functions_api import StepFunctionsApi
from jobtable.workflows.asl.catalogue.machines_by_arn import MachinesByArn

CASES = list(read_cases())
STANDARD = [case for case in CASES if case.type == "STANDARD"]
EXPRESS = [case for case in CASES if case.type == "EXPRESS"]


@dataclass
class Address:
    """One server and one client for all cases, each of which has a store of its own."""

    api: StepFunctionsApi | None = None

    def respond(self, request: HttpRequest) -> HttpResponse:
        assert self.api is not None
        return StepFunctionsProtocol(self.api).respond(request)


@dataclass
class BotoFront:
    """Starts an execution with boto3, and reads it."""

    client: SFNClient
    arn: str = field(default="", init=False)

    def start(self, case: Case) -> None:
        for name, definition in case.machines.items():
            self.create(name, definition)
        for kind, _, name in (answers.partition(":") for answers in case.answers):
            if kind == "activity":
                self.client.create_activity(name=name)
        machine = self.create(MACHINE, case.definition, case.type)
        started = self.client.start_execution(stateMachineArn=machine, name=NAME, input=json.dumps(case.input))
        self.arn = started["executionArn"]

    def create(self, name: str, definition: Any, machine_type: Any = "STANDARD") -> str:
        """Create a machine and return its ARN."""
        created = self.client.create_state_machine(
            name=name, definition=json.dumps(definition), type=machine_type, roleArn=ROLE
        )
        return created["stateMachineArn"]

    def stop(self, error: str | None, cause: str | None) -> None:
        told: Any = {name: value for name, value in (("error", error), ("cause", cause)) if value is not None}
        self.client.stop_execution(executionArn=self.arn, **told)

    def redrive(self) -> None:
        self.client.redrive_execution(executionArn=self.arn)

    def outcome(self) -> tuple[str, str | None, str | None, Any]:
        found = self.client.describe_execution(executionArn=self.arn)
        output = found.get("output")
        return found["status"], found.get("error"), found.get("cause"), None if output is None else json.loads(output)

    def history(self) -> list[tuple[int, int, str, dict[str, Any]]]:
        pages = self.client.get_paginator("get_execution_history").paginate(
            executionArn=self.arn, PaginationConfig={"PageSize": 1000}
        )
        return [
            (event["id"], event["previousEventId"], event["type"], _details(event))
            for page in pages
            for event in page["events"]
        ]


def _details(event: Any) -> dict[str, Any]:
    return next((dict(members) for name, members in event.items() if name.endswith("EventDetails")), {})


@pytest.fixture(scope="module")
def address() -> Address:
    return Address()


@pytest.fixture(scope="module")
def client(address: Address) -> Iterator[SFNClient]:
    with Server(address.respond) as server:
        client: SFNClient = boto3.client(
            "stepfunctions",
            endpoint_url=server.url,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=Config(retries={"total_max_attempts": 1}, inject_host_prefix=False),
        )
        with closing(client):
            yield client


def run(case: Case, address: Address, client: SFNClient) -> StoreRunner:
    runner = StoreRunner(case)
    runner.front = BotoFront(client)
    runner.executions.core.machines = MachinesByArn(runner.services.machines)  # nested ones, too, are created by boto3
    address.api = runner.services.step_functions
    runner.run()
    return runner


@pytest.mark.parametrize("case", STANDARD, ids=str)
def test_a_case_comes_out_as_it_says(case: Case, address: Address, client: SFNClient) -> None:
    runner = run(case, address, client)

    assert runner.plain(runner.front.outcome()) == expected_end(case)
    assert find_faults(case, runner.plain(runner.front.history())) == []
    if "seconds" in case.expect:
        assert runner.seconds() == pytest.approx(case.expect["seconds"], abs=0.01)


@pytest.mark.parametrize("case", EXPRESS, ids=str)
def test_an_express_execution_is_started_and_has_no_history(case: Case, address: Address, client: SFNClient) -> None:
    runner = run(case, address, client)

    assert isinstance(runner.front, BotoFront)
    assert ":express:cases:case:" in runner.front.arn
    with pytest.raises(client.exceptions.InvalidArn):
        runner.front.history()
    assert list(VerbsFront(runner.executions).outcome()) == expected_end(case)


@pytest.mark.parametrize(
    "case", [case for case in EXPRESS if "seconds" not in case.expect and not case.answers], ids=str
)
def test_an_express_execution_is_run_at_once(case: Case, address: Address, client: SFNClient) -> None:
    runner = StoreRunner(case)
    address.api = runner.services.step_functions
    machine = BotoFront(client).create(MACHINE, case.definition, case.type)

    ended = client.start_sync_execution(stateMachineArn=machine, name=NAME, input=json.dumps(case.input))

    output = json.loads(ended["output"]) if "output" in ended else None
    assert [ended["status"], ended.get("error"), ended.get("cause"), output] == expected_end(case)
