"""The errors of the operations, in AWS's words."""

from __future__ import annotations

from jobtable.errors import OperationRefused
from jobtable.workflows.asl.machine import InvalidDefinitionError


def invalid(message: str, reason: str | None = None) -> OperationRefused:
    """Return a ValidationException, with the reason that some of them have."""
    return OperationRefused(message, details=None if reason is None else {"reason": reason})


def refused(code: str, message: str) -> OperationRefused:
    """Return an error with this code."""
    return OperationRefused(message, code=code)


def invalid_name(name: str) -> OperationRefused:
    """Return the error for a name with characters that names do not have."""
    return refused("InvalidName", f"Invalid Name: '{name}'")


def invalid_arn(why: str) -> OperationRefused:
    """Return the error for an ARN that names nothing of the wanted kind."""
    return refused("InvalidArn", f"Invalid Arn: '{why}'")


def invalid_token() -> OperationRefused:
    """Return the error for a paging token or task token that nobody has issued."""
    return refused("InvalidToken", "Invalid Token: 'Invalid token'")


def invalid_definition(error: InvalidDefinitionError) -> OperationRefused:
    """Return the error with all faults of a definition."""
    faults = (
        # AWS writes `null` for a fault of no one place.
        f"{each.code}: {each.message} at {each.location or 'null'}"
        for each in error.diagnostics
        if each.severity == "ERROR"
    )
    return refused("InvalidDefinition", f"Invalid State Machine Definition: '{', '.join(faults)}'")


def machine_missing(arn: str) -> OperationRefused:
    """Return the error for a machine that does not exist."""
    return refused("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{arn}'")


def machine_deleting(arn: str) -> OperationRefused:
    """Return the error for a machine that is being deleted."""
    return refused("StateMachineDeleting", f"State Machine is being deleted: '{arn}'")


def execution_missing(arn: str) -> OperationRefused:
    """Return the error for an execution that does not exist."""
    return refused("ExecutionDoesNotExist", f"Execution Does Not Exist: '{arn}'")


def activity_missing(arn: str) -> OperationRefused:
    """Return the error for an activity that does not exist."""
    return refused("ActivityDoesNotExist", f"Activity Does Not Exist: '{arn}'")


def resource_missing(arn: str) -> OperationRefused:
    """Return the error for a tagged resource or a map run that does not exist."""
    return OperationRefused(f"Resource not found: '{arn}'", code="ResourceNotFound", details={"resourceName": arn})


def reference_missing() -> OperationRefused:
    """Return the error for an alias or version that does not exist."""
    return refused("ResourceNotFound", "Request references a resource that does not exist.")


def type_not_supported() -> OperationRefused:
    """Return the error for an operation on a machine of the other type."""
    return refused("StateMachineTypeNotSupported", "This operation is not supported by this type of state machine")
