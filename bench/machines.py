"""State transitions of machines against moto, which runs LocalStack's interpreter in memory, and what one costs.

A transition is a state that is entered and left. The machine has Pass states, or calls a small function in each state;
moto calls functions in containers, so it runs only the first.
"""

# moto is installed for the tests and the benchmarks only.
# mypy: disable-error-code="import-not-found, unused-ignore"
# pyright: reportMissingImports=false
from __future__ import annotations

import json
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.measure import not_measured, report
from jobtable.app import Services
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.testing.servers import cache_folder
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import ExecutionStatus
from jobtable.workflows.asl.verbs import RunnableMachine
from jobtable.workflows.functions import function
from jobtable.workflows.table_and_queues import QUEUES

STATES, AT_ONCE, ROUNDS = 100, 16, 5
Run = Callable[[str], None]
"""Runs one execution of a definition to its end."""


def run() -> None:
    logging.disable(logging.INFO)
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder()) as folder,
        _services(Path(folder)) as services,
    ):
        ours = partial(_run_ours, services)
        try:
            with _moto() as peer:
                for at_once in (1, AT_ONCE):
                    rates = [(_rate(ours, _PASSES, at_once), _rate(peer, _PASSES, at_once)) for _ in range(ROUNDS)]
                    our_rate, peer_rate = (statistics.median(column) for column in zip(*rates, strict=True))
                    report(f"state transitions, {at_once} at a time", our_rate, "moto, in memory", peer_rate)
        except ImportError as error:
            not_measured("state transitions against moto", error)
        alone, together = (statistics.median(_rate(ours, _TASKS, n) for _ in range(ROUNDS)) for n in (1, AT_ONCE))
        report(f"transitions that call a function, {AT_ONCE} at a time", together, "one at a time", alone)
        for what, definition in (("Pass", _PASSES), ("Task", _TASKS)):
            with services.store.capacity.measure() as spent:
                ours(definition)
            units = sum(each.write for each in spent.values()) / STATES
            line = {"bench": f"write units of a transition ({what})", "ours": round(units, 2), "unit": "write units"}
            print(json.dumps(line), flush=True)


@function(name="add-one", inline=True)
def add_one(event: Any, _: object) -> Any:
    """Count the states that ran."""
    return {"count": event.get("count", 0) + 1}


def _definition(state: dict[str, Any]) -> str:
    states = {f"S{number}": {**state, "Next": f"S{number + 1}"} for number in range(STATES - 1)}
    states[f"S{STATES - 1}"] = {**state, "End": True}
    return json.dumps({"StartAt": "S0", "States": states})


_PASSES = _definition({"Type": "Pass"})
_TASKS = _definition({"Type": "Task", "Resource": Arns().function("add-one")})


def _rate(run_one: Run, definition: str, at_once: int) -> float:
    started = time.perf_counter()
    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(run_one, [definition] * at_once))
    return STATES * at_once / (time.perf_counter() - started)


@contextmanager
def _services(folder: Path) -> Iterator[Services]:
    """The embedded engine on a file, where every transition waits for the disk."""
    with Services.open(f"file:{folder / 'machines.db'}") as services:
        services.executions.list("none").first()  # the tables are made
        yield services


def _run_ours(services: Services, definition: str) -> None:
    name = f"run-{time.perf_counter_ns()}"
    services.executions.start(RunnableMachine("bench", definition), "{}", name, arns=Arns())
    jobs = services.engine
    while services.executions.get("bench", name).status is ExecutionStatus.RUNNING:
        for queue in QUEUES:
            for lease in jobs.claim(queue, limit=1, instance_id="bench", lease_seconds=60):
                with JobContext(jobs, lease) as context:
                    outcome = run_task(lease.job.definition, StopFlag(), partial(_same, context)).outcome()
                jobs.finish(lease, outcome)


@contextmanager
def _moto() -> Iterator[Run]:
    import boto3  # noqa: PLC0415
    from moto import mock_aws  # noqa: PLC0415

    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        client = boto3.client(
            "stepfunctions", region_name="us-east-1", aws_access_key_id="bench", aws_secret_access_key="bench"
        )

        def run_one(definition: str) -> None:
            name = f"run-{time.perf_counter_ns()}"
            role = "arn:aws:iam::123456789012:role/bench"
            machine = client.create_state_machine(name=name, definition=definition, roleArn=role)["stateMachineArn"]
            execution = client.start_execution(stateMachineArn=machine)["executionArn"]
            while client.describe_execution(executionArn=execution)["status"] == "RUNNING":
                time.sleep(0.005)

        yield run_one


def _same(context: JobContext) -> JobContext:
    return context
