"""Several APIs at one address, and Step Functions' protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from jobtable.embedded.server import DynamoDbProtocol, Endpoint, SignatureCheck, StepFunctionsProtocol
from jobtable.embedded.server.http1 import HttpRequest, HttpResponse
from jobtable.errors import OperationRefused, StorageError
from jobtable.store.backend import Request, Response


class ScriptedOperations:
    """Remembers its calls, and answers each with what it was given."""

    def __init__(self, outcome: Mapping[str, Any] | Exception | None = None) -> None:
        self.outcome = {} if outcome is None else outcome
        self.calls: list[tuple[str, Request, str | None]] = []

    def execute(self, operation: str, request: Request, *, region: str | None = None) -> Mapping[str, Any]:
        self.calls.append((operation, request, region))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class EchoBackend:
    def execute(self, operation: str, request: Request) -> Response:
        return {"operation": operation}

    def close(self) -> None:
        return


def post(body: bytes = b"{}", target: str = "AWSStepFunctions.StartExecution", **headers: str) -> HttpRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpRequest(
        "POST", "/", {"content-type": "application/x-amz-json-1.0", "x-amz-target": target, **named}, body, True
    )


def respond(request: HttpRequest, outcome: Mapping[str, Any] | Exception | None = None) -> HttpResponse:
    return StepFunctionsProtocol(ScriptedOperations(outcome)).respond(request)


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("AWSStepFunctions.ListActivities", {"activities": []}),
        ("DynamoDB_20120810.ListTables", {"operation": "ListTables"}),
        ("DynamoDBStreams_20120810.ListStreams", {"operation": "ListStreams"}),
    ],
)
def test_the_target_chooses_the_api(target: str, answer: dict[str, Any]) -> None:
    operations = ScriptedOperations({"activities": []})
    endpoint = Endpoint([StepFunctionsProtocol(operations), DynamoDbProtocol(EchoBackend())])
    assert json.loads(endpoint.respond(post(target=target)).body) == answer


def test_the_last_service_answers_the_rest() -> None:
    endpoint = Endpoint([StepFunctionsProtocol(ScriptedOperations()), DynamoDbProtocol(EchoBackend())])
    assert endpoint.respond(HttpRequest("GET", "/ping", {}, b"", True)).body.startswith(b"healthy")
    response = endpoint.respond(post(target="Other_1.Do"))
    assert response.status == 400
    assert "UnknownOperationException" in json.loads(response.body)["__type"]


def test_the_region_comes_from_the_credentials_and_the_trace_from_its_header() -> None:
    operations = ScriptedOperations()
    scope = "AWS4-HMAC-SHA256 Credential=AKID/20261119/eu-west-1/states/aws4_request, SignedHeaders=host, Signature=0"
    StepFunctionsProtocol(operations).respond(
        post(b'{"traceHeader":"body"}', authorization=scope, x_amzn_trace_id="Root=1-2-3")
    )
    StepFunctionsProtocol(operations).respond(post(authorization="Basic abc"))
    assert operations.calls == [
        ("StartExecution", {"traceHeader": "Root=1-2-3"}, "eu-west-1"),
        ("StartExecution", {}, None),
    ]


@pytest.mark.parametrize(
    ("code", "status", "namespace"),
    [
        ("StateMachineDoesNotExist", 400, "com.amazonaws.swf.service.v2.model#"),
        ("ValidationException", 400, "com.amazon.coral.validate#"),
        ("ConflictException", 409, "com.amazonaws.swf.service.v2.model#"),
    ],
)
def test_a_refusal_has_the_envelope_of_aws(code: str, status: int, namespace: str) -> None:
    response = respond(post(), OperationRefused("why", code=code, details={"reason": "X"}))
    assert (response.status, json.loads(response.body)) == (
        status,
        {"__type": namespace + code, "message": "why", "reason": "X"},
    )


@pytest.mark.parametrize("failure", [StorageError("the file is damaged"), ZeroDivisionError()])
def test_a_failure_inside_the_server_is_its_own(failure: Exception) -> None:
    response = respond(post(), failure)
    assert response.status == 500
    assert json.loads(response.body)["__type"].endswith("InternalServerError")


def test_signatures_are_checked_for_the_service() -> None:
    protocol = StepFunctionsProtocol(ScriptedOperations(), SignatureCheck("id", "secret", service="states"))
    assert json.loads(protocol.respond(post()).body)["__type"].endswith("MissingAuthenticationTokenException")
