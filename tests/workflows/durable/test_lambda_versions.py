"""Versions and aliases of functions, through boto3's client of Lambda and in state machines."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import pytest
from aws_durable_execution_sdk_python import DurableContext, durable_execution
from mypy_boto3_lambda import LambdaClient
from tests.workflows.durable.driving import Driver
from tests.workflows.durable.lambda_serving import REGION, refused

from jobtable.app import Services, open_jobs
from jobtable.jobs.worker.worker import Worker
from jobtable.workflows import functions
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import ExecutionStatus, MachineType
from jobtable.workflows.asl.verbs import RunnableMachine
from jobtable.workflows.functions import DurableConfig, function
from jobtable.workflows.table_and_queues import QUEUES, TASK_MODULES

ARN = f"arn:aws:lambda:{REGION}:000000000000:function"
SOURCE = """
from jobtable.workflows.functions import function


@function(name="changing_module", inline=True, memory_mb=256)
def answer(event, context):
    return [{answer!r}, context.function_version, context.invoked_function_arn]
"""
Load = Callable[[str], None]


@function(name="client_of", inline=True, durable=DurableConfig(execution_timeout_seconds=60))
@durable_execution
def client_of(_event: Any, context: DurableContext) -> Any:
    about: Any = context.lambda_context
    return [about.client_context.custom, about.function_version]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Writes a module that registers a function with another answer, and imports it, as a new process would."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(functions, "_REGISTERED", dict(functions._REGISTERED))

    def load(answer: str) -> None:
        (tmp_path / "changing_module.py").write_text(SOURCE.format(answer=answer))
        sys.modules.pop("changing_module", None)
        functions._REGISTERED.pop("changing_module", None)
        functions._digest_of.cache_clear()
        invalidate_caches()
        import_module("changing_module")

    return load


def ask(client: LambdaClient, name: str, **request: Any) -> tuple[Any, str | None]:
    found = client.invoke(FunctionName=name, **request)
    return json.loads(found["Payload"].read()), found.get("ExecutedVersion")


def test_a_version_runs_what_was_published_and_nothing_else(client: LambdaClient, worker: Driver, load: Load) -> None:
    load("first")
    first = client.publish_version(FunctionName="changing_module", Description="the first one")
    assert (first["Version"], first["FunctionArn"]) == ("1", f"{ARN}:changing_module:1")
    assert (first["Description"], first["MemorySize"]) == ("the first one", 256)
    assert client.publish_version(FunctionName="changing_module")["Version"] == "1"
    assert ask(client, "changing_module:1") == (["first", "1", f"{Arns().function('changing_module')}:1"], "1")
    load("second")
    second = client.publish_version(FunctionName="changing_module")
    assert second["Version"] == "2"
    assert second["CodeSha256"] != first["CodeSha256"]
    answers = {qualifier: ask(client, "changing_module", Qualifier=qualifier) for qualifier in ("2", "$LATEST", "1")}
    assert [(answers[each][0][0], answers[each][1]) for each in ("2", "$LATEST")] == [
        ("second", "2"),
        ("second", "$LATEST"),
    ]
    assert answers["1"][0]["errorType"] == "Runtime.ImportModuleError"
    assert "changing_module:1: changing_module has changed since the version" in answers["1"][0]["errorMessage"]
    load("first")
    assert ask(client, "changing_module:1")[0][0] == "first"


def test_versions_are_listed_and_described(client: LambdaClient, load: Load) -> None:
    for answer in ("first", "second", "third"):
        load(answer)
        client.publish_version(FunctionName="changing_module")
    pages = client.get_paginator("list_versions_by_function").paginate(
        FunctionName="changing_module", PaginationConfig={"PageSize": 2}
    )
    listed = [[each["Version"] for each in page["Versions"]] for page in pages]
    assert listed == [["$LATEST", "1", "2"], ["3"]]
    described = client.get_function_configuration(FunctionName="changing_module", Qualifier="2")
    assert (described["Version"], described["FunctionArn"]) == ("2", f"{ARN}:changing_module:2")
    assert client.get_function(FunctionName="changing_module:$LATEST")["Configuration"]["Version"] == "$LATEST"
    everything = client.list_functions(FunctionVersion="ALL")["Functions"]
    mine = [each["Version"] for each in everything if each["FunctionName"] == "changing_module"]
    assert mine == ["$LATEST", "1", "2", "3"]


@pytest.mark.parametrize("qualifier", ["7", "live", "0", "$LATEST.PUBLISHED", "99999999999"])
def test_an_unknown_qualifier_is_no_function(client: LambdaClient, qualifier: str) -> None:
    missing = ("ResourceNotFoundException", 404, f"Function not found: {ARN}:double:{qualifier}")
    assert refused(client.invoke, FunctionName="double", Qualifier=qualifier) == missing
    assert refused(client.get_function, FunctionName=f"double:{qualifier}") == missing
    assert (
        refused(client.list_durable_executions_by_function, FunctionName="waits", Qualifier=qualifier)[0] == missing[0]
    )


def test_an_alias_names_a_version_and_may_divide_its_calls(client: LambdaClient, worker: Driver, load: Load) -> None:
    name = "changing_module"
    load("only")
    client.publish_version(FunctionName=name)
    made = client.create_alias(FunctionName=name, Name="live", FunctionVersion="1", Description="for all")
    assert (made["AliasArn"], made["FunctionVersion"]) == (f"{ARN}:{name}:live", "1")
    assert ask(client, f"{name}:live")[1] == "1"
    error = refused(client.create_alias, FunctionName=name, Name="live", FunctionVersion="1")
    assert error == ("ResourceConflictException", 409, f"Alias already exists: {ARN}:{name}:live")
    load("other")
    client.publish_version(FunctionName=name)
    wanted: Any = {"AdditionalVersionWeights": {"2": 1.0}}
    changed = client.update_alias(FunctionName=name, Name="live", RoutingConfig=wanted, RevisionId=made["RevisionId"])
    assert (changed["RoutingConfig"], changed["FunctionVersion"]) == (wanted, "1")
    assert ask(client, f"{name}:live")[1] == "2"
    stale = refused(client.update_alias, FunctionName=name, Name="live", RevisionId=made["RevisionId"])
    assert stale[:2] == ("PreconditionFailedException", 412)
    found = client.get_alias(FunctionName=name, Name="live")
    assert (found["RevisionId"], found["Description"]) == (changed["RevisionId"], "for all")
    client.create_alias(FunctionName=name, Name="beta", FunctionVersion="2")
    listed = [[each["Name"] for each in client.list_aliases(FunctionName=name, **more)["Aliases"]] for more in _FILTERS]
    assert listed == [["beta", "live"], ["live"], ["beta", "live"]]
    client.delete_alias(FunctionName=name, Name="live")
    client.delete_alias(FunctionName=name, Name="live")
    assert refused(client.get_alias, FunctionName=name, Name="live")[0] == "ResourceNotFoundException"
    assert refused(client.invoke, FunctionName=f"{name}:live")[0] == "ResourceNotFoundException"


_FILTERS: list[dict[str, Any]] = [{}, {"FunctionVersion": "1"}, {"FunctionVersion": "2"}]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"FunctionVersion": "9"}, "ResourceNotFoundException"),
        ({"FunctionVersion": "one"}, "ValidationException"),
        ({"RoutingConfig": {"AdditionalVersionWeights": {"1": 0.5}}}, "InvalidParameterValueException"),
        ({"RoutingConfig": {"AdditionalVersionWeights": {"2": 1.5}}}, "InvalidParameterValueException"),
        ({"RoutingConfig": {"AdditionalVersionWeights": {"3": 0.5}}}, "ResourceNotFoundException"),
        ({"FunctionVersion": "$LATEST", "RoutingConfig": {"AdditionalVersionWeights": {"1": 0.5}}}, "InvalidParameter"),
    ],
)
def test_an_alias_of_nothing_is_refused(client: LambdaClient, load: Load, request_: dict[str, Any], error: str) -> None:
    for answer in ("first", "second"):
        load(answer)
        client.publish_version(FunctionName="changing_module")
    wanted: Any = {"FunctionName": "changing_module", "Name": "live", "FunctionVersion": "1", **request_}
    assert refused(client.create_alias, **wanted)[0].startswith(error)
    assert client.list_aliases(FunctionName="changing_module")["Aliases"] == []


def test_publishing_checks_what_is_published(client: LambdaClient, load: Load) -> None:
    load("first")
    code = client.publish_version(FunctionName="changing_module")["CodeSha256"]
    assert base64.b64decode(code)
    assert client.publish_version(FunctionName="changing_module", CodeSha256=code)["Version"] == "1"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"CodeSha256": "other"}, "InvalidParameterValueException"),
        ({"RevisionId": "other"}, "PreconditionFailedException"),
        ({"PublishTo": "LATEST_PUBLISHED"}, "InvalidParameterValueException"),
    ]
    for more, error in wrong:
        assert refused(client.publish_version, FunctionName="changing_module", **more)[0] == error
    assert refused(client.publish_version, FunctionName="nobody")[0] == "ResourceNotFoundException"


def test_a_durable_execution_stays_with_its_version_and_learns_of_its_client(
    client: LambdaClient, worker: Driver, tmp_path: Path
) -> None:
    client.publish_version(FunctionName="client_of")
    client.create_alias(FunctionName="client_of", Name="live", FunctionVersion="1")
    about = base64.b64encode(json.dumps({"custom": {"a": 1}}).encode()).decode()
    answer = client.invoke(FunctionName="client_of:live", ClientContext=about, DurableExecutionName="pinned")
    assert json.loads(answer["Payload"].read()) == [{"a": 1}, "1"]
    arn = answer["DurableExecutionArn"]
    assert arn.startswith(f"{ARN}:client_of:1/durable-execution/pinned/")
    assert client.get_durable_execution(DurableExecutionArn=arn)["Version"] == "1"
    other = arn.replace(":1/", ":$LATEST/")
    assert refused(client.get_durable_execution, DurableExecutionArn=other)[0] == "ResourceNotFoundException"
    client.invoke(FunctionName="client_of", ClientContext=about, DurableExecutionName="latest")
    for qualifier, names in (("1", ["pinned"]), ("live", ["pinned"]), ("$LATEST", ["latest"])):
        found = client.list_durable_executions_by_function(FunctionName="client_of", Qualifier=qualifier)
        assert [each["DurableExecutionName"] for each in found["DurableExecutions"]] == names


def test_a_state_machine_calls_the_version_that_it_names(
    client: LambdaClient, services: Services, load: Load, tmp_path: Path
) -> None:
    load("first")
    client.publish_version(FunctionName="changing_module")
    client.create_alias(FunctionName="changing_module", Name="live", FunctionVersion="1")
    prefix = Arns().function("changing_module")
    invoking = {"FunctionName": prefix, "Qualifier": "live"}
    states: dict[str, Any] = {
        "Direct": {"Type": "Task", "Resource": f"{prefix}:1", "Next": "Invoked"},
        "Invoked": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": invoking,
            "ResultSelector": {"version.$": "$.ExecutedVersion", "answer.$": "$.Payload[1]"},
            "Next": "Missing",
        },
        "Missing": {"Type": "Task", "Resource": f"{prefix}:9", "End": True},
    }
    _ = services.executions
    machine = RunnableMachine("versioned", json.dumps({"StartAt": "Direct", "States": states}))
    ended = services.executions.run_express(
        RunnableMachine("versioned", machine.definition, MachineType.EXPRESS), "{}", arns=Arns()
    ).execution
    assert ended.error == "Lambda.ResourceNotFoundException"
    assert ended.cause == f"Function not found: {prefix}:9"
    services.executions.start(machine, "{}", "one", arns=Arns())
    opener = partial(open_jobs, f"file:{tmp_path}/jobs.db")
    Worker(opener, list(QUEUES), slots=1, until_empty=True, mode="inline", preload=TASK_MODULES).run()
    assert services.executions.get("versioned", "one").status is ExecutionStatus.FAILED
    history = list(services.executions.history("versioned", "one"))
    left = {each.details["stateExitedEventDetails"]["name"]: each for each in history if "Exited" in each.type}
    outputs = {name: json.loads(each.details["stateExitedEventDetails"]["output"]) for name, each in left.items()}
    assert outputs == {"Direct": ["first", "1", f"{prefix}:1"], "Invoked": {"version": "1", "answer": "1"}}
    assert [each.type for each in history[-2:]] == ["LambdaFunctionStartFailed", "ExecutionFailed"]
