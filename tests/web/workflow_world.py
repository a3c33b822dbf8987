"""Machines, executions and durable executions in the store of the tests of pages, with markup in texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.workflows.asl.memory_runner import MemoryRunner, World
from tests.workflows.asl.stored_histories import create_machine, store_history
from tests.workflows.durable.driving import Driver, JumpingClock

from jobtable.app import Services
from jobtable.clock import wall_time
from jobtable.jobs.engine import Jobs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.workflows.asl.entities import Execution, MapRun, MapRunStatus
from jobtable.workflows.asl.machine_definition import read_definition
from jobtable.workflows.table_and_queues import EXECUTIONS_QUEUE

MACHINE, FAILED, DONE, DISTRIBUTED = "covers", "order-2", "order-1", "shelves"
FUNCTION = "callback"
_FUNCTION_ARN = "arn:aws:lambda:us-east-1:000000000000:function:"


def album_definition(markup: str = "") -> dict[str, Any]:
    """Return a machine with all that a graph shows: choices, catches, retries, loops, Map, Parallel, a nested one."""
    retry = [{"ErrorEquals": ["Busy"], "MaxAttempts": 2, "IntervalSeconds": 1}]
    check = {"Type": "Task", "Resource": f"{_FUNCTION_ARN}check", "Retry": retry, "Next": "Sure?"}
    ask = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Parameters": {"QueueUrl": "q", "MessageBody": {"token.$": "$$.Task.Token"}},
        "Next": "Check years",
    }
    sure = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.sure", "BooleanEquals": True, "Next": "Price"}],
        "Default": "Ask a person",
    }
    price = {"Type": "Task", "Resource": f"{_FUNCTION_ARN}price", "End": True}
    inner = {"Check years": check, "Sure?": sure, "Ask a person": ask, "Price": price}
    nested = {"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync:2", "End": True}
    nested["Parameters"] = {
        "StateMachineArn": "arn:aws:states:us-east-1:000000000000:stateMachine:shelves",
        "Input": {},
    }
    side_by_side = f"Side by side {markup}"[:80].strip()
    return {
        "Comment": markup,
        "StartAt": "Read image",
        "States": {
            "Read image": {
                "Type": "Task",
                "Comment": markup,
                "Resource": f"{_FUNCTION_ARN}read",
                "Retry": retry,
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Unreadable"}],
                "Next": "Each album",
            },
            "Each album": {
                "Type": "Map",
                "ItemProcessor": {"StartAt": "Check years", "States": inner},
                "Next": side_by_side,
            },
            side_by_side: {
                "Type": "Parallel",
                "Branches": [
                    {"StartAt": "Nap", "States": {"Nap": {"Type": "Wait", "Seconds": 2, "End": True}}},
                    {"StartAt": "Nested", "States": {"Nested": nested}},
                ],
                "Next": "Done",
            },
            "Unreadable": {"Type": "Fail", "Error": "Unreadable", "Cause": markup},
            "Done": {"Type": "Succeed"},
        },
    }


def answers(markup: str = "") -> dict[str, list[Any]]:
    """Return what the tasks of the machine answer: one is retried, one asks a person, one album costs nothing."""
    sure, unsure = {"sure": True, "title": markup}, {"sure": False}
    return {
        "read": [
            {"$error": "Busy", "$cause": markup, "after": 1},
            {"$output": [{"n": 1}, {"n": 2}, {"n": 3}], "after": 2},
        ],
        "check": [{"$output": unsure, "after": 1}, {"$output": sure, "after": 2}],
        "price": [{"$output": {"price": 12}, "after": 1}],
        "sqs:sendMessage": [{"$submitted": {"MessageId": "m"}, "$output": {"sure": True}, "after": 30}],
    }


SHELVES = {"StartAt": "Sort", "States": {"Sort": {"Type": "Pass", "End": True}}}


def run_albums(definition: dict[str, Any], given: dict[str, list[Any]], payload: Any, name: str) -> MemoryRunner:
    """Return a runner for an execution of the machine."""
    world = World(given, {"shelves": SHELVES})
    return MemoryRunner(read_definition(json.dumps(definition)), payload, world, name, MACHINE)


def fill_workflows(services: Services, markup: str) -> None:
    """Store a machine with an execution that succeeded and one that failed, and one with a distributed Map."""
    definition = album_definition(markup)
    machine = create_machine(services, MACHINE, definition, publish=True)
    runner = run_albums(definition, answers(markup), {"picture": markup}, DONE)
    runner.instant = runner.began = wall_time(services.store.clock)
    store_history(services, machine, DONE, runner, runner.finish())
    failing = run_albums(definition, {"read": [{"$error": "Broken", "$cause": markup}]}, {}, FAILED)
    failing.instant = failing.began = wall_time(services.store.clock)
    store_history(services, machine, FAILED, failing, failing.finish())
    _fill_distributed(services)


def _fill_distributed(services: Services) -> None:
    machine = create_machine(services, DISTRIBUTED, SHELVES)
    runner = MemoryRunner(read_definition(json.dumps(SHELVES)), {}, World(), "whole", DISTRIBUTED)
    store_history(services, machine, "whole", runner, runner.finish())
    run: dict[str, Any] = {"map_run_id": "run-1", "machine": DISTRIBUTED, "name": "whole", "label": "Each"}
    started = services.store.get(Execution.key(machine=DISTRIBUTED, name="whole")).started_at
    services.store.put(MapRun(**run, status=MapRunStatus.RUNNING, started_at=started, execution_count=2, item_count=9))


def start_durable(services: Services, folder: Path, name: str = "waits-for-an-answer") -> None:
    """Start a durable execution, and run it until it waits for an answer."""
    effects = folder / f"effects-{name}"
    services.durable.start(FUNCTION, {"effects": str(effects)}, name=name)
    Driver(services.engine, JumpingClock(), effects).work_once()


def move_executions(jobs: Jobs) -> None:
    """Move executions until all of them wait or have ended, as a worker does."""
    while leases := jobs.claim(EXECUTIONS_QUEUE, limit=10, instance_id="mover", lease_seconds=60):
        for lease in leases:
            context = JobContext(jobs, lease)
            report = run_task(lease.job.definition, StopFlag(), partial(_given, context))
            context.close()
            jobs.finish(lease, report.outcome())


def _given(context: JobContext) -> JobContext:
    return context


def paths() -> Iterator[str]:
    """Every page of workflows, with something on it."""
    yield "/workflows"
    yield "/workflows/new"
    yield f"/workflows/machines/{MACHINE}"
    yield f"/workflows/machines/{MACHINE}?state=/States/Read%20image&version=1"
    yield f"/workflows/machines/{MACHINE}/definition"
    yield f"/workflows/executions/{MACHINE}/{DONE}"
    yield f"/workflows/executions/{MACHINE}/{DONE}?state=/States/Each%20album&order=oldest"
    yield f"/workflows/executions/{MACHINE}/{FAILED}?state=/States/Read%20image"
    yield "/workflows/map-runs/run-1"
    yield "/workflows/functions"
    yield f"/workflows/durable/{FUNCTION}"
    yield f"/workflows/durable/{FUNCTION}/waits-for-an-answer"
