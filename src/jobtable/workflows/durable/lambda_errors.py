"""Lambda's errors for those of this package."""

from __future__ import annotations

from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    JobtableError,
    NotFoundError,
    OperationRefused,
    TaskClosedError,
    TokenRefusedError,
    ValueRefusedError,
)

_STATUSES = {
    "ResourceNotFoundException": 404,
    "UnknownOperationException": 404,
    "DurableExecutionAlreadyStartedException": 409,
    "ResourceConflictException": 409,
    "PreconditionFailedException": 412,
    "RequestTooLargeException": 413,
    "TooManyRequestsException": 429,
    "ServiceException": 500,
}
"""Of the errors whose status is not 400."""
_CODES: tuple[tuple[type[JobtableError], str], ...] = (
    (TokenRefusedError, "InvalidParameterValueException"),
    (ValueRefusedError, "InvalidParameterValueException"),
    (NotFoundError, "ResourceNotFoundException"),
    (AlreadyExistsError, "DurableExecutionAlreadyStartedException"),
    (TaskClosedError, "CallbackTimeoutException"),
    (ConflictError, "TooManyRequestsException"),
)


def lambda_error(code: str, message: str) -> OperationRefused:
    """Return an error with one of Lambda's codes."""
    return OperationRefused(message, code=code, status=_STATUSES.get(code, 400))


def refusal_of(error: JobtableError) -> OperationRefused:
    """Return what Lambda answers for an error of this package."""
    if isinstance(error, OperationRefused):
        return error if error.status is not None else lambda_error(error.code, error.message)
    code = next((code for kind, code in _CODES if isinstance(error, kind)), "ServiceException")
    return lambda_error(code, str(error))
