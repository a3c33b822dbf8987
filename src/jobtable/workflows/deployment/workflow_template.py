"""State machines and functions as a CloudFormation template, with their roles, policies and log groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jobtable.errors import DefinitionError
from jobtable.workflows.asl.arns import ACCOUNT, check_states_name
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.deployment.deployed_definition import (
    DeployedDefinition,
    Substitution,
    TargetKind,
    logical_id,
)
from jobtable.workflows.deployment.permissions import Json, Surroundings, arn, statements_of, sub
from jobtable.workflows.function_calls import takes_context
from jobtable.workflows.functions import DurableConfig, Function

_LONGEST_SECONDS = 900
_LOG_DAYS = 30
_LOG_DELIVERY = (
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
)
"""What Step Functions needs to write a log. AWS knows these permissions for all of an account or for none."""


@dataclass(frozen=True)
class MachineToDeploy:
    """A state machine with its definition, as it is written."""

    name: str
    definition: str
    type: MachineType = MachineType.STANDARD


def workflow_template(
    machines: Iterable[MachineToDeploy],
    functions: Iterable[Function],
    tables: Mapping[str, Json],
    *,
    prefix: str = "",
    runtime: str = "python3.13",
) -> Json:
    """Return the template. `tables` are the resources of tables by their names; those that a definition uses are in it.

    Raises DefinitionError for what cannot be deployed, and says why.
    """
    machines, functions = list(machines), list(functions)
    definitions = {machine.name: DeployedDefinition(machine.definition) for machine in machines}
    table_ids = {name: f"{logical_id(name)}Table" for name in _used(tables, definitions.values())}
    around = Surroundings(
        prefix,
        {each.name: f"{logical_id(each.name)}Function" for each in functions},
        table_ids,
        frozenset(definitions),
        frozenset(each.name for each in functions if each.is_durable),
    )
    resources: dict[str, Json] = {logical: tables[name] for name, logical in table_ids.items()}
    for function in functions:
        _add(resources, _function_resources(function, prefix, runtime, functions))
    for machine in machines:
        _add(resources, _machine_resources(machine, definitions[machine.name], around))
    parameters = {
        "CodeBucket": {"Type": "String", "Description": "Bucket with the package of the functions' code."},
        "CodeKey": {"Type": "String", "Description": "Key of the package, a zip file with your modules and jobtable."},
    }
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "State machines and functions.",
        **({"Parameters": parameters} if functions else {}),
        "Resources": resources,
        "Outputs": _outputs(machines, functions),
    }


def _used(tables: Iterable[str], definitions: Iterable[DeployedDefinition]) -> list[str]:
    """Return the tables that definitions name: all if one computes the name."""
    named = {need.name for each in definitions for need in each.needs if need.kind is TargetKind.TABLE}
    return [name for name in tables if name in named or None in named]


def _add(resources: dict[str, Json], more: Mapping[str, Json]) -> None:
    if taken := sorted(resources.keys() & more.keys()):
        raise DefinitionError(f"two things would be {taken[0]} in the template; rename one")
    resources.update(more)


# --- functions ------------------------------------------------------------------------------------------------------


def _function_resources(function: Function, prefix: str, runtime: str, others: list[Function]) -> dict[str, Json]:
    """Return a function with its role and its log group."""
    module, _, handler = function.path.partition(":")
    if "." in handler:
        raise DefinitionError(f"function {function.name}: {function.path} is not at the top of its module")
    if not takes_context(function.handler):
        raise DefinitionError(f"function {function.name}: Lambda calls it with a context too; add that parameter")
    own, name = logical_id(function.name), prefix + function.name
    properties: Json = {
        "FunctionName": name,
        "Handler": f"{module}.{handler}",
        "Runtime": runtime,
        "Role": {"Fn::GetAtt": [f"{own}FunctionRole", "Arn"]},
        "Timeout": min(_LONGEST_SECONDS, math.ceil(function.timeout_seconds)),
        "MemorySize": function.memory_mb,
        "Code": {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": {"Ref": "CodeKey"}},
        "LoggingConfig": {"LogGroup": {"Ref": f"{own}FunctionLog"}},
    }
    if function.is_durable:
        config = function.durable or DurableConfig()
        properties["DurableConfig"] = {
            "ExecutionTimeout": config.execution_timeout_seconds,
            "RetentionPeriodInDays": config.retention_days,
        }
    statements = [_logging(f"{own}FunctionLog"), *_durable_statements(function, prefix, others)]
    return {
        f"{own}Function": {"Type": "AWS::Lambda::Function", "Properties": properties},
        f"{own}FunctionRole": _role("lambda.amazonaws.com", statements),
        f"{own}FunctionLog": _log_group(f"/aws/lambda/{name}"),
    }


def _logging(log: str) -> Json:
    return {
        "Effect": "Allow",
        "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
        "Resource": {"Fn::GetAtt": [log, "Arn"]},
    }


def _durable_statements(function: Function, prefix: str, others: list[Function]) -> list[Json]:
    """Return what a durable function may do: record its own executions, and call the other functions."""
    if not function.is_durable:
        return []
    # By name: the function itself needs its role first.
    own = {
        "Effect": "Allow",
        "Action": ["lambda:CheckpointDurableExecution", "lambda:GetDurableExecutionState"],
        "Resource": sub(arn("lambda", f"function:{prefix}{function.name}:*")),
    }
    called = [arn("lambda", f"function:{prefix}{each.name}") for each in others if each is not function]
    if not called:
        return [own]
    resources = [sub(text) for each in called for text in (each, f"{each}:*")]
    return [own, {"Effect": "Allow", "Action": ["lambda:InvokeFunction"], "Resource": resources}]


# --- machines -------------------------------------------------------------------------------------------------------


def _machine_resources(
    machine: MachineToDeploy, definition: DeployedDefinition, around: Surroundings
) -> dict[str, Json]:
    """Return a machine with its role and activities, and an express one, which has no history, with a log."""
    own, name = logical_id(machine.name), around.prefix + machine.name
    check_states_name("state machine", name)
    statements = statements_of(machine.name, definition, around)
    properties: Json = {
        "StateMachineName": name,
        "StateMachineType": machine.type.value,
        "RoleArn": {"Fn::GetAtt": [f"{own}MachineRole", "Arn"]},
        "DefinitionString": definition.text,
    }
    values = {each.placeholder: _value_of(each, around) for each in definition.substitutions.values()}
    if values:
        properties["DefinitionSubstitutions"] = values
    resources = {f"{own}Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}}
    if machine.type is MachineType.EXPRESS:
        group = {"LogGroupArn": {"Fn::GetAtt": [f"{own}MachineLog", "Arn"]}}
        properties["LoggingConfiguration"] = {
            "Level": "ALL",
            "IncludeExecutionData": True,
            "Destinations": [{"CloudWatchLogsLogGroup": group}],
        }
        statements.append({"Effect": "Allow", "Action": list(_LOG_DELIVERY), "Resource": "*"})
        resources[f"{own}MachineLog"] = _log_group(f"/aws/vendedlogs/states/{name}")
    return {**resources, f"{own}MachineRole": _role("states.amazonaws.com", statements)}


def _value_of(substitution: Substitution, around: Surroundings) -> Any:
    """Return what takes the place of a placeholder."""
    name = substitution.name
    last = name.rpartition("/")[2].rpartition(":")[2]
    match substitution.kind:
        case TargetKind.FUNCTION:
            own = around.functions[name]
            return sub(f"${{{own}.Arn}}:$LATEST") if name in around.durable else {"Fn::GetAtt": [own, "Arn"]}
        case TargetKind.TABLE:
            return {"Ref": around.tables[name]} if name in around.tables else name
        case TargetKind.MACHINE:
            deployed = around.prefix + name if name in around.machines else name
            return sub(arn("states", f"stateMachine:{deployed}"))
        case TargetKind.ACTIVITY:
            return sub(arn("states", f"activity:{name}"))
        case TargetKind.QUEUE if f"/{ACCOUNT}/" in name or "://" not in name:
            return sub(f"https://sqs.${{AWS::Region}}.${{AWS::URLSuffix}}/${{AWS::AccountId}}/{last}")
        case TargetKind.TOPIC if f":{ACCOUNT}:" in name:
            return sub(arn("sns", last))
        case _:
            return name


# --- parts ----------------------------------------------------------------------------------------------------------


def _role(service: str, statements: list[Json]) -> Json:
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    properties: Json = {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]}}
    if statements:
        document = {"Version": "2012-10-17", "Statement": statements}
        properties["Policies"] = [{"PolicyName": "OfDefinition", "PolicyDocument": document}]
    return {"Type": "AWS::IAM::Role", "Properties": properties}


def _log_group(name: str) -> Json:
    return {
        "Type": "AWS::Logs::LogGroup",
        "DeletionPolicy": "Delete",
        "UpdateReplacePolicy": "Delete",
        "Properties": {"LogGroupName": name, "RetentionInDays": _LOG_DAYS},
    }


def _outputs(machines: Iterable[MachineToDeploy], functions: Iterable[Function]) -> Json:
    outputs: Json = {}
    for machine in machines:
        own = f"{logical_id(machine.name)}Machine"
        outputs[f"{own}Arn"] = {"Description": f"The state machine {machine.name}.", "Value": {"Ref": own}}
    for function in functions:
        own = f"{logical_id(function.name)}Function"
        outputs[f"{own}Arn"] = {
            "Description": f"The function {function.name}.",
            "Value": {"Fn::GetAtt": [own, "Arn"]},
        }
    return outputs
