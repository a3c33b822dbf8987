"""Where DynamoDB Local takes the parameters from before expressions otherwise than AWS documents."""

from __future__ import annotations

from typing import Any

from tests.embedded.differential.cases import Case, KnownDifference

_PARAMETERS = frozenset(
    (
        *("AttributesToGet", "AttributeUpdates", "ConditionalOperator", "Expected"),
        *("KeyConditions", "QueryFilter", "ScanFilter"),
    )
)
_TEXTS = ("ConditionExpression", "FilterExpression", "ProjectionExpression", "UpdateExpression")


def has_older(request: dict[str, Any]) -> bool:
    """Whether a request has parameters from before expressions."""
    return not _PARAMETERS.isdisjoint(request)


def has_default_action(operation: str, request: dict[str, Any]) -> bool:
    """Whether an update leaves the action to its default, which is PUT; DynamoDB Local then does nothing."""
    updates = request.get("AttributeUpdates")
    if operation != "UpdateItem" or not isinstance(updates, dict):
        return False
    return any(isinstance(one, dict) and one.get("Action") is None for one in updates.values())


def _parts(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The request, or its parts for each table."""
    tables = request.get("RequestItems")
    return list(tables.values()) if isinstance(tables, dict) else [request]


def _mixes_tables(case: Case) -> bool:
    return (
        case.operation == "BatchGetItem"
        and case.embedded.code is None
        and case.local.message.startswith("Can not use both expression and non-expression parameters")
    )


def _deletes_of_index_key(case: Case) -> bool:
    updates = case.request.get("AttributeUpdates") or {}
    return (
        case.local.code is None
        and "Type mismatch for Index Key" in case.embedded.message
        and any(one.get("Action") == "DELETE" and "Value" in one for one in updates.values())
    )


OLDER_DIFFERENCES = (
    KnownDifference(
        "set of an index key",
        "A value for an index key has its type, also one to be deleted; DynamoDB Local sees to that for local indexes "
        "alone.",
        _deletes_of_index_key,
    ),
    KnownDifference(
        "no names to get",
        "AttributesToGet has at least one name; DynamoDB Local takes an empty list for none.",
        lambda case: (
            "ttributesToGet' failed to satisfy constraint: Member must have length" in case.embedded.message
            and any(part.get("AttributesToGet") == [] for part in _parts(case.request))
        ),
    ),
    KnownDifference(
        "parameters of another table",
        "Each table of a batch has parameters of its own; DynamoDB Local holds those of all against each other.",
        _mixes_tables,
    ),
    KnownDifference(
        "empty beside others",
        "An empty expression, map or list is a parameter, and one too many beside those of the other kind; DynamoDB "
        "Local takes it for none.",
        lambda case: (
            case.embedded.message.startswith("Can not use both expression and non-expression parameters")
            and any(part.get(name) in ("", [], {}) for part in _parts(case.request) for name in (*_PARAMETERS, *_TEXTS))
        ),
    ),
)
