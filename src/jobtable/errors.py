"""Every error that Jobtable raises.

    JobtableError
    ├── DefinitionError            the declaration of a table, key or entity is invalid; raised at import
    ├── ValueRefusedError          a value cannot be stored or used in a key; raised before anything is sent
    ├── ItemShapeError             a stored item does not have the shape that its entity declares
    ├── NotFoundError              nothing has this key or name; carries its kind and its key
    ├── ConflictError              the item is not in the state that the caller expects
    │   ├── AlreadyExistsError     add() found an item with the same key
    │   ├── ConditionFailedError   the condition of a write is not met; carries the current item
    │   ├── TransactionFailedError some actions of a transaction failed, so none took effect; carries each failure
    │   ├── JobStateError          the status of a job does not allow the operation
    │   ├── LeaseLostError         a worker no longer holds the lease of the job that it reports on
    │   ├── TaskClosedError        a question to a person was already answered, or has timed out
    │   ├── StaleProposalError     what a proposal changes has changed since; nothing was applied
    │   └── DependencyCycleError   jobs would wait for each other
    ├── TokenRefusedError          a token belongs to another question
    ├── TaskError                  a task cannot be imported, or its parameters are invalid
    ├── CursorError                a cursor was altered, or comes from another query
    ├── IncompleteBatchError       a batch did not finish in time; carries the remaining items
    ├── ConnectionUrlError         the URL of a store or an object store is invalid
    ├── SettingsError              a setting is unknown, or its value is invalid
    │   └── MissingExtraError      an optional dependency is not installed
    ├── ObjectNotFoundError        no object has this key
    ├── ObjectStoreError           object storage refused a request or failed
    │   └── ObjectStoreUnavailable retryable: it sent no complete answer, is overloaded, or is full
    ├── AssistError                a model could not be asked, or its answer cannot be used
    │   ├── NoModelError           no provider is set, and the task has no way without one
    │   ├── BudgetExceededError    the request might exceed a budget of the job; nothing was sent
    │   ├── AnswerRefusedError     no answer of the model was valid; carries the fault of each
    │   └── ProviderError          the provider refused the request or failed; carries the fault
    ├── ArchiveError               a file is no export, or was cut or altered
    ├── StorageError               the embedded engine cannot use its file
    │   └── StorageLocked          retryable: another program keeps the file locked
    ├── OperationRefused           Step Functions' or Lambda's answer to a refused operation; carries its code
    └── RequestError               DynamoDB's answer to a failed request, from any backend; carries its code
        ├── ConditionalCheckFailed
        ├── DuplicateItem          an INSERT statement found an item with the same key
        ├── TransactionCanceled
        ├── TransactionConflict    retryable
        ├── TransactionInProgress  retryable
        ├── IdempotencyMismatch
        ├── RequestRefused         the request is malformed, or exceeds a limit
        ├── TableNotFound
        ├── TableInUse
        ├── CollectionTooLarge
        ├── StreamExpired          a stream position is older than the stream's records
        ├── AccessDenied
        ├── Throttled              retryable
        └── BackendUnavailable     retryable: no answer, or the service failed

Read `retryable`, `reason` and the class to decide; never the text. The text is for people, and changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar


def kind_and_text(error: BaseException) -> str:
    """Describe an error of other code: its class, and its text if it has one."""
    text = str(error)
    return f"{type(error).__qualname__}: {text}" if text else type(error).__qualname__


class ErrorReason(StrEnum):
    """Why an operation was refused, where the class of the error does not say enough to decide."""

    JOB_ACTIVE = "job_active"
    """The job has not ended."""
    JOB_ENDED = "job_ended"
    JOB_DELETED = "job_deleted"
    """The job is being deleted."""
    JOB_CHANGED = "job_changed"
    """The job changed meanwhile: read it again."""
    JOB_HAS_CHILDREN = "job_has_children"
    JOB_HAS_OWNER = "job_has_owner"
    """The job belongs to a system, whose verbs change it."""
    TARGET_NOT_EMPTY = "target_not_empty"
    """An import would meet existing items."""
    TABLE_MISSING = "table_missing"
    """The table is declared but not deployed."""
    INDEX_MISSING = "index_missing"
    """The index is declared but not deployed."""
    OBJECTS_UNSET = "objects_unset"
    """The store does not imply an object store."""
    UNAUTHENTICATED = "unauthenticated"
    """The server requires a valid token."""


class JobtableError(Exception):
    """The root of the tree."""

    retryable: ClassVar[bool] = False
    """Whether the same call may succeed later."""

    def __init__(self, message: str = "", *, hint: str | None = None, reason: ErrorReason | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        """What to do. The command line and the HTTP API replace it where they know better advice."""
        self.reason = reason

    @property
    def statement(self) -> str:
        """What happened, without the hint."""
        return self.message

    def __str__(self) -> str:
        return f"{self.statement}; {self.hint}" if self.hint else self.statement


class DefinitionError(JobtableError):
    """A table, key or entity is declared wrongly."""


class ValueRefusedError(JobtableError, ValueError):
    """A value cannot be stored or put into a key."""


class ItemShapeError(JobtableError):
    """A stored item does not have the shape that its entity declares."""


class NotFoundError(JobtableError, LookupError):
    """Nothing has this key or name: `missing` makes the usual one."""

    def __init__(
        self, message: str = "", *, kind: str | None = None, key: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        """What is missing, as in `job` or `access token`."""
        self.key = key


def missing(kind: str, key: object, *, hint: str | None = None) -> NotFoundError:
    """Return the error that says that no thing of this kind has this key."""
    return NotFoundError(f"there is no {kind} {key}", kind=kind, key=str(key), hint=hint)


class ConflictError(JobtableError):
    """The item is not in the state that the caller expects."""


class AlreadyExistsError(ConflictError):
    """add() found an item with the same key."""


class ConditionFailedError(ConflictError):
    """The condition of a write is not met; `current` is the stored entity."""

    def __init__(self, message: str, current: Any = None) -> None:
        super().__init__(message)
        self.current = current


class TransactionFailedError(ConflictError):
    """Some actions of a transaction failed, so none took effect; `failures` has each of them."""

    def __init__(self, message: str, failures: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


class JobStateError(ConflictError):
    """The status of a job does not allow the operation."""


class LeaseLostError(ConflictError):
    """A worker no longer holds the lease of the job that it reports on. Nothing was written."""


class TaskClosedError(ConflictError):
    """A question to a person was already answered, or has timed out."""


class StaleProposalError(ConflictError):
    """What a proposal changes has changed since it was made. Nothing was applied, and it still waits."""


class DependencyCycleError(ConflictError):
    """Jobs would wait for each other."""


class TokenRefusedError(JobtableError):
    """A token belongs to another question."""


class TaskError(JobtableError):
    """A task cannot be imported, or its parameters are invalid."""


class CursorError(JobtableError, ValueError):
    """A cursor was altered, or comes from another query."""


class IncompleteBatchError(JobtableError):
    """A batch did not finish in time; `left` has what its last request did not do. Repeat the whole batch."""

    retryable = True

    def __init__(self, message: str, left: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.left = left


class ConnectionUrlError(JobtableError, ValueError):
    """The URL of a store or an object store is invalid."""


class SettingsError(JobtableError, ValueError):
    """A setting is unknown, or its value is invalid; the message names the source."""


class MissingExtraError(SettingsError):
    """An optional dependency is not installed; the message says what to install."""


class ObjectNotFoundError(JobtableError, LookupError):
    """No object has this key."""


class ObjectStoreError(JobtableError):
    """Object storage refused a request or failed."""


class ObjectStoreUnavailable(ObjectStoreError):
    """Object storage sent no complete answer, is overloaded, or is full."""

    retryable = True


class AssistError(JobtableError):
    """A model could not be asked, or its answer cannot be used."""


class NoModelError(AssistError):
    """No provider is set, and the caller has no way without one."""


class BudgetExceededError(AssistError):
    """A request might exceed the budget of a job. Nothing was sent."""


class AnswerRefusedError(AssistError):
    """None of a model's answers was valid."""

    def __init__(self, message: str, faults: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class ArchiveError(JobtableError):
    """A file is no export, or was cut or altered; nothing was imported from it."""


class StorageError(JobtableError):
    """The embedded engine cannot use its file: it is locked, damaged, or from a newer version."""


class StorageLocked(StorageError):
    """Another program kept the embedded engine's file locked for too long."""

    retryable = True


class OperationRefused(JobtableError):
    """Step Functions' or Lambda's answer to an operation that is refused: its code, its message and further members."""

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "ValidationException",
        details: Mapping[str, Any] | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        """Of the HTTP response, if the service has a table of them; None where the protocol knows it by the code."""
        self.details: Mapping[str, Any] = details or {}

    @property
    def statement(self) -> str:
        return f"{self.code}: {self.message}"


class RequestError(JobtableError):
    """DynamoDB's answer to a failed request, from any backend: its code, its message and further members."""

    code: str = "InternalServerError"
    has_waited = False
    """Whether the backend already retried for some seconds."""

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
        hint: str | None = None,
        reason: ErrorReason | None = None,
    ) -> None:
        super().__init__(message, hint=hint, reason=reason)
        self.code = code or type(self).code
        self.details: Mapping[str, Any] = details or {}

    @property
    def statement(self) -> str:
        return f"{self.code}: {self.message}"


class ConditionalCheckFailed(RequestError):
    """The condition of one write is not met; details["Item"] is the stored item if the request asked for it."""

    code = "ConditionalCheckFailedException"


class DuplicateItem(RequestError):
    """A PartiQL INSERT found an item with the same key."""

    code = "DuplicateItemException"


class TransactionCanceled(RequestError):
    """A transaction was cancelled; details["CancellationReasons"] has one entry per action, in order."""

    code = "TransactionCanceledException"


class TransactionConflict(RequestError):
    """Another transaction is working on the item."""

    code = "TransactionConflictException"
    retryable = True


class TransactionInProgress(RequestError):
    """A transaction with this token is in progress."""

    code = "TransactionInProgressException"
    retryable = True


class IdempotencyMismatch(RequestError):
    """The token was already used with other actions."""

    code = "IdempotentParameterMismatchException"


class RequestRefused(RequestError):
    """The request is malformed, or exceeds a limit."""

    code = "ValidationException"


class TableNotFound(RequestError):
    """The table, index or stream does not exist."""

    code = "ResourceNotFoundException"


class TableInUse(RequestError):
    """The table already exists, or is being changed."""

    code = "ResourceInUseException"


class CollectionTooLarge(RequestError):
    """An item collection of a table with a local index exceeds 10 GB."""

    code = "ItemCollectionSizeLimitExceededException"


class StreamExpired(RequestError):
    """The stream position is older than the stream's records, or the iterator has expired."""

    code = "TrimmedDataAccessException"


class AccessDenied(RequestError):
    """The credentials are missing or invalid, or do not allow this."""

    code = "AccessDeniedException"


class Throttled(RequestError):
    """Too many requests; wait before you retry."""

    code = "ThrottlingException"
    retryable = True


class BackendUnavailable(RequestError):
    """No answer came, or the service failed: the request may have taken effect."""

    code = "InternalServerError"
    retryable = True


_CLASS_OF_CODE: dict[str, type[RequestError]] = {
    **{cls.code: cls for cls in RequestError.__subclasses__()},
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
    """Return the error for a DynamoDB error code: a plain RequestError for an unknown one."""
    return _CLASS_OF_CODE.get(code, RequestError)(message, code=code, details=details)


_NO_INDEX = "The table does not have the specified index"


def lacks_index(error: RequestError) -> bool:
    """Return whether a request named an index that its table lacks: DynamoDB has no code of its own for this."""
    return error.message.startswith(_NO_INDEX)
