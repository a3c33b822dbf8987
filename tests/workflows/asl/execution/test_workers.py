"""Executions are moved by real workers, which run functions in their own process, in others, and as durable ones."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aws_durable_execution_sdk_python import DurableContext, durable_execution

from jobtable.app import Services, open_jobs
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.worker.worker import Worker
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import ExecutionStatus
from jobtable.workflows.asl.execution.executions import Executions, executions_of
from jobtable.workflows.asl.verbs import RunnableMachine
from jobtable.workflows.durable.verbs import DurableVerbs
from jobtable.workflows.function_records import FunctionRecord
from jobtable.workflows.functions import function
from jobtable.workflows.table_and_queues import QUEUES, TASK_MODULES

_PATIENCE_SECONDS = 60.0
_ROOT = Path(__file__).parents[4]
_PREFIX = "arn:aws:lambda:us-east-1:000000000000:function"


@function(name="worked_here", inline=True)
def worked_here(_event: Any) -> int:
    """Runs in the worker's process."""
    return os.getpid()


@function(name="worked_elsewhere", timeout_seconds=60)
def worked_elsewhere(event: dict[str, Any]) -> int:
    """Runs in a process of its own, and may fail."""
    if event.get("fails"):
        raise LookupError("as it was told to")
    return os.getpid()


@function(name="worked_durably", inline=True)
@durable_execution
def worked_durably(event: dict[str, Any], context: DurableContext) -> str:
    """Is an execution of its own."""
    step: str = context.step(lambda _: f"durable {event['n']}", name="only")
    return step


@function(name="worked_slowly", timeout_seconds=60)
def worked_slowly(event: dict[str, Any]) -> str:
    """Runs until it is let go."""
    return _wait(event)


@function(name="worked_slowly_durably")
@durable_execution
def worked_slowly_durably(event: dict[str, Any], context: DurableContext) -> str:
    """Does the same in a step."""
    step: str = context.step(lambda _: _wait(event), name="only")
    return step


def _wait(event: dict[str, Any]) -> str:
    while not Path(event["go"]).exists():
        time.sleep(0.01)
    return "gone"


def _task(name: str, **members: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": f"{_PREFIX}:{name}", "End": True, **members}


def _parallel(*states: dict[str, Any]) -> str:
    branches = [{"StartAt": "T", "States": {"T": state}} for state in states]
    return json.dumps({"StartAt": "P", "States": {"P": {"Type": "Parallel", "Branches": branches, "End": True}}})


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(str(_ROOT))
    return f"file:{tmp_path}/jobs.db"


def _work(url: str) -> None:
    opener = partial(open_jobs, url)
    Worker(opener, list(QUEUES), slots=2, until_empty=True, mode="inline", preload=TASK_MODULES).run()


def _start(services: Services, definition: str, payload: Any) -> Executions:
    _ = services.executions
    executions = executions_of(services.engine)
    executions.core.functions.core.functions.publish()
    executions.start(RunnableMachine("worked", definition), json.dumps(payload), "one", arns=Arns())
    return executions


def test_functions_run_in_the_worker_beside_it_and_durably(url: str) -> None:
    waits = {"Type": "Wait", "Seconds": 1, "End": True}
    tasks = [_task(name) for name in ("worked_here", "worked_elsewhere", "worked_durably")]
    with Services.open(url) as services:
        executions = _start(services, _parallel(*tasks, waits), {"n": 3})
        _work(url)
        execution = executions.get("worked", "one")
        assert (execution.status, execution.cause) == (ExecutionStatus.SUCCEEDED, None)
        here, elsewhere, durably, _ = json.loads(execution.output or "")
        assert (here, durably) == (os.getpid(), "durable 3")
        assert elsewhere != here
        assert {job.status for job in services.jobs.queries.list_jobs()} == {Status.COMPLETED}
        below = [job for job in services.jobs.queries.list_jobs() if job.parent_job_id == execution.job_id]
        assert [job.name for job in below] == ["worked_elsewhere"]
        durable: DurableVerbs = services.durable
        assert len(list(durable.list("worked_durably"))) == 1


def test_a_function_that_raises_fails_its_state_with_lambdas_cause(url: str) -> None:
    with Services.open(url) as services:
        executions = _start(services, _parallel(_task("worked_elsewhere")), {"fails": True})
        _work(url)
        execution = executions.get("worked", "one")
        assert (execution.status, execution.error) == (ExecutionStatus.FAILED, "LookupError")
        cause = json.loads(execution.cause or "")
        assert (cause["errorMessage"], cause["errorType"]) == ("as it was told to", "LookupError")


_INVOKE = {
    "Resource": "arn:aws:states:::lambda:invoke",
    "Parameters": {"FunctionName": "worked_slowly", "Payload.$": "$"},
}


@pytest.mark.parametrize(
    ("state", "family"),
    [
        (_task("worked_slowly"), "LambdaFunction"),
        (_task("worked_slowly_durably"), "LambdaFunction"),
        (_task("worked_slowly", **_INVOKE), "Task"),
    ],
    ids=["function", "durable function", "lambda:invoke"],
)
def test_the_history_shows_that_a_function_runs(url: str, tmp_path: Path, state: dict[str, Any], family: str) -> None:
    definition = json.dumps({"StartAt": "T", "States": {"T": state}})
    with Services.open(url) as services, ThreadPoolExecutor(1) as threads:
        executions = _start(services, definition, {"go": str(tmp_path / "go")})
        working = threads.submit(_work, url)
        try:
            until = time.monotonic() + _PATIENCE_SECONDS
            while len(events := list(executions.history("worked", "one"))) < 4 and time.monotonic() < until:
                time.sleep(0.02)
            seen_at = datetime.now(UTC)
        finally:
            (tmp_path / "go").touch()
        working.result()
        kinds = [f"{family}Scheduled", f"{family}Started", f"{family}Succeeded", "TaskStateExited"]
        assert [each.type for each in events[2:]] == kinds[:2]
        ended = list(executions.history("worked", "one"))
        assert [each.type for each in ended[2:]] == [*kinds, "ExecutionSucceeded"]
        assert ended[:4] == events
        assert ended[2].at <= ended[3].at < seen_at <= ended[4].at


def test_a_function_that_cannot_be_imported_fails_as_on_lambda(url: str) -> None:
    with Services.open(url) as services:
        executions = _start(services, _parallel(_task("moved_away")), {})
        services.store.put(FunctionRecord(name="moved_away", path="no_such_module:handler"))
        _work(url)
        execution = executions.get("worked", "one")
        assert (execution.status, execution.error) == (ExecutionStatus.FAILED, "Runtime.ImportModuleError")
        assert "cannot import no_such_module" in json.loads(execution.cause or "")["errorMessage"]
        kinds = [each.type for each in executions.history("worked", "one")]
        assert kinds[4:7] == ["LambdaFunctionScheduled", "LambdaFunctionStarted", "LambdaFunctionFailed"]


def test_a_function_that_nobody_registered_is_lambdas_error(url: str) -> None:
    with Services.open(url) as services:
        executions = _start(services, _parallel(_task("nobody_registered")), {})
        _work(url)
        assert executions.get("worked", "one").error == "Lambda.ResourceNotFoundException"
