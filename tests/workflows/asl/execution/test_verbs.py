"""The verbs of executions, where their promises go beyond what cases can say."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from tests.workflows.asl.case_files import Case
from tests.workflows.asl.execution.store_runner import ARNS, MACHINE, NAME, StoreRunner

from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    JobStateError,
    NotFoundError,
    TaskClosedError,
    TokenRefusedError,
    ValueRefusedError,
)
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.workflows.asl.catalogue.machine_verbs import MachineDeletingError
from jobtable.workflows.asl.entities import (
    ActivityTask,
    Execution,
    ExecutionStatus,
    MachineType,
    MapRun,
    MapRunStatus,
    TaskToken,
)
from jobtable.workflows.asl.execution.ending import RETENTION
from jobtable.workflows.asl.verbs import RunnableMachine
from jobtable.workflows.functions import function
from jobtable.workflows.table_and_queues import workflows

ASK = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "Parameters": {"QueueUrl": "inbox", "MessageBody": {"token.$": "$$.Task.Token"}},
            "End": True,
        }
    },
}
WAIT = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 60, "End": True}}}
CALL = {"Type": "Task", "Resource": ARNS.function("fails")}
SILENT = {"sqs:sendMessage": [{"$never": True}], "silent": [{"$never": True}]}


def run(definition: dict[str, Any], payload: Any = None, **members: Any) -> StoreRunner:
    """Run an execution until it waits or has ended."""
    runner = StoreRunner(Case("verbs", "one", definition, {}, payload or {}, **members))
    runner.run()
    return runner


def token_of(runner: StoreRunner, visit: int = 1) -> str:
    return runner.executions.core.token_of(runner.executions.get(MACHINE, NAME), "0", visit)


def machine(definition: dict[str, Any] = WAIT, kind: MachineType = MachineType.STANDARD) -> RunnableMachine:
    return RunnableMachine(MACHINE, json.dumps(definition), kind)


# --- starting ---------------------------------------------------------------------------------------------------------


def test_every_job_of_an_execution_says_who_started_it() -> None:
    call = {"StartAt": "C", "States": {"C": {**CALL, "End": True}}}
    nested = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync",
        "Parameters": {"StateMachineArn": ARNS.machine("inner")},
        "ResultPath": None,
        "Next": "Far",
    }
    far = {
        "Type": "Map",
        "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **call},
        "ItemsPath": "$.items",
        "End": True,
    }
    definition = {"StartAt": "Nested", "States": {"Nested": nested, "Far": far}}
    answers = {"fails": [1, {"$error": "Boom"}, 2]}
    runner = StoreRunner(Case("verbs", "one", definition, {}, answers=answers, machines={"inner": call}))
    runner.executions.start(machine(definition), '{"items": [1]}', NAME, arns=ARNS, user="ada")
    runner.work()
    assert runner.executions.redrive(MACHINE, NAME).created_by == "ada"
    runner.work()
    assert runner.executions.get(MACHINE, NAME).status is ExecutionStatus.SUCCEEDED
    jobs = list(runner.jobs.queries.list_jobs())
    assert {(job.job_type, job.created_by) for job in jobs} == {("state machine", "ada"), ("function", "ada")}
    assert len(jobs) >= 7


def test_a_second_start_returns_the_running_execution_and_no_other() -> None:
    runner = StoreRunner(Case("verbs", "one", WAIT, {}))
    verbs = runner.executions
    first = verbs.start(machine(), '{"a": 1}', NAME, arns=ARNS)
    assert verbs.start(machine(), '{"a": 1}', NAME, arns=ARNS) == first
    with pytest.raises(AlreadyExistsError):
        verbs.start(machine(), "{}", NAME, arns=ARNS)
    runner.work()
    with pytest.raises(AlreadyExistsError):
        verbs.start(machine(), '{"a": 1}', NAME, arns=ARNS)
    assert [each.name for each in verbs.list(MACHINE)] == [NAME]
    assert len(list(runner.jobs.queries.list_jobs())) == 1


@pytest.mark.parametrize("payload", ["{", "x" * 300_000, json.dumps("x" * 300_000)])
def test_an_input_that_cannot_be_used_starts_nothing(payload: str) -> None:
    runner = StoreRunner(Case("verbs", "one", WAIT, {}))
    with pytest.raises(ValueRefusedError):
        runner.executions.start(machine(), payload, NAME, arns=ARNS)
    with pytest.raises(NotFoundError):
        runner.executions.get(MACHINE, NAME)


def test_a_large_input_and_output_lie_in_the_object_store_and_go_with_the_execution() -> None:
    runner = run({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}, "x" * 200_000)
    execution = runner.executions.get(MACHINE, NAME)
    assert (execution.input, execution.output) == ("", None)
    assert runner.front.outcome()[3] == "x" * 200_000
    assert list(runner.jobs.objects.list("durable"))
    runner.executions.delete(MACHINE, NAME)
    assert list(runner.jobs.objects.list("durable")) == []


# --- tokens -----------------------------------------------------------------------------------------------------------


def test_a_token_is_answered_once_and_only_its_digest_is_stored() -> None:
    runner = run(ASK, answers=SILENT)
    token = token_of(runner)
    runner.executions.succeed(token, '{"ok": true}')
    with pytest.raises(TaskClosedError):
        runner.executions.fail(token, "Late", "too late")
    runner.work()
    assert runner.front.outcome() == ("SUCCEEDED", None, None, {"ok": True})
    with pytest.raises(TaskClosedError):
        runner.executions.succeed(token, "1")
    with pytest.raises(TaskClosedError):
        runner.executions.beat(token)
    (kept,) = runner.jobs.store.scan(TaskToken)
    assert token not in kept.model_dump_json()


@pytest.mark.parametrize("change", [lambda token: token[:-4], lambda token: f"{token}A", lambda _: "forged"])
def test_a_forged_token_is_refused(change: Any) -> None:
    runner = run(ASK, answers=SILENT)
    for act in (
        lambda token: runner.executions.succeed(token, "1"),
        lambda token: runner.executions.fail(token, "E", "c"),
        runner.executions.beat,
    ):
        with pytest.raises(TokenRefusedError):
            act(change(token_of(runner)))
    assert runner.executions.get(MACHINE, NAME).status is ExecutionStatus.RUNNING


def test_stopping_voids_tokens_and_cancels_functions() -> None:
    called = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:silent", "End": True}
    both = {
        "StartAt": "P",
        "States": {
            "P": {"Type": "Parallel", "Branches": [ASK, {"StartAt": "F", "States": {"F": called}}], "End": True}
        },
    }
    runner = run(both, answers=SILENT)
    token = runner.executions.core.token_of(runner.executions.get(MACHINE, NAME), "0.0", 1)
    stopped = runner.executions.stop(MACHINE, NAME, error="Enough", cause="by hand")
    assert (stopped.status, stopped.error, stopped.cause) == (ExecutionStatus.ABORTED, "Enough", "by hand")
    with pytest.raises(TaskClosedError):
        runner.executions.succeed(token, "1")
    with pytest.raises(JobStateError):
        runner.executions.stop(MACHINE, NAME)
    runner.work()
    assert runner.leftovers() == []
    assert {job.status for job in runner.jobs.queries.list_jobs()} == {Status.COMPLETED, Status.CANCELLED}


def test_a_cancelled_job_aborts_its_execution_and_what_that_waits_for() -> None:
    runner = run(ASK, answers=SILENT)
    runner.jobs.cancel(runner.executions.get(MACHINE, NAME).job_id, message="no longer wanted")
    execution = runner.executions.get(MACHINE, NAME)
    assert (execution.status, execution.cause) == (ExecutionStatus.ABORTED, "no longer wanted")
    assert runner.front.history()[-1][2] == "ExecutionAborted"
    runner.executions.redrive(MACHINE, NAME)
    runner.work()
    runner.executions.succeed(token_of(runner, 2), "7")
    runner.work()
    assert runner.front.outcome() == ("SUCCEEDED", None, None, 7)


# --- activities -------------------------------------------------------------------------------------------------------


PAINT = {
    "StartAt": "A",
    "States": {
        "A": {
            "Type": "Task",
            "Resource": "arn:aws:states:us-east-1:000000000000:activity:paint",
            "TimeoutSeconds": 60,
            "End": True,
        }
    },
}


def test_a_task_of_an_activity_is_polled_once_and_not_after_its_time() -> None:
    runner = StoreRunner(Case("verbs", "one", PAINT, {}, {}))
    runner.services.activities.create("paint", arns=ARNS)
    runner.run()
    assert runner.front.outcome()[:2] == ("FAILED", "States.Timeout")
    verbs = runner.executions
    verbs.start(machine(PAINT), '{"n": 1}', "second", arns=ARNS)
    runner._work_once()
    task = verbs.poll("paint", "bob", wait_seconds=0)
    assert task is not None
    assert json.loads(task.input) == {"n": 1}
    assert verbs.poll("paint", "eve", wait_seconds=0) is None
    verbs.beat(task.token)
    verbs.succeed(task.token, "1")
    runner.work()
    assert verbs.get(MACHINE, "second").status is ExecutionStatus.SUCCEEDED
    assert list(runner.jobs.store.scan(ActivityTask)) == []


# --- ends -------------------------------------------------------------------------------------------------------------


def test_an_ended_execution_is_deleted_with_everything_below_it() -> None:
    runner = run(ASK, answers=SILENT)
    with pytest.raises(ConflictError):
        runner.executions.delete(MACHINE, NAME)
    runner.executions.stop(MACHINE, NAME)
    runner.work()
    assert runner.executions.delete(MACHINE, NAME) > 0
    with pytest.raises(NotFoundError):
        runner.executions.get(MACHINE, NAME)
    assert list(runner.jobs.store.scan(Job)) == []


def test_retention_deletes_the_oldest_executions(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = run(WAIT)
    core = runner.executions.core
    monkeypatch.setattr(core.random, "randrange", lambda _: 0)
    runner.clock.advance(RETENTION / timedelta(seconds=1) + 60)
    runner.executions.start(machine(), "{}", "later", arns=ARNS)
    runner.work()
    assert [each.name for each in runner.executions.list(MACHINE)] == ["later"]


def test_an_execution_is_redriven_only_after_it_failed() -> None:
    runner = run(WAIT)
    with pytest.raises(ConflictError):
        runner.executions.redrive(MACHINE, NAME)


def test_a_machine_that_the_interpreter_cannot_follow_fails_its_execution() -> None:
    runner = StoreRunner(Case("verbs", "one", WAIT, {}))
    broken = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Next": "Nowhere", "Seconds": 0}}}
    runner.executions.start(machine(broken), "{}", NAME, arns=ARNS)
    runner.work()
    execution = runner.executions.get(MACHINE, NAME)
    assert (execution.status, execution.error) == (ExecutionStatus.FAILED, "States.Runtime")
    assert runner.leftovers() == []


# --- map runs ---------------------------------------------------------------------------------------------------------


def distributed(**members: Any) -> dict[str, Any]:
    """A distributed Map that calls a function for each item."""
    task = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:each", "End": True}
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "F",
        "States": {"F": task},
    }
    return {
        "StartAt": "M",
        "States": {"M": {"Type": "Map", "Label": "Each", "ItemProcessor": processor, "End": True, **members}},
    }


def test_a_map_run_counts_its_children() -> None:
    answers = {"each": [1, {"$error": "Boom"}, 3]}
    runner = run(distributed(ToleratedFailureCount=1, MaxConcurrency=1), ["a", "b", "c"], answers=answers)
    assert runner.front.outcome()[0] == "SUCCEEDED"
    (map_run,) = runner.executions.list_map_runs(MACHINE, NAME)
    assert map_run.status is MapRunStatus.SUCCEEDED
    assert (map_run.item_count, map_run.execution_count, map_run.running_count) == (3, 3, 0)
    assert (map_run.succeeded_count, map_run.failed_count, map_run.tolerated_failure_count) == (2, 1, 1)
    children = list(runner.executions.children(MACHINE, map_run.map_run_id))
    assert sorted(each.status for each in children) == ["FAILED", "SUCCEEDED", "SUCCEEDED"]
    assert {each.machine for each in children} == {f"{MACHINE}/Each"}


def test_a_redrive_continues_the_children_that_failed() -> None:
    runner = run(distributed(), ["a", "b"], answers={"each": [{"$error": "Boom"}, 2, 3]})
    assert runner.front.outcome()[0] == "FAILED"
    (map_run,) = runner.executions.list_map_runs(MACHINE, NAME)
    assert map_run.status is MapRunStatus.FAILED
    runner.executions.redrive(MACHINE, NAME)
    runner.work()
    assert runner.front.outcome()[0] == "SUCCEEDED"
    (map_run,) = runner.jobs.store.scan(MapRun)
    assert (map_run.status, map_run.redrive_count, map_run.failed_count) == (MapRunStatus.SUCCEEDED, 1, 0)
    assert len(list(runner.executions.children(MACHINE, map_run.map_run_id))) == 2
    assert runner.leftovers() == []
    runner.executions.delete(MACHINE, NAME)
    assert list(runner.jobs.store.scan(Execution)) == []
    assert list(runner.jobs.store.scan(Job)) == []


def test_the_limits_of_a_running_map_run_change() -> None:
    runner = run(distributed(MaxConcurrency=1), ["a", "b", "c"], answers={"each": [{"$never": True}]})
    (map_run,) = runner.executions.list_map_runs(MACHINE, NAME)
    assert map_run.running_count == 1
    changed = runner.executions.change_map_run(map_run.map_run_id, max_concurrency=2, tolerated_failure_percentage=50)
    assert (changed.max_concurrency, changed.tolerated_failure_percentage) == (2, 50)
    runner.work()
    assert runner.executions.get_map_run(map_run.map_run_id).running_count == 2
    runner.executions.stop(MACHINE, NAME)
    runner.work()
    assert runner.executions.get_map_run(map_run.map_run_id).status is MapRunStatus.ABORTED
    assert {each.status for each in runner.executions.children(MACHINE, map_run.map_run_id)} == {"ABORTED"}
    assert runner.leftovers() == []
    with pytest.raises(ConflictError):
        runner.executions.change_map_run(map_run.map_run_id, max_concurrency=3)


# --- large changes ----------------------------------------------------------------------------------------------------


def test_a_change_of_more_frames_than_a_transaction_takes_is_whole() -> None:
    branches = [
        {"StartAt": f"W{n}", "States": {f"W{n}": {"Type": "Wait", "Seconds": 10, "End": True}}} for n in range(120)
    ]
    runner = run({"StartAt": "P", "States": {"P": {"Type": "Parallel", "Branches": branches, "End": True}}})
    assert runner.front.outcome() == ("SUCCEEDED", None, None, [{}] * 120)
    history = runner.front.history()
    assert [event_id for event_id, _, _, _ in history] == list(range(1, len(history) + 1))
    assert runner.leftovers() == []


def test_a_failure_cuts_more_branches_than_a_transaction_takes() -> None:
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Boom"}}}
    waits = [{"StartAt": f"W{n}", "States": {f"W{n}": {"Type": "Wait", "Seconds": 9, "End": True}}} for n in range(120)]
    parallel = {"Type": "Parallel", "Branches": [*waits, fails], "End": True}
    runner = run({"StartAt": "P", "States": {"P": parallel}})
    assert runner.front.outcome()[:2] == ("FAILED", "Boom")
    history = runner.front.history()
    assert [event_id for event_id, _, _, _ in history] == list(range(1, len(history) + 1))
    assert [kind for _, _, kind, _ in history].count("WaitStateAborted") == 120
    runner.executions.redrive(MACHINE, NAME)
    runner.work()
    assert runner.front.outcome()[:2] == ("FAILED", "Boom")


# --- express ----------------------------------------------------------------------------------------------------------


@function(name="doubled", inline=True)
def doubled(event: Any) -> Any:
    """A function that runs in the process of the execution."""
    if event["n"] < 0:
        raise ValueError("negative")
    return 2 * event["n"]


DOUBLE = {
    "StartAt": "W",
    "States": {
        "W": {"Type": "Wait", "Seconds": 2, "Next": "M"},
        "M": {
            "Type": "Map",
            "ItemProcessor": {
                "StartAt": "D",
                "States": {
                    "D": {
                        "Type": "Task",
                        "Resource": "arn:aws:lambda:us-east-1:000000000000:function:doubled",
                        "End": True,
                    }
                },
            },
            "End": True,
        },
    },
}


def test_an_express_execution_runs_here_and_leaves_nothing() -> None:
    runner = StoreRunner(Case("verbs", "one", WAIT, {}))
    payload = json.dumps([{"n": n} for n in range(5)])
    result = runner.executions.run_express(machine(DOUBLE, MachineType.EXPRESS), payload, "sync", arns=ARNS)
    assert (result.execution.status, result.execution.output) == (ExecutionStatus.SUCCEEDED, "[0,2,4,6,8]")
    assert result.billed_ms in range(2_000, 2_200)
    assert runner.jobs.store.count(Execution.by_machine(machine=MACHINE)) == 0
    assert workflows.name not in [each.queue_name for each in runner.jobs.queries.list_queues()]


def test_an_express_execution_fails_with_the_error_of_its_function() -> None:
    runner = StoreRunner(Case("verbs", "one", WAIT, {}))
    express = machine(DOUBLE, MachineType.EXPRESS)
    result = runner.executions.run_express(express, '[{"n": -1}]', arns=ARNS)
    assert (result.execution.status, result.execution.error) == (ExecutionStatus.FAILED, "ValueError")
    assert json.loads(result.execution.cause or "")["errorMessage"] == "negative"


def test_an_express_execution_takes_five_minutes_at_most() -> None:
    runner = StoreRunner(Case("verbs", "one", WAIT, {}))
    long = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 400, "End": True}}}
    result = runner.executions.run_express(machine(long, MachineType.EXPRESS), "{}", arns=ARNS)
    assert result.execution.status is ExecutionStatus.TIMED_OUT
    assert result.billed_ms == 300_000
    runner.executions.start(machine(long, MachineType.EXPRESS), "{}", "later", arns=ARNS)
    runner.work()
    assert runner.executions.get(MACHINE, "later").status is ExecutionStatus.TIMED_OUT
    assert list(runner.executions.history(MACHINE, "later")) == []


def test_what_cannot_be_stored_fails_the_execution() -> None:
    broken = {"Type": "Pass", "Result": "\ud800", "End": True}
    runner = run({"StartAt": "P", "States": {"P": broken}})
    status, error, cause, _ = runner.front.outcome()
    assert (status, error) == ("FAILED", "States.Runtime")
    assert "cannot be stored" in (cause or "")
    assert runner.leftovers() == []


def test_a_cause_has_the_length_that_step_functions_allows() -> None:
    task = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:loud", "End": True}
    answers = {"loud": [{"$error": "E" * 300, "$cause": "c" * 100_000}]}
    runner = run({"StartAt": "T", "States": {"T": task}}, answers=answers)
    _, error, cause, _ = runner.front.outcome()
    assert (len(error or ""), len(cause or "")) == (256, 32_768)


def test_many_heartbeats_before_a_large_change_fit() -> None:
    fails = {"StartAt": "F", "States": {"F": {"Type": "Wait", "Seconds": 1, "Next": "X"}, "X": {"Type": "Fail"}}}
    waits = [{"StartAt": f"W{n}", "States": {f"W{n}": {"Type": "Wait", "Seconds": 9, "End": True}}} for n in range(45)]
    parallel = {"Type": "Parallel", "Branches": [ASK, fails, *waits], "End": True}
    runner = StoreRunner(Case("verbs", "one", {"StartAt": "P", "States": {"P": parallel}}, {}, answers=SILENT))
    runner.front.start(runner.case)
    runner._work_once()
    token = runner.executions.core.token_of(runner.executions.get(MACHINE, NAME), "0.0", 1)
    for _ in range(39):
        runner.executions.beat(token)
    runner.clock.advance(2)
    runner.work()
    assert runner.front.outcome()[0] == "FAILED"
    history = runner.front.history()
    assert [event_id for event_id, _, _, _ in history] == list(range(1, len(history) + 1))
    assert runner.leftovers() == []


def test_an_end_between_the_answers_of_one_change_leaves_nothing() -> None:
    both = [
        {"StartAt": "D", "States": {"D": DOUBLE["States"]["M"]["ItemProcessor"]["States"]["D"]}}  # type: ignore[index]
        for _ in range(3)
    ]
    parallel = {"StartAt": "P", "States": {"P": {"Type": "Parallel", "Branches": both, "End": True}}}
    runner = run(parallel, {"n": -1})
    assert runner.front.outcome()[:2] == ("FAILED", "ValueError")
    assert runner.leftovers() == []


class _NoMachines:
    """Every machine is missing, or is being deleted."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def runnable(self, arn: str) -> RunnableMachine:
        raise self._error


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (NotFoundError("no machine"), "StepFunctions.StateMachineDoesNotExistException"),
        (MachineDeletingError("going"), "StepFunctions.StateMachineDeletingException"),
    ],
)
def test_a_nested_machine_that_cannot_start_fails_the_state(problem: Exception, error: str) -> None:
    nested = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync",
        "Parameters": {"StateMachineArn": ARNS.machine("inner")},
        "End": True,
    }
    runner = StoreRunner(Case("verbs", "one", {"StartAt": "N", "States": {"N": nested}}, {}))
    runner.executions.core.machines = _NoMachines(problem)
    runner.run()
    assert runner.front.outcome()[:2] == ("FAILED", error)
