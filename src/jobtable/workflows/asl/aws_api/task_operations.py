"""SendTaskSuccess, SendTaskFailure, SendTaskHeartbeat: the answers with a task token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jobtable.errors import NotFoundError, TaskClosedError, TokenRefusedError
from jobtable.workflows.asl.aws_api.aws_calls import Call, Response
from jobtable.workflows.asl.aws_api.refusals import invalid_token, refused
from jobtable.workflows.asl.aws_api.request_rules import MOST_DATA_BYTES
from jobtable.workflows.asl.json_text import JsonTextFault, read_json


def succeed(call: Call) -> Response:
    """SendTaskSuccess."""
    output = call.request["output"]
    try:
        read_json(output)
    except JsonTextFault as fault:
        raise refused("InvalidOutput", f"Invalid Output: '{fault}'") from fault
    if len(output.encode()) > MOST_DATA_BYTES:
        raise refused("InvalidOutput", f"Invalid Output: 'The output has more than {MOST_DATA_BYTES} bytes'")
    with _token_faults():
        call.executions.succeed(call.request["taskToken"], output)
    return {}


def fail(call: Call) -> Response:
    """SendTaskFailure."""
    with _token_faults():
        call.executions.fail(call.request["taskToken"], call.request.get("error"), call.request.get("cause"))
    return {}


def beat(call: Call) -> Response:
    """SendTaskHeartbeat."""
    with _token_faults():
        call.executions.beat(call.request["taskToken"])
    return {}


@contextmanager
def _token_faults() -> Iterator[None]:
    try:
        yield
    except TokenRefusedError as error:
        raise invalid_token() from error
    except (TaskClosedError, NotFoundError) as error:
        raise refused("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'") from error
