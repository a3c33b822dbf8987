"""The IAM statements that a machine needs, derived from its definition and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from jobtable.errors import DefinitionError
from jobtable.workflows.asl.arns import ACCOUNT
from jobtable.workflows.asl.resources import Pattern
from jobtable.workflows.deployment.deployed_definition import DeployedDefinition, Need, TargetKind

Json: TypeAlias = dict[str, Any]

_OF_TABLES: dict[str, tuple[str, ...]] = {
    "transactGetItems": ("GetItem",),
    "transactWriteItems": ("ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem"),
    **dict.fromkeys(
        ("executeStatement", "batchExecuteStatement", "executeTransaction"),
        ("PartiQLDelete", "PartiQLInsert", "PartiQLSelect", "PartiQLUpdate"),
    ),
}
"""The permissions of the actions that have no permission of their own name."""
_OF_INDEXES = frozenset({"query", "scan", *_OF_TABLES} - {"transactGetItems", "transactWriteItems"})
_OF_OBJECTS: dict[str, tuple[str, ...]] = {
    "getObject": ("GetObject",),
    "putObject": ("PutObject",),
    "getObject of a Map": ("GetObject",),
    "listObjectsV2 of a Map": ("ListBucket",),
    # The parts of a result are uploaded one by one, and read again for its manifest.
    "putObject of a Map": ("AbortMultipartUpload", "GetObject", "ListMultipartUploadParts", "PutObject"),
}
_EVENTS_RULE = "rule/StepFunctionsGetEventsForStepFunctionsExecutionRule"
_TOPIC = re.compile(r"arn:[\w-]+:sns:(?P<region>[\w-]+):(?P<account>\d+):(?P<name>.+)")
_QUEUE = re.compile(r"https?://sqs[.-](?P<region>[\w-]+)\.[^/]+/(?P<account>\d+)/(?P<name>[^/]+)")


@dataclass(frozen=True)
class Surroundings:
    """What a template contains beside a machine."""

    prefix: str
    """Before the names of tables, functions and machines."""
    functions: Mapping[str, str]
    """The logical ids of the functions by their names."""
    tables: Mapping[str, str]
    """The logical ids of the tables by their names, without the prefix."""
    machines: frozenset[str]
    durable: frozenset[str] = frozenset()
    """The names of the functions that are durable, which are called by a qualified name."""


def sub(text: str) -> Json:
    """Return a text in which CloudFormation fills in the partition, region and account."""
    return {"Fn::Sub": text}


def arn(service: str, resource: str) -> str:
    """Return the ARN of something in the account of the stack."""
    return f"arn:${{AWS::Partition}}:{service}:${{AWS::Region}}:${{AWS::AccountId}}:{resource}"


def statements_of(name: str, definition: DeployedDefinition, around: Surroundings) -> list[Json]:
    """Return the statements of the role of a machine."""
    allowed: dict[tuple[str, ...], list[Any]] = {}
    for actions, resources in _grants(name, definition, around):
        known = allowed.setdefault(actions, [])
        known += [each for each in resources if each not in known]
    return [
        {"Effect": "Allow", "Action": list(actions), "Resource": resources} for actions, resources in allowed.items()
    ]


def _grants(
    name: str, definition: DeployedDefinition, around: Surroundings
) -> Iterable[tuple[tuple[str, ...], list[Any]]]:
    for need in definition.needs:
        match need.kind:
            case TargetKind.FUNCTION:
                yield ("lambda:InvokeFunction",), _functions(need, around)
            case TargetKind.TABLE:
                yield _table_actions(need), _tables(need, around)
            case TargetKind.BUCKET:
                yield tuple(f"s3:{each}" for each in _OF_OBJECTS[need.action]), [_objects(need)]
            case TargetKind.QUEUE:
                yield ("sqs:SendMessage",), [_queue(need)]
            case TargetKind.TOPIC:
                yield ("sns:Publish",), [_topic(need)]
            case TargetKind.MACHINE:
                yield from _machine_grants(need, around)
            case TargetKind.ACTIVITY:  # its worker asks Step Functions, not the other way round
                pass
    if definition.has_distributed_map:
        machine = around.prefix + name
        yield ("states:StartExecution",), [sub(arn("states", f"stateMachine:{machine}"))]
        yield (
            ("states:DescribeExecution", "states:RedriveExecution", "states:StopExecution"),
            [sub(arn("states", f"execution:{machine}/*:*"))],
        )


def _functions(need: Need, around: Surroundings) -> list[Json]:
    if need.name is not None and need.name not in around.functions:
        raise DefinitionError(
            f"{need.place}: no imported module registers the function {need.name}", hint="name its module"
        )
    names = [need.name] if need.name is not None else list(around.functions)
    ids = [around.functions[each] for each in names]
    if not ids:
        raise _computed(need)
    # With and without a version: a durable function is called by a qualified name.
    return [part for each in ids for part in ({"Fn::GetAtt": [each, "Arn"]}, sub(f"${{{each}.Arn}}:*"))]


def _table_actions(need: Need) -> tuple[str, ...]:
    own = _OF_TABLES.get(need.action, (need.action[0].upper() + need.action[1:],))
    return tuple(f"dynamodb:{each}" for each in own)


def _tables(need: Need, around: Surroundings) -> list[Any]:
    if need.action == "listTables":
        return ["*"]  # AWS knows this permission for all tables of an account or for none
    names = [need.name] if need.name is not None else list(around.tables)
    if not names:
        raise _computed(need)
    found: list[Any] = []
    for each in names:
        logical = around.tables.get(each)
        own = {"Fn::GetAtt": [logical, "Arn"]} if logical else sub(_table_arn(each))
        found.append(own)
        if need.action in _OF_INDEXES:
            found.append(sub(f"${{{logical}.Arn}}/index/*" if logical else f"{_table_arn(each)}/index/*"))
    return found


def _table_arn(name: str) -> str:
    return name if name.startswith("arn:") else arn("dynamodb", f"table/{name}")


def _objects(need: Need) -> Json:
    if need.name is None:
        raise _computed(need)
    bucket = f"arn:${{AWS::Partition}}:s3:::{need.name}"
    return sub(bucket if need.action == "listObjectsV2 of a Map" else f"{bucket}/{need.key or '*'}")


def _queue(need: Need) -> Json:
    if need.name is None:
        raise _computed(need)
    found = _QUEUE.fullmatch(need.name)
    if found is None or found["account"] == ACCOUNT:
        return sub(arn("sqs", need.name.rpartition("/")[2]))
    return sub(f"arn:${{AWS::Partition}}:sqs:{found['region']}:{found['account']}:{found['name']}")


def _topic(need: Need) -> Any:
    if need.name is None:
        raise _computed(need)
    found = _TOPIC.fullmatch(need.name)
    if found is None or found["account"] == ACCOUNT:
        return sub(arn("sns", need.name.rpartition(":")[2]))
    return need.name


def _machine_grants(need: Need, around: Surroundings) -> Iterable[tuple[tuple[str, ...], list[Any]]]:
    names = [need.name] if need.name is not None else sorted(around.machines)
    if not names:
        raise _computed(need)
    deployed = [around.prefix + each if each in around.machines else each for each in names]
    yield ("states:StartExecution",), [sub(arn("states", f"stateMachine:{each}")) for each in deployed]
    if need.pattern in {Pattern.SYNC, Pattern.SYNC_JSON}:
        executions = [sub(arn("states", f"execution:{each}:*")) for each in deployed]
        yield ("states:DescribeExecution", "states:StopExecution"), executions
        yield ("events:DescribeRule", "events:PutRule", "events:PutTargets"), [sub(arn("events", _EVENTS_RULE))]


def _computed(need: Need) -> DefinitionError:
    return DefinitionError(
        f"{need.place}: the {need.kind} is computed, so no policy can name it; write it as text in the definition"
    )
