"""Lambda's errors for those of this package."""

from __future__ import annotations

from dataclasses import dataclass

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
    "InvalidParameterValueException": 400,
    "InvalidRequestContentException": 400,
    "RequestTooLargeException": 413,
    "ResourceNotFoundException": 404,
    "DurableExecutionAlreadyStartedException": 409,
    "CallbackTimeoutException": 400,
    "TooManyRequestsException": 429,
    "UnknownOperationException": 404,
    "ServiceException": 500,
}
_CODES: tuple[tuple[type[JobtableError], str], ...] = (
    (TokenRefusedError, "InvalidParameterValueException"),
    (ValueRefusedError, "InvalidParameterValueException"),
    (NotFoundError, "ResourceNotFoundException"),
    (AlreadyExistsError, "DurableExecutionAlreadyStartedException"),
    (TaskClosedError, "CallbackTimeoutException"),
    (ConflictError, "TooManyRequestsException"),
)


@dataclass(frozen=True)
class LambdaRefusal:
    """An error as Lambda sends it."""

    code: str
    message: str
    status: int


def refusal_of(error: JobtableError) -> LambdaRefusal:
    """Return what Lambda sends for an error."""
    if isinstance(error, OperationRefused):
        return LambdaRefusal(error.code, error.message, _STATUSES.get(error.code, 400))
    code = next((code for kind, code in _CODES if isinstance(error, kind)), "ServiceException")
    return LambdaRefusal(code, str(error), _STATUSES[code])
