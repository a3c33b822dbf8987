"""The faults that DynamoDB finds in requests, in the order in which it looks, and DynamoDB Local's words for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache


class Stage(IntEnum):
    """Where in the order of the service's checks a fault is found."""

    MEMBERS = 1
    """Each member by itself: present, long enough, one of an enumeration."""
    COMBINATION = 2
    """Members that do not go together."""
    VALUES = 3
    """Attribute values in keys and items."""
    OPTIONS = 4
    """ReturnValues, Select and segments."""
    EXPRESSIONS = 5
    """Expressions with their placeholders."""
    TABLE = 6
    """Whether the table and the index are there."""
    SCHEMA = 7
    """The request against the key schemas."""
    ITEM = 8
    """The item: conditions, and updates that cannot be applied to it."""


@dataclass(frozen=True)
class Fault:
    """One kind of fault, how the service puts it, and DynamoDB Local's words where they are others.

    `{}` stands for any text. Texts at `{same}` must be the same in both.
    """

    stage: Stage
    service: str
    local: tuple[str, ...] = ()


_INVALID = "One or more parameter values were invalid: "
_LOCAL_KEY_MISMATCH = (
    "The number of conditions on the keys is invalid",
    "Invalid attribute value type",
    "The list of keys in RequestItems for BatchGetItem may not contain null or empty values: {}",
    "One of the required keys was not given a value",
    f"{_INVALID}Type mismatch for key",
)
_LOCAL_KEY_SIZE = (
    "Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes",
    f"{_INVALID}Size limit exceeded",
)

FAULTS = (
    # Before the general fault of a member, in whose words DynamoDB Local puts it.
    Fault(
        Stage.OPTIONS,
        "The Segment parameter is zero-based and must be less than parameter TotalSegments",
        ("1 validation error detected: Value {} at 'segment' failed to satisfy constraint: {}",),
    ),
    Fault(
        Stage.MEMBERS,
        "{} validation error{} detected: {}",
        (
            "1 validation error detected: {}",
            "Value {} failed to satisfy constraint: {}",
            "Member must {}",
            "Invalid table/index name.  Table/index names must be {}",
            "Item to put in PutItem cannot be null",
            "The supplied Item contains a null AttributeValue",
            "Get Condition for key not in key list",
            "Cannot have null key for GetItem, DeleteItem, or UpdateItem",
            "Batch{}Item {} have {} requests set",
            "Limit must be greater than or equal to 1",
            "Return values set to invalid value",
            "Select must be {}",
            "The batch write request list for a table cannot be null or empty{}",
            "The list of keys in RequestItems for BatchGetItem is required: {}",
            "Too many items requested for the Batch{}Item call",
            "Comparison type does not exist in DynamoDB",
        ),
    ),
    Fault(Stage.MEMBERS, "Failed to satisfy constraint: {}"),
    Fault(
        Stage.MEMBERS,
        "The requestItems parameter is required for BatchWriteItem",
        ("BatchWriteItem {} have {} requests set",),
    ),
    Fault(Stage.COMBINATION, "Invalid Request: Transact{}Request should contain {}"),
    Fault(Stage.COMBINATION, "Can not use both expression and non-expression parameters in the same request: {}"),
    Fault(
        Stage.COMBINATION,
        "ExpressionAttributeValues can only be specified when using expressions",
        ("ExpressionAttributeValues can only be specified when using expressions: {}",),
    ),
    Fault(Stage.COMBINATION, "{} can only be specified when using expressions{}"),
    Fault(Stage.COMBINATION, "ConditionalOperator can{} be used {}"),
    Fault(Stage.VALUES, "Supplied AttributeValue {}"),
    Fault(Stage.VALUES, "The supplied Item contains a null AttributeValue{}"),
    Fault(Stage.VALUES, "Empty attribute name"),
    Fault(
        Stage.VALUES,
        "Number {}flow. Attempting to store a number with magnitude {} than supported range",
        ("DynamoDB only supports precision up to 38 digits",),
    ),
    Fault(
        Stage.VALUES,
        "The parameter cannot be converted to a numeric value{}",
        ("A value provided cannot be converted into a number",),
    ),
    Fault(
        Stage.VALUES,
        "Attempting to store more than 38 significant digits in a Number",
        ("DynamoDB only supports precision up to 38 digits",),
    ),
    Fault(
        Stage.VALUES,
        f"{_INVALID}Input collection [{{}}] contains duplicates.",
        (f"{_INVALID}Input collection [{{}}] contains duplicates",),
    ),
    Fault(
        Stage.VALUES,
        f"{_INVALID}Input collection {{}}of type BS contains duplicates.",
        (f"{_INVALID}Input collection of type BS contains duplicates.",),
    ),
    Fault(
        Stage.VALUES,
        f"{_INVALID}Input collection contains duplicates.",
        ("Input collection contains duplicates",),
    ),
    Fault(Stage.VALUES, "Input collection contains duplicates"),
    Fault(Stage.VALUES, f"{_INVALID}An {{}} set {{}} may not be empty"),
    Fault(Stage.VALUES, f"{_INVALID}Binary sets should not be empty"),
    Fault(Stage.VALUES, f"{_INVALID}Null attribute value types must have the value of true"),
    Fault(
        Stage.VALUES,
        f"{_INVALID}Duplicate value in attribute name: {{}}",
        ("Cannot have two attributes with the same name",),
    ),
    Fault(Stage.VALUES, f"{_INVALID}{{}} for Attribute: {{}}"),
    Fault(Stage.VALUES, f"{_INVALID}Invalid number of argument(s) for the {{}} ComparisonOperator"),
    Fault(Stage.VALUES, f"{_INVALID}ComparisonOperator {{}} is not valid for {{}} AttributeValue type"),
    Fault(Stage.VALUES, f"{_INVALID}AttributeValues inside AttributeValueList must be of same type"),
    Fault(Stage.VALUES, "The BETWEEN condition was provided a range where {}"),
    Fault(Stage.VALUES, "The filter condition for an attribute cannot be null: {}"),
    Fault(Stage.VALUES, f"{_INVALID}Only DELETE action is allowed when no attribute value is specified"),
    Fault(
        Stage.VALUES,
        f"{_INVALID}{{same}} not supported for the type {{}}",
        (f"{_INVALID}{{same}} not supported for the type {{}}",),
    ),
    Fault(Stage.OPTIONS, "Either the KeyConditions or KeyConditionExpression parameter must be specified{}"),
    Fault(Stage.OPTIONS, "ReturnValues can only be ALL_OLD or NONE", ("Return values set to invalid value",)),
    Fault(
        Stage.OPTIONS,
        "The Segment parameter is required but was not present in the request when parameter TotalSegments is present",
        ("If total segments is specified, a particular segment must also be specified for this request",),
    ),
    Fault(
        Stage.OPTIONS,
        "The TotalSegments parameter is required but was not present in the request when Segment parameter is present",
        ("If segment is specified, total segment must also be specified",),
    ),
    Fault(
        Stage.OPTIONS,
        "The provided starting key is invalid: {}",
        (
            "A value provided cannot be converted into a number",
            "The provided starting key is invalid: {}",
            "Supplied AttributeValue {}",
            f"{_INVALID}An {{}} set {{}} may not be empty",
            f"{_INVALID}Binary sets should not be empty",
            f"{_INVALID}Null attribute value types must have the value of true",
        ),
    ),
    Fault(Stage.OPTIONS, "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"),
    Fault(Stage.MEMBERS, "Too many items requested for the Batch{}Item call"),
    Fault(
        Stage.EXPRESSIONS,
        "Invalid {same}Expression: The BETWEEN operator requires {}",
        ("Invalid {same}Expression: The BETWEEN operator requires {}",),
    ),
    Fault(
        Stage.EXPRESSIONS,
        "Invalid {same}Expression: Two document paths overlap with each other; {}; path one: {same}, path two: {}",
        ("Invalid {same}Expression: Two document paths overlap with each other; {}; path one: {same}, path two: {}",),
    ),
    Fault(
        # DynamoDB Local has types of its own among those that the operand may name.
        Stage.EXPRESSIONS,
        "Invalid {same}Expression: Incorrect operand type {same}: attribute_type, operand type: {}",
        ("Invalid {same}Expression: Incorrect operand type {same}: attribute_type, operand type: {}",),
    ),
    *(
        Fault(Stage.EXPRESSIONS, f"Invalid KeyConditionExpression: {reason}", (reason,))
        for reason in (
            "Invalid operator used in KeyConditionExpression: {same}",
            "KeyConditionExpressions {same}",
            "Invalid condition in KeyConditionExpression: {same}",
        )
    ),
    Fault(Stage.EXPRESSIONS, "Invalid {}Expression: {}"),
    Fault(Stage.EXPRESSIONS, "ExpressionAttribute{}s contains invalid {}"),
    Fault(Stage.EXPRESSIONS, "ExpressionAttribute{}s must not be empty"),
    Fault(Stage.EXPRESSIONS, "Value provided in ExpressionAttribute{}s unused in expressions: {}"),
    Fault(Stage.EXPRESSIONS, "Conditions must be at least length 1"),
    Fault(Stage.EXPRESSIONS, "Provided list of item keys contains duplicates"),
    Fault(Stage.EXPRESSIONS, "Transaction request cannot include multiple operations on one item"),
    Fault(Stage.EXPRESSIONS, "Cannot specify the {} when choosing to get {}"),
    Fault(Stage.EXPRESSIONS, "Must specify the AttributesToGet or ProjectionExpression when choosing to get {}"),
    Fault(Stage.TABLE, "Requested resource not found{}", ("Cannot do operations on a non-existent table",)),
    Fault(Stage.TABLE, "The table does not have the specified index: {}"),
    Fault(Stage.TABLE, "Consistent reads are not supported on global secondary indexes"),
    Fault(Stage.TABLE, "Key attributes must be scalars{}"),
    Fault(Stage.SCHEMA, "The provided key element does not match the schema", _LOCAL_KEY_MISMATCH),
    Fault(Stage.SCHEMA, f"{_INVALID}Missing the key {{}} in the item", _LOCAL_KEY_MISMATCH),
    Fault(Stage.SCHEMA, f"{_INVALID}Type mismatch for key {{}}", _LOCAL_KEY_MISMATCH),
    Fault(
        Stage.SCHEMA,
        f"{_INVALID}Type mismatch for Index Key {{}}",
        (
            "Invalid attribute value type",
            f"{_INVALID}Type mismatch for Index Key",
            "One or more parameter values are not valid. The update expression attempted to update a secondary {}",
            "Updates on index keys must be of the same data type as the key attribute",
        ),
    ),
    Fault(
        Stage.SCHEMA,
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty {}",
        _LOCAL_KEY_MISMATCH,
    ),
    Fault(
        Stage.SCHEMA,
        "One or more parameter values are not valid. A value specified for a secondary index key is not supported. {}",
        ("Invalid attribute value type", f"{_INVALID}Type mismatch for Index Key"),
    ),
    Fault(Stage.SCHEMA, f"{_INVALID}Size of hashkey has exceeded the maximum size limit of2048 bytes", _LOCAL_KEY_SIZE),
    Fault(
        Stage.SCHEMA,
        f"{_INVALID}Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
        _LOCAL_KEY_SIZE,
    ),
    Fault(Stage.SCHEMA, f"{_INVALID}Size of {{}} has exceeded {{}}", _LOCAL_KEY_SIZE),
    Fault(
        Stage.SCHEMA,
        "The {} starting key {}",
        ("The provided starting key {}", "Exclusive Start Key must have same size as table's key schema"),
    ),
    Fault(
        Stage.SCHEMA,
        "The query can return at most one row and cannot be restarted",
        ("The provided starting key does not match the range key predicate",),
    ),
    Fault(
        Stage.SCHEMA, "Query condition missed key schema element: {}", ("Query condition missed key schema element",)
    ),
    Fault(
        Stage.SCHEMA,
        "The number of query conditions {}",
        ("Conditions can be of length 1 or 2 only", "Query key condition not supported"),
    ),
    Fault(Stage.SCHEMA, "{} key attributes {} must have equality conditions specified in the query{}"),
    Fault(Stage.SCHEMA, "Query key condition not supported"),
    Fault(
        Stage.SCHEMA,
        "Attempted conditional constraint is not an indexable operation",
        ("Query key condition not supported", "Only scalar types can be used as {} Key values"),
    ),
    Fault(Stage.SCHEMA, "QueryFilter can only contain non-primary key attributes: {}"),
    Fault(Stage.SCHEMA, "Filter Expression can only contain non-primary key attributes: {}"),
    Fault(Stage.SCHEMA, f"{_INVALID}Condition parameter type does not match schema type"),
    Fault(Stage.SCHEMA, f"{_INVALID}{{}}econdary index {{}} does not project {{}}"),
    Fault(Stage.SCHEMA, f"{_INVALID}Cannot update attribute {{}}. This attribute is part of the key"),
    Fault(Stage.SCHEMA, f"{_INVALID}Select type ALL_ATTRIBUTES is not supported for {{}}"),
    Fault(Stage.ITEM, "The conditional request failed"),
    Fault(
        Stage.ITEM,
        "The update expression attempted to update the secondary index key to unsupported type",
        (f"{_INVALID}Type mismatch for Index Key", "Invalid attribute value type"),
    ),
    Fault(Stage.ITEM, "Transaction cancelled, {}"),
    Fault(Stage.ITEM, "The document path provided in the update expression is invalid for update"),
    Fault(Stage.ITEM, "The provided expression refers to an attribute that does not exist in the item"),
    Fault(Stage.ITEM, "An operand in the update expression has an incorrect data type"),
    Fault(Stage.ITEM, "Type mismatch for attribute to update"),
)

_IN_PLACEHOLDER = re.compile(
    "ExpressionAttributeValues contains invalid value: (?P<fault>.*) for key (?P<key>.*)", re.DOTALL
)
_COUNTED = re.compile(
    "1 validation error detected: (?!(Value (.* )?at '.*' f|F)ailed to satisfy constraint: )",
    re.DOTALL,
)


def without_count(message: str) -> str:
    """The message of a fault without the number of faults before it.

    The service counts all faults of a request to write one item, and of what is selected; DynamoDB Local counts broken
    constraints only.
    """
    counted = _COUNTED.match(message)
    return message if counted is None else message[counted.end() :]


def says_the_same(service: str, local: str) -> bool:
    """Whether DynamoDB Local's message stands, in its own words, for the fault that the service's message names."""
    first, second = (_IN_PLACEHOLDER.fullmatch(message) for message in (service, local))
    if first is not None and second is not None and first["key"] == second["key"]:
        service, local = first["fault"], second["fault"]
    elif first is None and second is not None:
        # The service names the key in transactions and scans only.
        local = second["fault"]
    if service == local:
        return True
    for fault in FAULTS:
        same = _texts(fault.service, service)
        if same is not None and any(same == _texts(words, local) for words in fault.local):
            return True
    return False


def stage_in_service(message: str) -> Stage | None:
    """When the service finds the fault that its message names; None for a message that is not listed."""
    return next((fault.stage for fault in FAULTS if _texts(fault.service, message) is not None), None)


def stage_of_local(message: str) -> Stage | None:
    """When the service would find the fault that DynamoDB Local's message names."""
    for fault in FAULTS:
        if any(_texts(words, message) is not None for words in (fault.service, *fault.local)):
            return fault.stage
    return None


def _texts(words: str, message: str) -> tuple[str, ...] | None:
    """The texts at `{same}`, or None if the message is another."""
    found = _pattern(words).fullmatch(message)
    return None if found is None else found.groups()


@lru_cache(maxsize=1000)
def _pattern(words: str) -> re.Pattern[str]:
    pattern = re.escape(words).replace(re.escape("{same}"), "(.*)").replace(re.escape("{}"), ".*")
    return re.compile(pattern, re.DOTALL)
