"""The rules and routes of Lambda's operations are those of its description that boto3 has."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.model import OperationModel, Shape
from tests.workflows.service_rules import differences

from jobtable.embedded.server.lambda_functions import ROUTES, Route
from jobtable.errors import OperationRefused
from jobtable.workflows.asl.aws_api.member_rules import check
from jobtable.workflows.durable.lambda_requests import REQUESTS

SERVICE = botocore.session.get_session().get_service_model("lambda")
_WEIGHTS = (f"{operation}Alias.RoutingConfig.AdditionalVersionWeights" for operation in ("Create", "Update"))
UNREAD = frozenset({"CheckpointDurableExecution.Updates[]", *_WEIGHTS})
FUNCTION_PATTERN = str(REQUESTS["Invoke"].required["FunctionName"].pattern)  # type: ignore[attr-defined]


def test_every_operation_has_its_members() -> None:
    found = [
        each
        for name, rule in REQUESTS.items()
        for each in differences(rule, SERVICE.operation_model(name).input_shape, name, UNREAD)
        if each[1] != each[2]
    ]
    assert found == []


@pytest.mark.parametrize("operation", REQUESTS)
def test_every_operation_has_its_route(operation: str) -> None:
    assert described(SERVICE.operation_model(operation)) == shown(ROUTES[operation])


def test_all_operations_on_durable_executions_are_there() -> None:
    durable = {name for name in SERVICE.operation_names if "Durable" in name}
    functions = {"Invoke", "GetFunction", "GetFunctionConfiguration", "ListFunctions"}
    versions = {"PublishVersion", "ListVersionsByFunction"}
    aliases = {"CreateAlias", "UpdateAlias", "GetAlias", "ListAliases", "DeleteAlias"}
    assert durable | functions | versions | aliases == set(ROUTES)
    assert set(ROUTES) == set(REQUESTS)


def shown(route: Route) -> dict[str, Any]:
    return {
        "method": route.method,
        "path": route.path,
        "query": set(route.query),
        "headers": dict(route.headers),
        "payload": route.payload,
        "is_binary": route.is_binary,
        "status": route.status,
        "answer_headers": dict(route.answer_headers),
        "answer_payload": route.answer_payload,
    }


def described(operation: OperationModel) -> dict[str, Any]:
    sent: Any = operation.input_shape
    answered: Any = operation.output_shape
    payload = sent.serialization.get("payload")
    return {
        "method": operation.http["method"],
        "path": operation.http["requestUri"].rstrip("/"),
        "query": set(located(sent, "querystring")),
        "headers": located(sent, "header"),
        "payload": payload,
        "is_binary": payload is not None and sent.members[payload].type_name == "blob",
        "status": operation.http["responseCode"],
        "answer_headers": {} if answered is None else located(answered, "header"),
        "answer_payload": None if answered is None else answered.serialization.get("payload"),
    }


def located(shape: Any, place: str) -> dict[str, str]:
    members: dict[str, Shape] = shape.members
    return {
        name: each.serialization["name"]
        for name, each in members.items()
        if each.serialization.get("location") == place
    }


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        (
            "Invoke",
            {"FunctionName": "a b", "InvocationType": "Later"},
            "2 validation errors detected: Value 'a b' at 'functionName' failed to satisfy constraint: Member must "
            f"satisfy regular expression pattern: {FUNCTION_PATTERN}; Value 'Later' at 'invocationType' failed to "
            "satisfy constraint: Member must satisfy enum value set: [Event, RequestResponse, DryRun]",
        ),
        (
            "GetDurableExecutionHistory",
            {"MaxItems": 1001},
            "2 validation errors detected: Value null at 'durableExecutionArn' failed to satisfy constraint: Member "
            "must not be null; Value '1001' at 'maxItems' failed to satisfy constraint: Member must have value less "
            "than or equal to 1000",
        ),
        (
            "SendDurableExecutionCallbackSuccess",
            {"CallbackId": "abcd", "Result": b"x" * 1_048_577},
            "1 validation error detected: Value at 'result' failed to satisfy constraint: Member must have length "
            "less than or equal to 1048576",
        ),
    ],
)
def test_broken_constraints_are_reported(operation: str, request_: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationRefused) as refused:
        check(REQUESTS[operation], request_)
    assert (refused.value.code, refused.value.message) == ("ValidationException", message)
