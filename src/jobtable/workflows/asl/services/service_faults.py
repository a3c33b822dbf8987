"""What Step Functions reports when a service refuses: the name of its SDK's exception, and that SDK's words."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID, uuid5

from jobtable.workflows.asl.interpreter.strand import dump
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.run import CallService, Json

_NAMESPACE = UUID("5b0f2c1e-7a53-5c5e-9d0e-2f4f6f1f6a10")


def id_of_call(command: CallService, execution: str) -> str:
    """Return an id for a call, which is the same when the call is repeated."""
    return str(uuid5(_NAMESPACE, f"{execution}/{command.frame_id}/{command.visit}"))


def optimized_fault(name: str, service: str, code: str, message: str, request_id: str, status: int = 400) -> StateFault:
    """Return the fault of an optimized integration, which speaks as version 1 of the Java SDK."""
    about = f"Service: {service}; Status Code: {status}; Error Code: {code}; Request ID: {request_id}; Proxy: null"
    return StateFault(name, f"{message} ({about})")


def sdk_fault(name: str, service: str, message: str, request_id: str, status: int = 400) -> StateFault:
    """Return the fault of an SDK integration, which speaks as version 2 of the Java SDK."""
    return StateFault(name, f"{message} (Service: {service}, Status Code: {status}, Request ID: {request_id})")


def unusable_parameters(arguments: Json, reason: str) -> StateFault:
    """Return the fault of parameters that no request can be made from."""
    text = dump(arguments)
    return StateFault("States.Runtime", f"The Parameters '{text}' could not be used to start the Task: [{reason}]")


def members_of_request(command: CallService) -> Mapping[str, Json]:
    """Return the arguments of a call, or raise StateFault if they are not an object."""
    if not isinstance(command.arguments, dict):
        raise unusable_parameters(command.arguments, "The Parameters must be a JSON object")
    return command.arguments


def required_text(arguments: Mapping[str, Json], name: str) -> str:
    """Return a text among the arguments of a call, or raise StateFault."""
    if arguments.get(name) is None:
        raise unusable_parameters(arguments, f"The field '{name}' is required but was missing")
    return optional_text(arguments, name) or ""


def optional_text(arguments: Mapping[str, Json], name: str) -> str | None:
    """Return a text among the arguments of a call, or None if it is missing; StateFault if it is no text."""
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise unusable_parameters(arguments, f"The value for the field '{name}' must be a STRING")
    return value
