"""Executions, activities and map runs through boto3, with a worker that runs what is due when a test says so."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from mypy_boto3_stepfunctions import SFNClient
from tests.workflows.asl.aws_api.refusing import ARN, ROLE, refused

from jobtable.app import Services
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.workflows.asl.aws_api import activity_operations
from jobtable.workflows.functions import function
from jobtable.workflows.table_and_queues import QUEUES

PASS = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": {"a": 1}, "End": True}}}
ACTIVITY = {"StartAt": "Ask", "States": {"Ask": {"Type": "Task", "Resource": f"{ARN}:activity:ask", "End": True}}}
FAILING: dict[str, Any] = {
    "StartAt": "Before",
    "States": {
        "Before": {"Type": "Pass", "Next": "Check"},
        "Check": {"Type": "Task", "Resource": "arn:aws:lambda:eu-central-1:000000000000:function:check", "End": True},
    },
}
BROKEN = {"is_broken": True}


@function(name="check", inline=True)
def check(event: Any) -> str:
    if BROKEN["is_broken"]:
        raise ValueError("it is broken")
    return "checked"


def work(services: Services) -> None:
    """Run all jobs that are ready, and those that follow."""
    while leases := [
        lease
        for queue in QUEUES
        for lease in services.engine.claim(queue, limit=10, instance_id="worker", lease_seconds=30)
    ]:
        for lease in leases:
            context = JobContext(services.engine, lease)
            report = run_task(lease.job.definition, StopFlag(), partial(_same, context))
            context.close()
            services.engine.finish(lease, report.outcome())


def _same(context: JobContext) -> JobContext:
    return context


def create(states: SFNClient, definition: Any, name: str = "orders", **members: Any) -> str:
    made = states.create_state_machine(name=name, definition=json.dumps(definition), roleArn=ROLE, **members)
    return made["stateMachineArn"]


def start(states: SFNClient, machine: str, name: str, text: str = "{}") -> str:
    return states.start_execution(stateMachineArn=machine, name=name, input=text)["executionArn"]


# --- start, describe, history ---------------------------------------------------------------------------------------


def test_an_execution_is_described(states: SFNClient, services: Services) -> None:
    machine = create(states, PASS)
    arn = start(states, machine, "first", '{"in": 1}')
    assert arn == f"{ARN}:execution:orders:first"
    running = states.describe_execution(executionArn=arn)
    assert (running["status"], running["input"]) == ("RUNNING", '{"in": 1}')
    work(services)
    ended = states.describe_execution(executionArn=arn)
    assert (ended["status"], ended["output"], ended["name"]) == ("SUCCEEDED", '{"a":1}', "first")
    assert (ended["stateMachineArn"], ended["redriveStatus"]) == (machine, "NOT_REDRIVABLE")
    assert ended["startDate"] <= ended["stopDate"]
    bare = states.describe_execution(executionArn=arn, includedData="METADATA_ONLY")
    assert not {"input", "output"} & set(bare)
    missing = f"{ARN}:execution:orders:none"
    error = refused(states.describe_execution, executionArn=missing)
    assert error == ("ExecutionDoesNotExist", f"Execution Does Not Exist: '{missing}'")


def test_a_history_comes_in_pages_either_way_round(states: SFNClient, services: Services) -> None:
    arn = start(states, create(states, FAILING), "first")
    work(services)
    pages = states.get_paginator("get_execution_history").paginate(executionArn=arn, PaginationConfig={"PageSize": 2})
    listed = [page["events"] for page in pages]
    assert all(len(page) == 2 for page in listed[:-1])
    events = [event for page in listed for event in page]
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert [event["type"] for event in events] == [
        "ExecutionStarted",
        "PassStateEntered",
        "PassStateExited",
        "TaskStateEntered",
        "LambdaFunctionScheduled",
        "LambdaFunctionStarted",
        "LambdaFunctionFailed",
        "ExecutionFailed",
    ]
    newest = states.get_execution_history(executionArn=arn, reverseOrder=True)["events"]
    assert newest == events[::-1]
    bare = states.get_execution_history(executionArn=arn, includeExecutionData=False)["events"]
    assert "input" not in set(bare[0]["executionStartedEventDetails"])
    assert refused(states.get_execution_history, executionArn=arn, nextToken="abc")[0] == "InvalidToken"


def test_a_name_is_used_once(states: SFNClient, services: Services) -> None:
    machine = create(states, PASS)
    arn = start(states, machine, "first", '{"n": 1}')
    assert start(states, machine, "first", '{"n": 1}') == arn
    taken = ("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'")
    request = {"stateMachineArn": machine, "name": "first"}
    assert refused(states.start_execution, **request, input='{"n": 2}') == taken
    work(services)
    assert refused(states.start_execution, **request, input='{"n": 1}') == taken


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"input": "{"}, "InvalidExecutionInput"),
        ({"name": "a/b"}, "InvalidName"),
        ({"input": '"' + "x" * 262_144 + '"'}, "ValidationException"),
        ({"stateMachineArn": f"{ARN}:stateMachine:none"}, "StateMachineDoesNotExist"),
        ({"stateMachineArn": f"{ARN}:stateMachine:orders:9"}, "StateMachineDoesNotExist"),
        ({"stateMachineArn": "orders"}, "InvalidArn"),
    ],
)
def test_a_start_is_refused(states: SFNClient, request_: dict[str, str], code: str) -> None:
    machine = create(states, PASS)
    assert refused(states.start_execution, **{"stateMachineArn": machine, **request_})[0] == code
    assert states.list_executions(stateMachineArn=machine)["executions"] == []


# --- lists, versions, aliases ---------------------------------------------------------------------------------------


def test_executions_are_listed_by_status_version_and_alias(states: SFNClient, services: Services) -> None:
    machine = create(states, PASS, publish=True)
    states.update_state_machine(stateMachineArn=machine, definition=json.dumps(ACTIVITY), publish=True)
    states.create_activity(name="ask")
    routing: Any = [{"stateMachineVersionArn": f"{machine}:1", "weight": 100}]
    alias = states.create_state_machine_alias(name="live", routingConfiguration=routing)["stateMachineAliasArn"]
    start(states, machine, "plain")
    start(states, f"{machine}:1", "version")
    aliased = start(states, alias, "alias")
    work(services)
    start(states, f"{machine}:2", "second")

    def listed(arn: str = machine, **filters: Any) -> list[str]:
        pages = states.get_paginator("list_executions").paginate(
            stateMachineArn=arn, PaginationConfig={"PageSize": 1}, **filters
        )
        return [each["name"] for page in pages for each in page["executions"]]

    assert listed() == ["second", "alias", "version", "plain"]
    assert listed(statusFilter="SUCCEEDED") == ["alias", "version"]
    assert listed(statusFilter="RUNNING") == ["second", "plain"]
    assert listed(f"{machine}:1") == ["alias", "version"]
    assert listed(alias) == ["alias"]
    assert listed(redriveFilter="REDRIVEN") == []
    assert listed(redriveFilter="NOT_REDRIVEN") == listed()
    found = states.describe_execution(executionArn=aliased)
    assert (found["stateMachineVersionArn"], found["stateMachineAliasArn"]) == (f"{machine}:1", alias)
    assert refused(states.list_executions)[0] == "ValidationException"


def test_an_execution_keeps_its_definition(states: SFNClient, services: Services) -> None:
    machine = create(states, PASS)
    arn = start(states, machine, "first")
    states.update_state_machine(stateMachineArn=machine, definition=json.dumps(ACTIVITY))
    found = states.describe_state_machine_for_execution(executionArn=arn)
    assert json.loads(found["definition"]) == PASS
    work(services)
    assert states.describe_execution(executionArn=arn)["status"] == "SUCCEEDED"


# --- stop, redrive, delete ------------------------------------------------------------------------------------------


def test_an_execution_is_stopped_once(states: SFNClient, services: Services) -> None:
    states.create_activity(name="ask")
    arn = start(states, create(states, ACTIVITY), "first")
    work(services)
    stopped = states.stop_execution(executionArn=arn, error="Sold", cause="out")
    again = states.stop_execution(executionArn=arn, error="Other")
    assert again["stopDate"] == stopped["stopDate"]
    found = states.describe_execution(executionArn=arn)
    assert (found["status"], found["error"], found["cause"]) == ("ABORTED", "Sold", "out")
    last = states.get_execution_history(executionArn=arn, reverseOrder=True, maxResults=1)["events"]
    assert [event["type"] for event in last] == ["ExecutionAborted"]


def test_a_failed_execution_is_redriven(states: SFNClient, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = create(states, FAILING)
    arn = start(states, machine, "first")
    assert refused(states.redrive_execution, executionArn=arn)[0] == "ExecutionNotRedrivable"
    work(services)
    assert states.describe_execution(executionArn=arn)["redriveStatus"] == "REDRIVABLE"
    monkeypatch.setitem(BROKEN, "is_broken", False)
    redriven = states.redrive_execution(executionArn=arn, clientToken="once")
    again = states.redrive_execution(executionArn=arn, clientToken="once")
    assert again["redriveDate"] == redriven["redriveDate"]
    work(services)
    found = states.describe_execution(executionArn=arn)
    assert (found["status"], found["output"], found["redriveCount"]) == ("SUCCEEDED", '"checked"', 1)
    listed = states.list_executions(stateMachineArn=machine, redriveFilter="REDRIVEN")["executions"]
    assert [each["name"] for each in listed] == ["first"]
    code, message = refused(states.redrive_execution, executionArn=arn)
    assert (code, message) == ("ExecutionNotRedrivable", "Execution is SUCCEEDED and cannot be redriven")


def test_a_deleted_machine_stops_its_executions(states: SFNClient, services: Services) -> None:
    states.create_activity(name="ask")
    machine = create(states, ACTIVITY)
    arn = start(states, machine, "first")
    work(services)
    states.delete_state_machine(stateMachineArn=machine)
    work(services)
    assert states.describe_execution(executionArn=arn)["status"] == "ABORTED"
    assert states.list_state_machines()["stateMachines"] == []


# --- activities and tokens ------------------------------------------------------------------------------------------


def test_an_activity_is_polled_and_answered(states: SFNClient, services: Services) -> None:
    activity = states.create_activity(name="ask")["activityArn"]
    arn = start(states, create(states, ACTIVITY), "first", '{"q": 1}')
    work(services)
    task = states.get_activity_task(activityArn=activity, workerName="ada")
    assert json.loads(task["input"]) == {"q": 1}
    token = task["taskToken"]
    states.send_task_heartbeat(taskToken=token)
    assert refused(states.send_task_success, taskToken=token, output="{")[0] == "InvalidOutput"
    states.send_task_success(taskToken=token, output='{"answer": 2}')
    for call in (states.send_task_heartbeat, states.send_task_failure):
        assert refused(call, taskToken=token)[0] == "TaskTimedOut"
    work(services)
    found = states.describe_execution(executionArn=arn)
    assert (found["status"], json.loads(found["output"])) == ("SUCCEEDED", {"answer": 2})
    started = [
        event["activityStartedEventDetails"]
        for event in states.get_execution_history(executionArn=arn)["events"]
        if event["type"] == "ActivityStarted"
    ]
    assert started == [{"workerName": "ada"}]


def test_a_failed_activity_fails_its_execution(states: SFNClient, services: Services) -> None:
    activity = states.create_activity(name="ask")["activityArn"]
    arn = start(states, create(states, ACTIVITY), "first")
    work(services)
    token = states.get_activity_task(activityArn=activity)["taskToken"]
    states.send_task_failure(taskToken=token, error="Refused", cause="no time")
    work(services)
    found = states.describe_execution(executionArn=arn)
    assert (found["status"], found["error"], found["cause"]) == ("FAILED", "Refused", "no time")


@pytest.mark.parametrize("token", ["x", "AAAA", "A" * 1000])
def test_a_forged_token_is_refused(states: SFNClient, token: str) -> None:
    assert refused(states.send_task_success, taskToken=token, output="1") == (
        "InvalidToken",
        "Invalid Token: 'Invalid token'",
    )


def test_a_poll_without_a_task_ends(states: SFNClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_operations, "_POLL_SECONDS", 0.05)
    activity = states.create_activity(name="ask")["activityArn"]
    assert set(states.get_activity_task(activityArn=activity)) <= {"taskToken", "ResponseMetadata"}


# --- map runs -------------------------------------------------------------------------------------------------------

DISTRIBUTED = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "Label": "Each",
            "MaxConcurrency": 2,
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                "StartAt": "Ask",
                "States": ACTIVITY["States"],
            },
            "End": True,
        }
    },
}


def test_a_map_run_is_described_listed_and_changed(states: SFNClient, services: Services) -> None:
    activity = states.create_activity(name="ask")["activityArn"]
    arn = start(states, create(states, DISTRIBUTED), "first", "[1, 2, 3]")
    work(services)
    (listed,) = states.list_map_runs(executionArn=arn)["mapRuns"]
    run = listed["mapRunArn"]
    assert run.startswith(f"{ARN}:mapRun:orders/Each:")
    found = states.describe_map_run(mapRunArn=run)
    assert (found["status"], found["maxConcurrency"], found["executionArn"]) == ("RUNNING", 2, arn)
    assert found["itemCounts"]["total"] == 3
    states.update_map_run(mapRunArn=run, maxConcurrency=3, toleratedFailureCount=1)
    work(services)
    changed = states.describe_map_run(mapRunArn=run)
    assert (changed["maxConcurrency"], changed["toleratedFailureCount"]) == (3, 1)
    children = states.list_executions(mapRunArn=run, statusFilter="RUNNING")["executions"]
    assert len(children) == 3
    assert {child["mapRunArn"] for child in children} == {run}
    for _ in range(3):
        task = states.get_activity_task(activityArn=activity)
        states.send_task_success(taskToken=task["taskToken"], output=task["input"])
    work(services)
    ended = states.describe_map_run(mapRunArn=run)
    assert (ended["status"], ended["executionCounts"]["succeeded"]) == ("SUCCEEDED", 3)
    assert json.loads(states.describe_execution(executionArn=arn)["output"]) == [1, 2, 3]
    assert refused(states.update_map_run, mapRunArn=run, maxConcurrency=1)[0] == "ValidationException"
    assert refused(states.describe_map_run, mapRunArn=run + "0")[0] == "ResourceNotFound"


# --- express executions ---------------------------------------------------------------------------------------------


def test_an_express_execution_answers_with_its_end(states: SFNClient) -> None:
    machine = create(states, PASS, type="EXPRESS")
    found = states.start_sync_execution(stateMachineArn=machine, name="first", input='{"in": 1}')
    assert (found["status"], found["output"], found["input"]) == ("SUCCEEDED", '{"a":1}', '{"in": 1}')
    assert found["executionArn"].startswith(f"{ARN}:express:orders:first:")
    assert found["startDate"] <= found["stopDate"]
    assert found["billingDetails"]["billedDurationInMilliseconds"] >= 100
    bare = states.start_sync_execution(stateMachineArn=machine, includedData="METADATA_ONLY")
    assert not {"input", "output"} & set(bare)
    for call in (states.describe_execution, states.get_execution_history, states.stop_execution):
        assert refused(call, executionArn=found["executionArn"])[0] == "InvalidArn"
    assert refused(states.list_executions, stateMachineArn=machine)[0] == "StateMachineTypeNotSupported"


def test_an_express_execution_that_fails_says_why(states: SFNClient) -> None:
    fail = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Sold", "Cause": "out"}}}
    found = states.start_sync_execution(stateMachineArn=create(states, fail, type="EXPRESS"))
    assert (found["status"], found["error"], found["cause"]) == ("FAILED", "Sold", "out")
    standard = create(states, PASS, "standard")
    assert refused(states.start_sync_execution, stateMachineArn=standard)[0] == "StateMachineTypeNotSupported"


def test_a_task_is_run_where_it_is_awaited(states: SFNClient, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = create(states, FAILING, type="EXPRESS")
    task = json.dumps({**FAILING["States"]["Check"], "Catch": [{"ErrorEquals": ["ValueError"], "Next": "Tell"}]})
    failed = states.start_sync_execution(stateMachineArn=machine)
    assert (failed["status"], failed["error"]) == ("FAILED", "ValueError")
    caught = states.test_state(definition=task, roleArn=ROLE)
    assert (caught["status"], caught["error"], caught["nextState"]) == ("CAUGHT_ERROR", "ValueError", "Tell")
    monkeypatch.setitem(BROKEN, "is_broken", False)
    assert states.start_sync_execution(stateMachineArn=machine)["output"] == '"checked"'
    tested = states.test_state(definition=task, roleArn=ROLE, inspectionLevel="DEBUG")
    assert (tested["status"], tested["output"]) == ("SUCCEEDED", '"checked"')
    assert tested["inspectionData"]["result"] == '"checked"'
