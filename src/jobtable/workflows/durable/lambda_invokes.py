"""Lambda's operations that call functions, and those that answer the callbacks of durable ones."""

from __future__ import annotations

import base64
import json
from typing import Any

from jobtable.errors import DefinitionError, OperationRefused
from jobtable.jobs.read.logs import JobLogs
from jobtable.workflows.durable.lambda_calls import LambdaCall
from jobtable.workflows.durable.lambda_errors import lambda_error
from jobtable.workflows.durable.operation_updates import MOST_INVOKE_BYTES, MOST_RESULT_BYTES
from jobtable.workflows.durable.verbs import LONGEST_INVOKE_SECONDS, Invoked
from jobtable.workflows.function_calls import describe_import
from jobtable.workflows.functions import Function

_MOST_LOG_BYTES = 4096
_MOST_LOG_LINES = 1000
_ATTEMPTS_OF_EVENTS = 3


def invoke(call: LambdaCall) -> dict[str, Any]:
    """Call a function and wait for its answer, or start it, or only check that it could be called."""
    request = call.request
    kind = request.get("InvocationType") or "RequestResponse"
    try:
        function = _function(call)
    except DefinitionError as error:
        if kind != "RequestResponse":
            raise
        return {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": describe_import(error).cause}
    payload = _payload(request.get("Payload") or b"", is_event=kind == "Event")
    name = request.get("DurableExecutionName")
    if name is not None and not function.is_durable:
        message = f"DurableExecutionName cannot be used: {function.name} is not a durable function."
        raise lambda_error("InvalidParameterValueException", message)
    client = _client_context(request.get("ClientContext"))
    if kind == "DryRun":
        return {"StatusCode": 204}
    if kind == "Event":
        return _start(call, function, payload, name)
    return _answer(call, function, payload, name, client)


def succeed_callback(call: LambdaCall) -> dict[str, Any]:
    """Answer a callback with a result."""
    result = call.request.get("Result")
    text = _text(result, "InvalidParameterValueException") if result else None
    call.service.succeed_callback(call.request["CallbackId"], text)
    return {}


def fail_callback(call: LambdaCall) -> dict[str, Any]:
    """Answer a callback with an error."""
    call.service.fail_callback(call.request["CallbackId"], call.request.get("Error"))
    return {}


def beat_callback(call: LambdaCall) -> dict[str, Any]:
    """Report that a callback is still worked on."""
    call.service.beat_callback(call.request["CallbackId"])
    return {}


def _function(call: LambdaCall) -> Function:
    target = call.target()
    function = call.service.core.find_function(target.name, target.qualifier)
    if function is None:
        raise call.no_function(target.name if target.qualifier is None else f"{target.name}:{target.qualifier}")
    return function


def _payload(sent: bytes | str, *, is_event: bool) -> str:
    size = len(sent.encode() if isinstance(sent, str) else sent)
    if is_event and size > MOST_INVOKE_BYTES:
        message = f"{size} byte payload is too large for the Event invocation type (limit {MOST_INVOKE_BYTES} bytes)"
        raise lambda_error("RequestTooLargeException", message)
    if size > MOST_RESULT_BYTES:
        message = f"Request must be smaller than {MOST_RESULT_BYTES} bytes for the InvokeFunction operation"
        raise lambda_error("RequestTooLargeException", message)
    text = _text(sent, "InvalidRequestContentException") or "{}"
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"Could not parse request body into json: {error}"
        raise lambda_error("InvalidRequestContentException", message) from error
    return text


def _client_context(sent: str | None) -> dict[str, Any] | None:
    """Return what a client says about itself; only a function that is invoked for an answer learns of it."""
    if not sent:
        return None
    try:
        found = json.loads(base64.b64decode(sent, validate=True))
    except (ValueError, RecursionError) as error:
        raise _bad_client_context() from error
    if not isinstance(found, dict):
        raise _bad_client_context()
    return found


def _bad_client_context() -> OperationRefused:
    message = "Client context must be a valid Base64-encoded JSON object."
    return lambda_error("InvalidRequestContentException", message)


def _text(sent: bytes | str, code: str) -> str:
    try:
        return sent if isinstance(sent, str) else sent.decode()
    except UnicodeDecodeError as error:
        raise lambda_error(code, f"The body is not text in UTF-8: {error}") from error


def _start(call: LambdaCall, function: Function, payload: str, name: str | None) -> dict[str, Any]:
    if not function.is_durable:
        call.service.call_later(function, payload, max_attempts=_ATTEMPTS_OF_EVENTS)
        return {"StatusCode": 202}
    started = call.service.starts.start(function, payload, name, region=call.arns.region)
    return {"StatusCode": 202, "DurableExecutionArn": str(call.service.core.arn_of(started))}


def _answer(
    call: LambdaCall, function: Function, payload: str, name: str | None, client: dict[str, Any] | None
) -> dict[str, Any]:
    if function.durable is not None and function.durable.execution_timeout_seconds > LONGEST_INVOKE_SECONDS:
        message = "You cannot synchronously invoke a durable function with an executionTimeout greater than 15 minutes."
        raise lambda_error("InvalidParameterValueException", message)
    invoked = call.service.try_invoke(
        function, payload, name=name, wait_seconds=LONGEST_INVOKE_SECONDS, region=call.arns.region, client=client
    )
    answer: dict[str, Any] = {"StatusCode": 200, "ExecutedVersion": function.version, "Payload": invoked.payload or ""}
    if invoked.execution is not None:
        answer["DurableExecutionArn"] = str(call.service.core.arn_of(invoked.execution))
    if invoked.is_error:
        answer["FunctionError"] = "Unhandled"
    if call.request.get("LogType") == "Tail":
        answer["LogResult"] = base64.b64encode(_log_of(call, invoked, function.version)).decode()
    return answer


def _log_of(call: LambdaCall, invoked: Invoked, version: str) -> bytes:
    """Return the end of the log of a call, in Lambda's frame."""
    jobs = call.service.core.jobs
    lines = [each.message for each in JobLogs(jobs.store, jobs.objects).tail(invoked.job_id, _MOST_LOG_LINES)]
    start = f"START RequestId: {invoked.job_id} Version: {version}"
    text = "\n".join([start, *lines, f"END RequestId: {invoked.job_id}", ""])
    return text.encode()[-_MOST_LOG_BYTES:]
