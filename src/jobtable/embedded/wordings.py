"""Faults of attribute values that DynamoDB words in two ways, since only some operations read values in its new way."""

from __future__ import annotations

from jobtable.errors import RequestError, RequestRefused

_OLDER_READERS = frozenset({"BatchWriteItem", "Scan", "TransactGetItems", "TransactWriteItems"})


class ValueRefused(RequestRefused):
    """A value is none, with the words for it where values are read in the new way; `older` are the others."""

    def __init__(self, message: str, older: str) -> None:
        super().__init__(message)
        self.older = older


def in_words_of(operation: str, refusal: RequestError) -> RequestError:
    """The refusal of a request as the operation words it."""
    if operation in _OLDER_READERS and isinstance(refusal, ValueRefused):
        return RequestRefused(refusal.older)
    return refusal
