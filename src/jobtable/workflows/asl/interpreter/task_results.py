"""What a task hands to the next state, in the form of the service that answered."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import format_datetime
from uuid import UUID

from jobtable.workflows.asl.interpreter.strand import Strand, dump
from jobtable.workflows.asl.resources import Pattern, Resource, ResourceKind
from jobtable.workflows.asl.run import Json
from jobtable.workflows.functions import LATEST

_SERVICE_HEADERS = {"connection": "keep-alive", "Content-Type": "application/x-amz-json-1.0"}

_FUNCTION_HEADERS = {
    "Connection": "keep-alive",
    "Content-Type": "application/json",
    "x-amzn-Remapped-Content-Length": "0",
}


def shape_response(
    strand: Strand, resource: Resource, output: Json, *, is_async: bool = False, version: str = LATEST
) -> Json:
    """Return the answer of a service as Step Functions passes it on."""
    if resource.kind is not ResourceKind.SERVICE:
        return output
    if resource.service == "lambda":
        return _invocation(strand, output, version, is_async=is_async)
    if not isinstance(output, dict):
        return output
    return {**output, **_metadata(strand, output)}


def shape_result(
    strand: Strand, resource: Resource, output: Json, *, is_async: bool = False, version: str = LATEST
) -> Json:
    """Return the result of a task: the answer of the service, unless somebody else completed the task."""
    if resource.pattern is not Pattern.RESPONSE:
        return output
    return shape_response(strand, resource, output, is_async=is_async, version=version)


def _invocation(strand: Strand, returned: Json, version: str, *, is_async: bool) -> Json:
    executed = {} if is_async else {"X-Amz-Executed-Version": version}
    status = 202 if is_async else 200
    metadata = _metadata(
        strand,
        returned,
        {"Connection": "keep-alive", "Content-Type": "application/json", "x-amzn-Remapped-Content-Length": "0"}
        | executed,
        status,
    )
    if is_async:
        return {"Payload": {}, **metadata, "StatusCode": status}
    return {"ExecutedVersion": version, "Payload": returned, **metadata, "StatusCode": status}


def _metadata(
    strand: Strand, answered: Json, more: Mapping[str, str] = _SERVICE_HEADERS, status: int = 200
) -> dict[str, Json]:
    request_id = str(UUID(int=strand.run.random.getrandbits(128), version=4))
    headers = {
        **more,
        "Content-Length": str(len(dump(answered).encode(errors="surrogatepass"))),
        "Date": format_datetime(strand.run.now(), usegmt=True),
        "x-amzn-RequestId": request_id,
    }
    return {
        "SdkHttpMetadata": {
            "AllHttpHeaders": {name: [value] for name, value in headers.items()},
            "HttpHeaders": headers,
            "HttpStatusCode": status,
        },
        "SdkResponseMetadata": {"RequestId": request_id},
    }
