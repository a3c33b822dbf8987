"""DynamoDB's words: those that many faults begin with, and faults that it words in two ways.

DynamoDB has an older and a newer reader of attribute values. Which one an operation goes through decides what it says
of a value that is none.
"""

from __future__ import annotations

from jobtable.errors import RequestError, RequestRefused

INVALID = "One or more parameter values were invalid: "
IN_USE = "Attempt to change a resource which is still in use: "

_OLDER_READERS = frozenset(
    {
        *("BatchWriteItem", "Scan", "TransactGetItems", "TransactWriteItems"),
        *("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"),
    }
)


class ValueRefused(RequestRefused):
    """A value is not valid. The message is that of the newer reader, `older` that of the older one."""

    def __init__(self, message: str, older: str) -> None:
        super().__init__(message)
        self.older = older


class TooDeep(RequestRefused):
    """A value is nested too deeply."""


class EmptyName(RequestRefused):
    """An attribute has no name."""


class RefusedInStart(RequestRefused):
    """A fault of a value that DynamoDB reports as one of the starting key which has it."""


class NotOneType(RefusedInStart):
    """A value has no type, or several."""


class ItemTooLarge(RequestRefused):
    """A new item is too large."""


def in_words_of(operation: str, refusal: RequestError) -> RequestError:
    """The refusal of a request in the words of the reader that the operation goes through."""
    if operation in _OLDER_READERS and isinstance(refusal, ValueRefused):
        return RequestRefused(refusal.older)
    return refusal
