"""RedriveExecution, once for each client token."""

from __future__ import annotations

import hashlib
from datetime import timedelta

from jobtable.errors import ConflictError
from jobtable.workflows.asl.aws_api.aws_calls import Call, Response, seconds
from jobtable.workflows.asl.aws_api.execution_descriptions import redrive_status
from jobtable.workflows.asl.aws_api.executions_found import find_execution
from jobtable.workflows.asl.aws_api.refusals import refused
from jobtable.workflows.asl.catalogue.records import RedriveRequest
from jobtable.workflows.asl.entities import Execution

_TOKEN_VALID_FOR = timedelta(minutes=15)


def redrive(call: Call) -> Response:
    """RedriveExecution. The same client token within 15 minutes redrives nothing more."""
    execution = find_execution(call, call.request["executionArn"])
    token = call.request.get("clientToken")
    if token is not None and (earlier := _earlier(call, execution, token)) is not None:
        return {"redriveDate": seconds(earlier.redriven_at)}
    status, reason = redrive_status(call, execution)
    if status != "REDRIVABLE":
        raise refused("ExecutionNotRedrivable", reason or "Execution can only be redriven by its Map Run")
    try:
        redriven = call.executions.redrive(execution.machine, execution.name)
    except ConflictError as error:
        raise refused("ExecutionNotRedrivable", str(error)) from error
    at = redriven.redriven_at or call.now
    if token is not None:
        expires = int((call.now + _TOKEN_VALID_FOR).timestamp())
        call.store.put(
            RedriveRequest(
                machine=execution.machine,
                name=execution.name,
                token_sha256=_digest(token),
                redriven_at=at,
                time_to_live=expires,
            )
        )
    return {"redriveDate": seconds(at)}


def _earlier(call: Call, execution: Execution, token: str) -> RedriveRequest | None:
    key = RedriveRequest.key(machine=execution.machine, name=execution.name, token_sha256=_digest(token))
    found = call.store.find(key)
    if found is None or (found.time_to_live or 0) <= call.now.timestamp():
        return None
    return found


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
