"""Every error that Jobtable raises.

    JobtableError
    ├── DefinitionError            a table, key or entity is declared wrongly; raised at import
    ├── ValueRefusedError          a value cannot be stored or put into a key; raised before anything is sent
    ├── ItemShapeError             a stored item does not have the shape that its entity declares
    ├── NotFoundError              there is no item under the key
    ├── ConflictError              the item is not in the state that the caller asked for
    │   ├── AlreadyExistsError     add() found an item under the key
    │   ├── ConditionFailedError   the condition of a write did not hold; carries the item that is there
    │   ├── TransactionFailedError an action of a transaction did not hold; names each one that failed
    │   ├── JobStateError          a job's status does not allow what was asked for
    │   ├── LeaseLostError         a worker no longer holds the job that it writes about
    │   ├── TaskClosedError        a question to a person was answered before, or has timed out
    │   └── DependencyCycleError   jobs would wait for each other
    ├── TokenRefusedError          a token is not that of the question which it was shown for
    ├── TaskError                  a task cannot be found, or is not called with its parameters
    ├── CursorError                a cursor is altered, or comes from another query
    ├── IncompleteBatchError       a batch did not go through in time; carries what is left
    ├── ConnectionUrlError         a store or object URL cannot be understood
    ├── SettingsError              a setting is unknown, or its value is wrong
    │   └── MissingExtraError      an optional dependency is not installed
    ├── ObjectNotFoundError        there is no object under the key
    ├── ObjectStoreError           object storage refused or failed
    │   └── ObjectStoreUnavailable retryable: it did not answer to the end, or has too much to do, or no room
    ├── ArchiveError               an exported file is cut, altered, or none
    ├── StorageError               the embedded engine's file cannot be used
    │   └── StorageLocked          retryable: another program keeps it locked
    └── RequestError               DynamoDB's answer to one request, from whichever backend; carries its code
        ├── ConditionalCheckFailed
        ├── DuplicateItem          an INSERT statement found an item under its key
        ├── TransactionCanceled
        ├── TransactionConflict    retryable
        ├── TransactionInProgress  retryable
        ├── IdempotencyMismatch
        ├── RequestRefused         the request is malformed, or breaks a limit
        ├── TableNotFound
        ├── TableInUse
        ├── CollectionTooLarge
        ├── StreamExpired          a stream position is older than what is kept
        ├── AccessDenied
        ├── Throttled              retryable
        └── BackendUnavailable     retryable: no answer, or the service failed

`retryable` says whether the same call may succeed when it is made again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar


def kind_and_text(error: BaseException) -> str:
    """What is told of an error of somebody else's code: its kind, and its text if it has one."""
    text = str(error)
    return f"{type(error).__qualname__}: {text}" if text else type(error).__qualname__


class JobtableError(Exception):
    """The root of the tree."""

    retryable: ClassVar[bool] = False


class DefinitionError(JobtableError):
    """A table, key or entity is declared wrongly."""


class ValueRefusedError(JobtableError, ValueError):
    """A value cannot be stored or put into a key."""


class ItemShapeError(JobtableError):
    """A stored item does not have the shape that its entity declares."""


class NotFoundError(JobtableError, LookupError):
    """There is no item under the key, or nothing of the name that was asked for."""

    @property
    def kind(self) -> str | None:
        """What is missing, in one word, where the message says it: `job` in "there is no job J"; else None."""
        found = re.search(r"there is no ([a-z]+)", str(self))
        return found and found[1]


class ConflictError(JobtableError):
    """The item is not in the state that the caller asked for."""


class AlreadyExistsError(ConflictError):
    """add() found an item under the key."""


class ConditionFailedError(ConflictError):
    """The condition of a write did not hold; `current` is the entity that is there."""

    def __init__(self, message: str, current: Any = None) -> None:
        super().__init__(message)
        self.current = current


class TransactionFailedError(ConflictError):
    """A transaction did not happen; `failures` says which actions did not hold, and why."""

    def __init__(self, message: str, failures: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


class JobStateError(ConflictError):
    """A job's status does not allow what was asked for."""


class LeaseLostError(ConflictError):
    """A worker no longer holds the job that it writes about: another one may run it. Nothing was written."""


class TaskClosedError(ConflictError):
    """A question to a person was answered before, or has timed out."""


class DependencyCycleError(ConflictError):
    """Jobs would wait for each other."""


class TokenRefusedError(JobtableError):
    """A token is not that of the question which it was shown for."""


class TaskError(JobtableError):
    """A task cannot be found, or is not called with its parameters."""


class CursorError(JobtableError, ValueError):
    """A cursor is altered, or comes from another query."""


class IncompleteBatchError(JobtableError):
    """A batch did not go through in time; `left` holds what its last request left undone. Do all of it again."""

    retryable = True

    def __init__(self, message: str, left: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.left = left


class ConnectionUrlError(JobtableError, ValueError):
    """A store or object URL cannot be understood."""


class SettingsError(JobtableError, ValueError):
    """A setting is unknown, or its value is wrong; says where it stands."""


class MissingExtraError(SettingsError):
    """An optional dependency is not installed; the message says what to install."""


class ObjectNotFoundError(JobtableError, LookupError):
    """There is no object under the key."""


class ObjectStoreError(JobtableError):
    """Object storage refused or failed."""


class ObjectStoreUnavailable(ObjectStoreError):
    """Object storage did not answer to the end, or has too much to do, or no room."""

    retryable = True


class ArchiveError(JobtableError):
    """An exported file is cut, altered, or no exported file at all; nothing was read from it."""


class StorageError(JobtableError):
    """The embedded engine's file cannot be used: locked away, damaged, or from a newer version."""


class StorageLocked(StorageError):
    """The embedded engine's file could not be opened, because another program has kept it locked all the while."""

    retryable = True


class RequestError(JobtableError):
    """DynamoDB's answer to one request: its error code, its message, and what else it sent along."""

    code: str = "InternalServerError"
    has_waited = False
    """Whether the backend has tried for some seconds before it gave up: then it is not asked again at once."""

    def __init__(self, message: str, *, code: str | None = None, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.details: Mapping[str, Any] = details or {}

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class ConditionalCheckFailed(RequestError):
    """The condition of one write did not hold; details["Item"] is the old item where it was asked for."""

    code = "ConditionalCheckFailedException"


class DuplicateItem(RequestError):
    """A PartiQL INSERT found an item under its key."""

    code = "DuplicateItemException"


class TransactionCanceled(RequestError):
    """details["CancellationReasons"] has one entry per action, in order."""

    code = "TransactionCanceledException"


class TransactionConflict(RequestError):
    """A transaction is working on the item."""

    code = "TransactionConflictException"
    retryable = True


class TransactionInProgress(RequestError):
    """A transaction with this token is under way."""

    code = "TransactionInProgressException"
    retryable = True


class IdempotencyMismatch(RequestError):
    """The token was used before, with other actions."""

    code = "IdempotentParameterMismatchException"


class RequestRefused(RequestError):
    """The request is malformed, or breaks a limit."""

    code = "ValidationException"


class TableNotFound(RequestError):
    """The table, index or stream is not there."""

    code = "ResourceNotFoundException"


class TableInUse(RequestError):
    """The table is there already, or is being changed."""

    code = "ResourceInUseException"


class CollectionTooLarge(RequestError):
    """An item collection of a table with a local index grew over 10 GB."""

    code = "ItemCollectionSizeLimitExceededException"


class StreamExpired(RequestError):
    """The stream position is older than what is kept, or the iterator is too old."""

    code = "TrimmedDataAccessException"


class AccessDenied(RequestError):
    """The credentials are missing, wrong, or not allowed to do this."""

    code = "AccessDeniedException"


class Throttled(RequestError):
    """Too many requests; wait and ask again."""

    code = "ThrottlingException"
    retryable = True


class BackendUnavailable(RequestError):
    """No answer came, or the service failed: whether the request took effect is unknown."""

    code = "InternalServerError"
    retryable = True


_OWN_CODES: tuple[type[RequestError], ...] = (
    ConditionalCheckFailed,
    DuplicateItem,
    TransactionCanceled,
    TransactionConflict,
    TransactionInProgress,
    IdempotencyMismatch,
    RequestRefused,
    TableNotFound,
    TableInUse,
    CollectionTooLarge,
    StreamExpired,
    AccessDenied,
    Throttled,
    BackendUnavailable,
)
_CLASS_OF_CODE: dict[str, type[RequestError]] = {
    **{cls.code: cls for cls in _OWN_CODES},
    "SerializationException": RequestRefused,
    "UnknownOperationException": RequestRefused,
    "TableNotFoundException": TableNotFound,
    "IndexNotFoundException": TableNotFound,
    "TableAlreadyExistsException": TableInUse,
    "TableInUseException": TableInUse,
    "ExpiredIteratorException": StreamExpired,
    "MissingAuthenticationTokenException": AccessDenied,
    "UnrecognizedClientException": AccessDenied,
    "InvalidSignatureException": AccessDenied,
    "IncompleteSignatureException": AccessDenied,
    "ExpiredTokenException": AccessDenied,
    "ProvisionedThroughputExceededException": Throttled,
    "RequestLimitExceeded": Throttled,
    "LimitExceededException": Throttled,  # a third reader of a shard of a stream, or too many tables change at once
    "ReplicatedWriteConflictException": TransactionConflict,
    "ServiceUnavailable": BackendUnavailable,
    "ServiceUnavailableException": BackendUnavailable,
    "InternalFailure": BackendUnavailable,
    "InternalServerErrorException": BackendUnavailable,
}


def request_error(code: str, message: str, details: Mapping[str, Any] | None = None) -> RequestError:
    """The error for a DynamoDB error code; an unknown code gives a plain RequestError that carries it."""
    return _CLASS_OF_CODE.get(code, RequestError)(message, code=code, details=details)
