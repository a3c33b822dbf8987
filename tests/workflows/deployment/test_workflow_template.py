"""The template of machines and functions: what cfn-lint says, what the policies allow, and what the definitions say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.workflows.deployment import handlers

from jobtable.dynamodb.template import table_resource
from jobtable.errors import DefinitionError
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine_definition import check_definition
from jobtable.workflows.deployment.workflow_template import MachineToDeploy, workflow_template
from jobtable.workflows.functions import Function, functions

Json = dict[str, Any]
PREFIX = "prod-"
FUNCTIONS = [each for each in functions() if each.path.startswith(handlers.__name__)]
LAMBDA = "arn:aws:lambda:us-east-1:000000000000:function:"
STATES = "arn:aws:states:us-east-1:000000000000:"
TABLES = {table.name: table_resource(table, PREFIX) for table in (handlers.orders, handlers.unused)}


def task(resource: str, arguments: Json | None = None, state: str = "Do") -> Json:
    """A machine of one task."""
    parameters = {} if arguments is None else {"Parameters": arguments}
    return {"StartAt": state, "States": {state: {"Type": "Task", "Resource": resource, **parameters, "End": True}}}


def service(name: str, arguments: Json, state: str = "Do") -> Json:
    """A machine that asks a service."""
    return task(f"arn:aws:states:::{name}", arguments, state)


DISTRIBUTED: Json = {
    "Comment": "Ümläute, ${} and {% %} stay as they are",
    "StartAt": "Lines",
    "States": {
        "Lines": {
            "Type": "Map",
            "ItemReader": {
                "Resource": "arn:aws:states:::s3:getObject",
                "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"},
                "Parameters": {"Bucket": "shop-files", "Key": "lines.csv"},
            },
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                **task(f"{LAMBDA}deployed-charge"),
            },
            "ResultWriter": {
                "Resource": "arn:aws:states:::s3:putObject",
                "Parameters": {"Bucket": "shop-files", "Prefix": "results"},
            },
            "Next": "Both",
        },
        "Both": {
            "Type": "Parallel",
            "Branches": [
                service(
                    "states:startExecution.sync:2",
                    {"StateMachineArn": f"{STATES}stateMachine:orders", "Input": {"from": "lines"}},
                    "Order",
                ),
                service(
                    "sqs:sendMessage.waitForTaskToken",
                    {
                        "QueueUrl": "https://sqs.us-east-1.amazonaws.com/000000000000/approvals",
                        "MessageBody": {"token.$": "$$.Task.Token"},
                    },
                    "Approve",
                ),
                task(f"{STATES}activity:pack", state="Pack"),
            ],
            "End": True,
        },
    },
}
MACHINES: dict[str, tuple[Json, set[str]]] = {
    "function": (task(f"{LAMBDA}deployed-charge"), {"lambda:InvokeFunction"}),
    "durable": (
        service("lambda:invoke", {"FunctionName": "deployed-settle", "Payload": {}}),
        {"lambda:InvokeFunction"},
    ),
    "jsonata": (
        {
            "QueryLanguage": "JSONata",
            "StartAt": "Do",
            "States": {
                "Do": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:::lambda:invoke",
                    "Arguments": {"FunctionName": "{% $states.input.name %}", "Payload": "{% $states.input %}"},
                    "End": True,
                }
            },
        },
        {"lambda:InvokeFunction"},
    ),
    "orders": (
        service("dynamodb:putItem", {"TableName": "orders", "Item": {"PK": {"S": "1"}, "SK": {"S": "1"}}}),
        {"dynamodb:PutItem"},
    ),
    "foreign": (service("dynamodb:getItem", {"TableName": "elsewhere", "Key": {}}), {"dynamodb:GetItem"}),
    "query": (service("aws-sdk:dynamodb:query", {"TableName": "orders", "IndexName": "GSI1"}), {"dynamodb:Query"}),
    "batch": (
        service("aws-sdk:dynamodb:batchWriteItem", {"RequestItems": {"orders": [], "elsewhere": []}}),
        {"dynamodb:BatchWriteItem"},
    ),
    "transaction": (
        service(
            "aws-sdk:dynamodb:transactWriteItems",
            {"TransactItems": [{"Put": {"TableName": "orders", "Item": {"PK": {"S": "1"}}}}]},
        ),
        {"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
    ),
    "object": (
        service("aws-sdk:s3:putObject", {"Bucket": "shop-files", "Key": "a.json", "Body": {}}),
        {"s3:PutObject"},
    ),
    "topic": (
        service("sns:publish", {"TopicArn": "arn:aws:sns:us-east-1:000000000000:news", "Message": "hello"}),
        {"sns:Publish"},
    ),
    "nested": (
        service("states:startExecution", {"StateMachineArn": f"{STATES}stateMachine:other"}),
        {"states:StartExecution"},
    ),
    "distributed": (
        DISTRIBUTED,
        {
            "lambda:InvokeFunction",
            "s3:GetObject",
            "s3:PutObject",
            "s3:AbortMultipartUpload",
            "s3:ListMultipartUploadParts",
            "states:StartExecution",
            "states:DescribeExecution",
            "states:StopExecution",
            "states:RedriveExecution",
            "events:DescribeRule",
            "events:PutRule",
            "events:PutTargets",
            "sqs:SendMessage",
        },
    ),
    "plain": ({"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 1, "End": True}}}, set()),
}
every_machine = pytest.mark.parametrize("name", MACHINES)


def made(*names: str, kind: MachineType = MachineType.STANDARD, of: list[Function] | None = None) -> Json:
    machines = [MachineToDeploy(name, json.dumps(MACHINES[name][0], ensure_ascii=False), kind) for name in names]
    return workflow_template(machines, FUNCTIONS if of is None else of, TABLES, prefix=PREFIX)


def made_of(definition: Json) -> Json:
    return workflow_template([MachineToDeploy("machine", json.dumps(definition))], FUNCTIONS, {}, prefix=PREFIX)


def of_type(template: Json, kind: str) -> list[Json]:
    return [each["Properties"] for each in template["Resources"].values() if each["Type"] == kind]


def machine_in(template: Json) -> Json:
    (machine,) = of_type(template, "AWS::StepFunctions::StateMachine")
    return machine


def statements_of(template: Json, role: str) -> list[Json]:
    policies = template["Resources"][role]["Properties"].get("Policies", [])
    return [each for policy in policies for each in policy["PolicyDocument"]["Statement"]]


def actions_of(template: Json, role: str) -> set[str]:
    return {action for each in statements_of(template, role) for action in each["Action"]}


@every_machine
def test_the_definitions_of_these_tests_are_valid(name: str) -> None:
    check_definition(json.dumps(MACHINES[name][0]), MachineType.STANDARD)


@pytest.mark.parametrize("names", [["function"], ["distributed", "orders", "durable"], [*MACHINES]], ids=len)
def test_cfn_lint_finds_nothing(names: list[str], tmp_path: Path) -> None:
    file = tmp_path / "template.json"
    file.write_text(json.dumps(made(*names)))
    lint(file)


def test_cfn_lint_finds_nothing_in_express_machines(tmp_path: Path) -> None:
    file = tmp_path / "template.json"
    template = made("function", "orders", kind=MachineType.EXPRESS)
    file.write_text(json.dumps(template))
    lint(file)
    assert len(of_type(template, "AWS::Logs::LogGroup")) == len(FUNCTIONS) + 2


def lint(file: Path) -> None:
    command = [str(Path(sys.executable).parent / "cfn-lint"), str(file)]
    linted = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, ""), linted.stderr


@every_machine
def test_a_policy_allows_what_the_definition_asks_for_and_no_more(name: str) -> None:
    assert actions_of(made(name), f"{name.capitalize()}MachineRole") == MACHINES[name][1]


@every_machine
def test_no_policy_is_for_everything(name: str) -> None:
    template = made(name)
    for role in (each for each in template["Resources"] if each.endswith("Role")):
        for statement in statements_of(template, role):
            assert "*" not in statement["Resource"]
            assert all("*" not in action for action in statement["Action"])


@every_machine
def test_the_definition_says_what_it_said(name: str) -> None:
    machine = machine_in(made(name))
    originals = {
        "DeployedChargeFunctionArn": f"{LAMBDA}deployed-charge",
        "DeployedSettleFunctionArn": "deployed-settle",
        "OrdersTableName": "orders",
        "ElsewhereTableName": "elsewhere",
        "NewsTopicArn": "arn:aws:sns:us-east-1:000000000000:news",
        "ApprovalsQueueUrl": "https://sqs.us-east-1.amazonaws.com/000000000000/approvals",
        "OtherMachineArn": f"{STATES}stateMachine:other",
        "OrdersMachineArn": f"{STATES}stateMachine:orders",
        "PackActivityArn": f"{STATES}activity:pack",
    }
    substituted = machine.get("DefinitionSubstitutions", {})
    text = re.sub(r"\$\{(\w+)\}", lambda found: originals[found[1]], machine["DefinitionString"])
    assert json.loads(text) == MACHINES[name][0]
    assert [*json.loads(text)] == [*MACHINES[name][0]], "in their order"
    assert set(re.findall(r"\$\{(\w+)\}", machine["DefinitionString"])) == set(substituted)


def test_names_lead_to_what_the_template_makes() -> None:
    template = made("distributed", "orders", "durable", "foreign")
    values: Json = {}
    for machine in of_type(template, "AWS::StepFunctions::StateMachine"):
        values |= machine.get("DefinitionSubstitutions", {})
    states = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:"
    assert values == {
        "DeployedChargeFunctionArn": {"Fn::GetAtt": ["DeployedChargeFunction", "Arn"]},
        "DeployedSettleFunctionArn": {"Fn::Sub": "${DeployedSettleFunction.Arn}:$LATEST"},
        "OrdersMachineArn": {"Fn::Sub": f"{states}stateMachine:prod-orders"},
        "PackActivityArn": {"Fn::Sub": f"{states}activity:pack"},
        "ApprovalsQueueUrl": {"Fn::Sub": "https://sqs.${AWS::Region}.${AWS::URLSuffix}/${AWS::AccountId}/approvals"},
        "OrdersTableName": {"Ref": "OrdersTable"},
        "ElsewhereTableName": "elsewhere",
    }
    assert [table["TableName"] for table in of_type(template, "AWS::DynamoDB::Table")] == ["prod-orders"]


def test_functions_have_their_settings_and_a_durable_one_may_record_its_steps() -> None:
    template = made("function")
    charge, settle = of_type(template, "AWS::Lambda::Function")
    assert (charge["FunctionName"], charge["Handler"]) == ("prod-deployed-charge", f"{handlers.__name__}.charge")
    assert (charge["Timeout"], charge["MemorySize"]) == (30, 256)
    assert "DurableConfig" not in charge
    assert settle["DurableConfig"] == {"ExecutionTimeout": 86_400, "RetentionPeriodInDays": 30}
    logs = {"logs:CreateLogStream", "logs:PutLogEvents"}
    assert actions_of(template, "DeployedChargeFunctionRole") == logs
    assert actions_of(template, "DeployedSettleFunctionRole") == logs | {
        "lambda:CheckpointDurableExecution",
        "lambda:GetDurableExecutionState",
        "lambda:InvokeFunction",
    }


COMPUTED: dict[str, Callable[[], object]] = {
    "the queue is computed": lambda: made_of(service("sqs:sendMessage", {"QueueUrl.$": "$.queue", "MessageBody": "a"})),
    "the bucket is computed": lambda: made_of(service("aws-sdk:s3:getObject", {"Bucket.$": "$.bucket", "Key": "a"})),
    "the table is computed": lambda: made_of(service("dynamodb:getItem", {"TableName.$": "$.table", "Key": {}})),
    "the function is computed": lambda: made("jsonata", of=[]),
    "no imported module registers the function none": lambda: made_of(task(f"{LAMBDA}none")),
    "is the placeholder of function deployed-charge": lambda: made_of(
        {**task(f"{LAMBDA}deployed-charge"), "Comment": "${DeployedChargeFunctionArn}"}
    ),
    "Lambda calls it with a context too": lambda: made("plain", of=[Function("one", "m:one", lambda event: event)]),
    "is not at the top of its module": lambda: made(
        "plain", of=[Function("in", "m:A.b", lambda event, context: event)]
    ),
    "two things would be ABFunction": lambda: made(
        "plain", of=[Function(name, "m:f", lambda *_: None) for name in ("a-b", "a_b")]
    ),
}


@pytest.mark.parametrize("said", COMPUTED)
def test_what_cannot_be_deployed_is_refused_with_the_reason(said: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(said)):
        COMPUTED[said]()
