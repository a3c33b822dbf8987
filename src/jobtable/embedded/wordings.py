"""DynamoDB's words: those that many faults begin with, for JSON of the wrong type, and faults worded in two ways.

Members of the wrong JSON type are reported with the Java types that the service reads them into. The service has an
older and a newer reader of attribute values; which one an operation goes through decides what it says of an invalid
value.
"""

from __future__ import annotations

from typing import Any

from jobtable.errors import RequestError, RequestRefused

STRING, BOOLEAN = "class java.lang.String", "class java.lang.Boolean"
INTEGER, LONG = "class java.lang.Integer", "class java.lang.Long"
LIST, BYTES = "class java.util.List", "class java.nio.ByteBuffer"
MAP_OF_NAMES = "java.util.Map<java.lang.String, java.lang.String>"
MAP_OF_VALUES = "java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>"
ATTRIBUTE_VALUE = "class com.amazonaws.dynamodb.v20120810.AttributeValue"
_SCALARS = frozenset({STRING, BOOLEAN, INTEGER, LONG})
_JAVA_TYPES: dict[type, str] = {str: STRING, bool: BOOLEAN, int: INTEGER}


def expect_type(value: Any, expected: type) -> None:
    """Raise RequestRefused (SerializationException) unless the value has the JSON type; a bool is not an int."""
    if isinstance(value, expected) and not (expected is int and isinstance(value, bool)):
        return
    if expected in _JAVA_TYPES:
        raise wrong_json_type(value, _JAVA_TYPES[expected])
    message = "Unexpected field type"
    if isinstance(value, (dict, list)):
        message = f"Start of {'list' if isinstance(value, list) else 'structure or map'} found where not expected"
    raise RequestRefused(message, code="SerializationException")


def wrong_json_type(found: Any, wanted: str) -> RequestRefused:
    """Return the error for a member of a request with another JSON type than its Java type."""
    if isinstance(found, dict):
        message = "Start of structure or map found where not expected"
    elif isinstance(found, list):
        message = f"Unrecognized collection type {wanted}"
    elif wanted == ATTRIBUTE_VALUE:
        message = "Unexpected value type in payload"
    elif wanted not in _SCALARS:
        message = "Unexpected field type"
    elif wanted == BOOLEAN and isinstance(found, str):
        message = "Unexpected token received from parser"
    else:
        message = f"{_token(found)}_VALUE cannot be converted to {wanted.rpartition('.')[2]}"
    return RequestRefused(message, code="SerializationException")


def _token(scalar: Any) -> str:
    """Return the name of a JSON scalar in DynamoDB's parser."""
    if isinstance(scalar, bool):
        return str(scalar).upper()
    if isinstance(scalar, str):
        return "STRING"
    return "NUMBER" if isinstance(scalar, int) else "DECIMAL"


def is_deeper(found: Any, levels: int) -> bool:
    """Whether JSON has more levels of lists and maps than that, including itself."""
    level = [found]
    for _ in range(levels):
        inner = (member for outer in level for member in (outer.values() if isinstance(outer, dict) else outer))
        level = [member for member in inner if isinstance(member, (dict, list))]
    return bool(level)


AT_LEAST_ONE = "Member must have length greater than or equal to 1"
MOST_TOLD = 10  # DynamoDB reports no more broken constraints than this


def constraint(path: str, value: str, rule: str) -> str:
    """Word one broken constraint."""
    return f"Value {value} at '{path}' failed to satisfy constraint: {rule}"


def unshown_constraint(path: str, rule: str) -> str:
    """Word one broken constraint that DynamoDB reports without the value, under the member's own name."""
    return f"Value at '{path}' failed to satisfy constraint: {rule}"


def constraints_broken(faults: list[str]) -> RequestRefused:
    """Return the error for the broken constraints of a request, as many as DynamoDB reports."""
    told = faults[:MOST_TOLD]
    plural = "" if len(told) == 1 else "s"
    return RequestRefused(f"{len(told)} validation error{plural} detected: {'; '.join(told)}")


def lower_first(name: str) -> str:
    """Return a member's name as messages write it."""
    return name[:1].lower() + name[1:]


INVALID = "One or more parameter values were invalid: "


def invalid(reason: str) -> RequestRefused:
    """Return the error for invalid parameter values."""
    return RequestRefused(INVALID + reason)


IN_USE = "Attempt to change a resource which is still in use: "

_OLDER_READERS = frozenset(
    {
        *("BatchWriteItem", "Scan", "TransactGetItems", "TransactWriteItems"),
        *("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"),
    }
)


class ValueRefused(RequestRefused):
    """An invalid value. The message is that of the newer reader, `older` that of the older one."""

    def __init__(self, message: str, older: str) -> None:
        super().__init__(message)
        self.older = older


class TooDeep(RequestRefused):
    """A value is nested too deeply."""


class EmptyName(RequestRefused):
    """An attribute has no name."""


class RefusedInStart(RequestRefused):
    """A fault of a value that DynamoDB reports as a fault of the starting key."""


class NotOneType(RefusedInStart):
    """A value has no type, or several."""


class ItemTooLarge(RequestRefused):
    """A new item is too large."""


def in_words_of(operation: str, refusal: RequestError) -> RequestError:
    """Return the refusal in the words of the reader of the operation."""
    if operation in _OLDER_READERS and isinstance(refusal, ValueRefused):
        return RequestRefused(refusal.older)
    return refusal
