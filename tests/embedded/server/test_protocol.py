"""DynamoDB's JSON protocol: targets, envelopes and checksums, against a backend that does what the test says."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from jobtable.embedded.server import DynamoDbProtocol, SignatureCheck
from jobtable.embedded.server.http1 import MAX_BODY_BYTES, HttpRequest, HttpResponse
from jobtable.errors import StorageError, request_error
from jobtable.store.backend import Request, Response


class ScriptedBackend:
    """Remembers its calls, and answers each with what it was given."""

    def __init__(self, outcome: Response | Exception) -> None:
        self.outcome = outcome
        self.calls: list[tuple[str, Request]] = []

    def execute(self, operation: str, request: Request) -> Response:
        self.calls.append((operation, request))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def close(self) -> None:
        return


def post(body: bytes, target: str | None = "DynamoDB_20120810.GetItem", **headers: str) -> HttpRequest:
    names = {"content-type": "application/x-amz-json-1.0", **{name.replace("_", "-"): v for name, v in headers.items()}}
    if target is not None:
        names["x-amz-target"] = target
    return HttpRequest("POST", "/", names, body, True)


def respond(request: HttpRequest, outcome: Response | Exception | None = None) -> HttpResponse:
    return DynamoDbProtocol(ScriptedBackend({} if outcome is None else outcome)).respond(request)


def error_of(response: HttpResponse) -> tuple[int, dict[str, Any]]:
    return response.status, json.loads(response.body)


def test_an_answer_carries_its_checksum_and_a_request_id() -> None:
    backend = ScriptedBackend({"Item": {"pk": {"S": "é\u2028\U0001f600"}}})
    response = DynamoDbProtocol(backend).respond(post(b'{"TableName":"t"}'))
    headers = dict(response.headers)
    assert backend.calls == [("GetItem", {"TableName": "t"})]
    assert (response.status, json.loads(response.body)) == (200, backend.outcome)
    assert headers["Content-Type"] == "application/x-amz-json-1.0"
    assert headers["x-amz-crc32"] == str(zlib.crc32(response.body))
    assert len(headers["x-amzn-RequestId"]) == 52


@pytest.mark.parametrize("outcome", [None, request_error("ValidationException", "what happened")])
def test_an_answer_has_the_media_type_of_its_question(outcome: Exception | None) -> None:
    response = respond(post(b"{}", content_type="application/json; charset=utf-8"), outcome)
    assert dict(response.headers)["Content-Type"] == "application/json"


def test_streams_have_a_target_of_their_own() -> None:
    backend = ScriptedBackend({})
    protocol = DynamoDbProtocol(backend)
    assert protocol.respond(post(b"{}", "DynamoDBStreams_20120810.GetRecords")).status == 200
    assert backend.calls == [("GetRecords", {})]


@pytest.mark.parametrize(
    "target",
    [
        None,
        "",
        "GetItem",
        "DynamoDB_20111205.GetItem",
        "DynamoDB_20120810.GetRecords",
        "DynamoDBStreams_20120810.GetItem",
    ],
)
def test_a_wrong_target_is_an_unknown_operation(target: str | None) -> None:
    status, error = error_of(respond(post(b"{}", target)))
    assert (status, error["__type"]) == (400, "com.amazon.coral.service#UnknownOperationException")


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"null", b"5", b"\xff{}", b'{"a":NaN}', b'{"a":"\\ud800"}', b"[" * 5000),
        *(b'{"a":' + b"[" * levels + middle + b"]" * levels + b"}" for levels, middle in ((500, b""), (300, b"NaN"))),
    ],
)
def test_what_is_no_json_object_is_a_serialization_error(body: bytes) -> None:
    status, error = error_of(respond(post(body)))
    assert (status, error["__type"]) == (400, "com.amazon.coral.service#SerializationException")
    assert error["Message"]


def test_what_is_nested_deep_is_left_to_the_backend() -> None:
    backend = ScriptedBackend({})
    body = b'{"a":' * 400 + b"5" + b"}" * 400
    assert DynamoDbProtocol(backend).respond(post(body)).status == 200
    assert backend.calls == [("GetItem", json.loads(body))]


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(b'{"TableName":"t"}', mtime=0), "gzip"),
        (gzip.compress(b'{"TableName":"t"}', mtime=0) + b"junk", "gzip"),
        (gzip.compress(b'{"Table', mtime=0) + gzip.compress(b'Name":"t"}', mtime=0), "GZIP"),
        (zlib.compress(b'{"TableName":"t"}'), "deflate"),
    ],
)
def test_an_unpacked_body_is_the_request(body: bytes, encoding: str) -> None:
    backend = ScriptedBackend({})
    DynamoDbProtocol(backend).respond(post(body, content_encoding=encoding))
    assert backend.calls == [("GetItem", {"TableName": "t"})]


UNPACK: dict[str | None, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "deflate": zlib.decompress, None: bytes}
LONG_ITEM: Response = {"Item": {"pk": {"S": "x" * 4096}}}


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("gzip, deflate", "gzip"),
        ("br, identity, deflate, gzip", "deflate"),
        ("dog, GZIP ,, cat", "gzip"),
        ("gzip;q=0, deflate; q = 0.5 , identity;q=0", "deflate"),
        ("deflate;q=0.5, gzip;q=0.2", "deflate"),
        ("gzip;q=0.5, identity;q=0.8", "gzip"),
        ("gzip;q=0, gzip;q=0.0001", "gzip"),
        ("*", "gzip"),
        ("*, deflate;q=0.5", "gzip"),
        ("*, deflate", "deflate"),
        ("*, gzip;q=0.5", "deflate"),
        ("*;q=0.5, identity", "gzip"),
        ("gzip;q=31, deflate;q=51", "gzip"),
        ("deflate;q=0.5, gzip;q=1;q=0.2", "gzip"),
        ("deflate;q=0.5, gzip;q=0.x", "gzip"),
        ("deflate;q=0.5, gzip;q=0.", "deflate"),
        ("deflate;q=-0.5, gzip;q=0.2", "gzip"),
        ("gzip;nq=1;q=0", None),
        ("gzip ;q=0", None),
        ("*;q=0", None),
        ("identity;q=0", None),
        ("identity", None),
        ("br, zstd, compress, x-gzip", None),
        ('"gzip"', None),
        ("gzip br", None),
        ("gzip:q=1", None),
        ("", None),
    ],
)
def test_a_long_answer_is_packed_as_the_client_likes_it_best(accepted: str, encoding: str | None) -> None:
    response = respond(post(b"{}", accept_encoding=accepted), LONG_ITEM)
    headers = dict(response.headers)
    assert headers.get("Content-Encoding") == encoding
    assert headers["x-amz-crc32"] == str(zlib.crc32(response.body))
    assert json.loads(UNPACK[encoding](response.body)) == LONG_ITEM
    assert (len(response.body) < 200) == (encoding is not None)


@pytest.mark.parametrize(("length", "encoding"), [(4095, None), (4096, "gzip")])
def test_an_answer_is_packed_from_4096_bytes_on(length: int, encoding: str | None) -> None:
    item = {"Item": {"pk": {"S": "x" * (length - len('{"Item":{"pk":{"S":""}}}'))}}}
    assert dict(respond(post(b"{}", accept_encoding="gzip"), item).headers).get("Content-Encoding") == encoding


def test_an_answer_is_not_packed_for_a_client_that_does_not_ask() -> None:
    assert "Content-Encoding" not in dict(respond(post(b"{}"), LONG_ITEM).headers)


def test_the_endpoint_is_where_the_client_is() -> None:
    endpoint = {"Address": "dynamodb.amazonaws.com", "CachePeriodInMinutes": 1440}
    request = post(b"{}", "DynamoDB_20120810.DescribeEndpoints", host="127.0.0.1:8000")
    (told,) = json.loads(respond(request, {"Endpoints": [endpoint]}).body)["Endpoints"]
    assert told == endpoint | {"Address": "127.0.0.1:8000"}


@pytest.mark.parametrize("operation", ["TagResource", "UntagResource"])
def test_an_operation_without_a_response_is_answered_with_no_body(operation: str) -> None:
    response = respond(post(b"{}", f"DynamoDB_20120810.{operation}"))
    assert (response.status, response.body, dict(response.headers)["x-amz-crc32"]) == (200, b"", "0")


@pytest.mark.parametrize(
    ("body", "encoding", "status", "code"),
    [
        (b"not gzip", "gzip", 400, "SerializationException"),
        (gzip.compress(b"{}", mtime=0)[:-9], "gzip", 400, "SerializationException"),
        (gzip.compress(b"{", mtime=0) + gzip.compress(b"}", mtime=0)[:-1], "gzip", 400, "SerializationException"),
        (b"", "gzip", 400, "SerializationException"),
        (b"{}", "br", 400, "SerializationException"),
        (b"not deflate", "deflate", 400, "SerializationException"),
        (zlib.compress(b"{}")[:-3], "deflate", 400, "SerializationException"),
        (zlib.compress(b"{") + zlib.compress(b"}"), "deflate", 400, "SerializationException"),
        (zlib.compress(b" " * (MAX_BODY_BYTES + 1)), "deflate", 413, "RequestEntityTooLargeException"),
        (gzip.compress(b" " * (MAX_BODY_BYTES + 1), mtime=0), "gzip", 413, "RequestEntityTooLargeException"),
    ],
)
def test_a_packed_body_that_cannot_be_unpacked_is_refused(body: bytes, encoding: str, status: int, code: str) -> None:
    answered, error = error_of(respond(post(body, content_encoding=encoding)))
    assert (answered, error["__type"].partition("#")[2]) == (status, code)


@pytest.mark.parametrize(
    ("code", "namespace", "status"),
    [
        ("ValidationException", "com.amazon.coral.validate", 400),
        ("ResourceNotFoundException", "com.amazonaws.dynamodb.v20120810", 400),
        ("ThrottlingException", "com.amazon.coral.availability", 400),
        ("InternalServerError", "com.amazonaws.dynamodb.v20120810", 500),
        ("ServiceUnavailable", "com.amazonaws.dynamodb.v20120810", 503),
    ],
)
def test_an_error_of_the_backend_becomes_dynamodbs_envelope(code: str, namespace: str, status: int) -> None:
    answered, error = error_of(respond(post(b"{}"), request_error(code, "what happened")))
    assert (answered, error) == (status, {"__type": f"{namespace}#{code}", "message": "what happened"})


def test_the_details_of_an_error_are_sent_along() -> None:
    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": {"pk": {"S": "a"}}}]
    canceled = request_error("TransactionCanceledException", "why", {"CancellationReasons": reasons})
    _, error = error_of(respond(post(b"{}"), canceled))
    assert (error["Message"], error["CancellationReasons"]) == ("why", reasons)
    failed = request_error("ConditionalCheckFailedException", "why", {"Item": {"pk": {"S": "a"}}})
    _, error = error_of(respond(post(b"{}"), failed))
    assert (error["Message"], error["Item"]) == ("why", {"pk": {"S": "a"}})


@pytest.mark.parametrize(
    ("code", "member"),
    [
        ("ConditionalCheckFailedException", "message"),
        ("IdempotentParameterMismatchException", "Message"),
        ("TransactionInProgressException", "Message"),
        ("TransactionConflictException", "message"),
    ],
)
def test_an_error_has_its_message_where_the_model_of_the_service_has_it(code: str, member: str) -> None:
    _, error = error_of(respond(post(b"{}"), request_error(code, "why")))
    assert error == {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", member: "why"}


@pytest.mark.parametrize("failure", [StorageError("the file is gone"), ZeroDivisionError("oops")])
def test_a_failure_of_the_backend_is_an_internal_error_that_hides_nothing_it_should_say(failure: Exception) -> None:
    status, error = error_of(respond(post(b"{}"), failure))
    assert (status, error["__type"]) == (500, "com.amazonaws.dynamodb.v20120810#InternalServerError")
    assert "oops" not in error["message"]


@pytest.mark.parametrize("target", ["/", "/ping", "/?now"])
def test_get_is_the_health_line(target: str) -> None:
    response = respond(HttpRequest("GET", target, {"host": "localhost:8000"}, b"", True))
    assert (response.status, response.body) == (200, b"healthy: localhost:8000 ")
    headers = dict(response.headers)
    assert (headers["Content-Type"], headers["x-amz-crc32"]) == ("text/plain", str(zlib.crc32(response.body)))


@pytest.mark.parametrize(
    "request_",
    [
        HttpRequest("PUT", "/", {}, b"", True),
        HttpRequest("GET", "/index.html", {}, b"", True),
        HttpRequest("HEAD", "/ping/", {}, b"", True),
        post(b"{}", content_type="text/plain"),
        post(b"x=1", content_type=""),
    ],
)
def test_other_methods_paths_and_media_types_are_not_found(request_: HttpRequest) -> None:
    assert respond(request_).status == 404


def test_a_web_page_cannot_reach_the_tables_through_its_visitor() -> None:
    status, error = error_of(respond(post(b"{}", origin="https://example.org")))
    assert (status, error["__type"]) == (400, "com.amazon.coral.service#AccessDeniedException")


def respond_signed(request: HttpRequest) -> HttpResponse:
    return DynamoDbProtocol(ScriptedBackend({}), SignatureCheck("id", "secret")).respond(request)


def allowances(response: HttpResponse) -> dict[str, str]:
    return {name: value for name, value in response.headers if name.startswith("Access-Control-")}


ALLOWED = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "x-amzn-RequestId,x-amzn-ErrorType,x-amz-request-id,x-amz-id-2,"
    "x-amzn-ErrorMessage,Date",
}
ASKED = {"access-control-request-method": "POST", "access-control-request-headers": "x-amz-target, x-amz-date"}


def test_a_web_page_that_can_sign_its_requests_may_send_them() -> None:
    asked = respond_signed(HttpRequest("OPTIONS", "/", {"origin": "https://example.org", **ASKED}, b"", True))
    assert (asked.status, asked.body) == (200, b"")
    assert allowances(asked) == ALLOWED | {
        "Access-Control-Max-Age": "172800",
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": "x-amz-target, x-amz-date",
    }
    told = respond_signed(post(b"{}", origin="https://example.org", **ASKED))
    assert error_of(told)[1]["__type"] == "com.amazon.coral.service#MissingAuthenticationTokenException"
    assert allowances(told) == ALLOWED
    assert allowances(respond_signed(HttpRequest("GET", "/", {"origin": "https://example.org"}, b"", True))) == ALLOWED


def test_nothing_is_allowed_to_pages_that_did_not_ask_or_need_no_signature() -> None:
    assert not allowances(respond_signed(post(b"{}")))
    assert not allowances(respond(post(b"{}", origin="https://example.org")))
    asked = HttpRequest("OPTIONS", "/", {"origin": "https://example.org", **ASKED}, b"", True)
    assert (respond(asked).status, allowances(respond(asked))) == (400, {})
