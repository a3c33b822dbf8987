"""The faults that DynamoDB finds in requests, in the order in which it looks, and DynamoDB Local's words for them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One kind of fault: where in the order it is found, and how the service and DynamoDB Local put it.

    `{}` stands for any text; text that both quote must be the same where it is written as `{same}`.
    """

    stage: int
    service: str
    local: tuple[str, ...] = ()


_CONSTRAINT, _REQUEST, _TABLE, _SCHEMA, _ITEM = range(5)
_KEY_MISMATCH = "The provided key element does not match the schema"
_LOCAL_NAME = (
    "Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the "
    "characters a-z, A-Z, 0-9, '_', '-', and '.'"
)

FAULTS = (
    # Single members, before anything else is looked at.
    Fault(
        _CONSTRAINT,
        "{} validation error{} detected: {}",
        (
            "Value {} failed to satisfy constraint: {}",
            "Member must {}",
            _LOCAL_NAME,
            "Item to put in PutItem cannot be null",
            "Cannot have null key for GetItem, DeleteItem, or UpdateItem",
            "Batch{}Item {} have {} requests set",
            "Limit must be greater than or equal to 1",
            "Return values set to invalid value",
            "Select must be {}",
        ),
    ),
    # The request by itself.
    Fault(_REQUEST, "The parameter cannot be converted to a numeric value{}", ("A value provided cannot be converted into a number",)),
    Fault(_REQUEST, "Attempting to store more than 38 significant digits in a Number", ("DynamoDB only supports precision up to 38 digits",)),
    Fault(_REQUEST, "One or more parameter values were invalid: Input collection {same} contains duplicates.", ("One or more parameter values were invalid: Input collection {same} contains duplicates",)),
    Fault(_REQUEST, "One or more parameter values were invalid: Input collection {}of type BS contains duplicates.", ("One or more parameter values were invalid: Input collection of type BS contains duplicates.",)),
    Fault(_REQUEST, "Invalid {same}Expression: The BETWEEN operator requires {}", ("Invalid {same}Expression: The BETWEEN operator requires {}",)),
    Fault(_REQUEST, "Invalid {same}Expression: Two document paths overlap with each other; {}; path one: {same}, path two: {}", ("Invalid {same}Expression: Two document paths overlap with each other; {}; path one: {same}, path two: {}",)),
    Fault(_REQUEST, "Invalid {}Expression: {}"),
    Fault(_REQUEST, "ExpressionAttribute{}"),
    # The table.
    Fault(_TABLE, "Requested resource not found{}", ("Cannot do operations on a non-existent table",)),
    # The request against the schema of the table.
    Fault(_SCHEMA, _KEY_MISMATCH, ("The number of conditions on the keys is invalid", "Invalid attribute value type", "One or more parameter values were invalid: Type mismatch for key", "One of the required keys was not given a value")),
    Fault(_SCHEMA, "One or more parameter values were invalid: Type mismatch for key {}", ("Invalid attribute value type", "One or more parameter values were invalid: Type mismatch for key")),
    Fault(_SCHEMA, "One or more parameter values were invalid: Type mismatch for Index Key {}", ("Invalid attribute value type", "One or more parameter values were invalid: Type mismatch for Index Key")),
    Fault(_SCHEMA, "One or more parameter values were invalid: Missing the key {} in the item", ("One of the required keys was not given a value",)),
    Fault(_SCHEMA, "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes", ("Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes",)),
    Fault(_SCHEMA, "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes", ("Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes",)),
    Fault(_SCHEMA, "The provided starting key is {}", ("The provided starting key {}",)),
    Fault(_SCHEMA, "Key attributes must be scalars{}"),
    # The item.
    Fault(_ITEM, "The document path provided in the update expression is invalid for update"),
    Fault(_ITEM, "The provided expression refers to an attribute that does not exist in the item"),
    Fault(_ITEM, "An operand in the update expression has an incorrect data type"),
    Fault(_ITEM, "The conditional request failed"),
)


def says_the_same(service: str, local: str) -> bool:
    """Whether DynamoDB Local's message stands, in its own words, for the fault that the service's message names."""
    pairs = ((fault.service, words) for fault in FAULTS for words in fault.local)
    return any(_match(first, service) is not None and _match(first, service) == _match(words, local) for first, words in pairs)


def is_earlier(service: str, local: str) -> bool:
    """Whether the service finds the first fault before the second, which DynamoDB Local has found."""
    first, second = _stage(service, is_local=False), _stage(local, is_local=True)
    return first is not None and second is not None and first < second


def _stage(message: str, *, is_local: bool) -> int | None:
    stages = [
        fault.stage
        for fault in FAULTS
        for words in (fault.service, *(fault.local if is_local else ()))
        if _match(words, message) is not None
    ]
    return min(stages) if stages else None


def _match(words: str, message: str) -> tuple[str, ...] | None:
    """The texts at `{same}`, or None if the message is another."""
    pattern = re.escape(words).replace(re.escape("{same}"), "(.*)").replace(re.escape("{}"), ".*")
    found = re.fullmatch(pattern, message, re.DOTALL)
    return None if found is None else found.groups()
