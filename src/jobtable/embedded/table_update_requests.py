"""UpdateTable's request by itself: its shape, and which changes go together."""

from __future__ import annotations

from typing import Any, NamedTuple

from jobtable.embedded.constraints import check_constraints
from jobtable.embedded.key_schemas import attribute_definitions
from jobtable.embedded.requests import structures
from jobtable.embedded.table_requests import refuse_what_is_not_kept
from jobtable.embedded.throughput import check_bounds
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestError, RequestRefused, request_error
from jobtable.store.backend import Request

_PARAMETERS = (
    "ProvisionedThroughput",
    "BillingMode",
    "OnDemandThroughput",
    "WarmThroughput",
    "DeletionProtectionEnabled",
    "StreamSpecification",
    "SSESpecification",
    "TableClass",
    "GlobalSecondaryIndexUpdates",
)
_ALONE = {
    "SSESpecification": "Server-Side Encryption modification",
    "TableClass": "TableClass modification",
    "DeletionProtectionEnabled": "DeletionProtection modification",
}
"""What is changed by a request of its own, in the order in which DynamoDB asks for that."""
_NOTHING_IF_EMPTY = ("OnDemandThroughput", "WarmThroughput")
_ACTIONS = ("Update", "Create", "Delete")


class IndexChange(NamedTuple):
    """What is to become of one global index."""

    action: str
    content: dict[str, Any]


def check_request(request: Request) -> None:
    """RequestRefused for what is wrong whatever the table: a shape, nothing to do, or what does not go together."""
    check_constraints("UpdateTable", request)
    refuse_what_is_not_kept(request)
    attribute_definitions(request)
    given = {name for name in _PARAMETERS if _is_given(request, name)}
    has_empty_list = request.get("GlobalSecondaryIndexUpdates") == []
    if given <= ({"GlobalSecondaryIndexUpdates"} if has_empty_list else set()):
        raise RequestRefused(
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates,"
            " SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn,"
            " MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is"
            " required"
        )
    if has_empty_list:
        raise RequestRefused(f"{INVALID}List of GlobalSecondaryIndexUpdates is empty")
    changes = index_changes(request)
    _check_together(request, given, {change.action for change in changes})
    _check_units(request, changes)


def index_changes(request: Request) -> list[IndexChange]:
    """What is to become of global indexes, or RequestRefused."""
    changes: list[IndexChange] = []
    for update in structures(request, "GlobalSecondaryIndexUpdates"):
        actions = [action for action in _ACTIONS if update.get(action) is not None]
        if not actions:
            named = ", ".join(f"GlobalSecondaryIndexUpdate.{action}" for action in _ACTIONS)
            raise RequestRefused(f"{INVALID}One of {named} must not be null")
        if len(actions) > 1:
            raise RequestRefused(
                f"{INVALID}Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object"
            )
        [action] = actions
        name = update[action]["IndexName"]
        if any(name == change.content["IndexName"] for change in changes):
            raise RequestRefused(
                f"{INVALID}Only one global secondary index update per index is allowed simultaneously. Index: {name}"
            )
        warm = update[action].get("WarmThroughput") if action == "Update" else None
        if warm is not None and all(units is None for units in warm.values()):
            raise RequestRefused(
                f"{INVALID}WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond"
                f" specified for index: {name}"
            )
        changes.append(IndexChange(action, update[action]))
    if sum(change.action != "Update" for change in changes) > 1:
        raise too_many_at_once()
    return changes


def too_many_at_once() -> RequestError:
    """The error for one more index that is to be created or deleted, while another one is."""
    return request_error(
        "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
    )


def _is_given(request: Request, name: str) -> bool:
    return bool(request.get(name)) if name in _NOTHING_IF_EMPTY else request.get(name) is not None


def _check_units(request: Request, changes: list[IndexChange]) -> None:
    mode, has_units = request.get("BillingMode"), request.get("ProvisionedThroughput") is not None
    if mode == "PAY_PER_REQUEST" and has_units:
        raise RequestRefused(f"{INVALID}ProvisionedThroughput cannot be specified when BillingMode is PAY_PER_REQUEST")
    if mode == "PROVISIONED" and not has_units:
        raise RequestRefused(f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
    for structure in (request, *(change.content for change in changes)):
        check_bounds(structure)


def _check_together(request: Request, given: set[str], actions: set[str]) -> None:
    for name, what in _ALONE.items():
        if name in given and len(given) > 1:
            raise RequestRefused(f"{INVALID}{what} must be the only operation in the request")
    if "OnDemandThroughput" in given and given - {"OnDemandThroughput", "BillingMode"}:
        raise RequestRefused(
            f"{INVALID}OnDemandThroughput can only be combined with BillingMode in an UpdateTable request"
        )
    if "WarmThroughput" in given:
        if "Create" in actions:
            raise RequestRefused(
                f"{INVALID}Create global secondary index cannot be specified when updating WarmThroughput"
            )
        if given - {"WarmThroughput", "GlobalSecondaryIndexUpdates"}:
            raise RequestRefused(f"{INVALID}WarmThroughput must be the only operation in the request")
    has_units = "ProvisionedThroughput" in given or request.get("BillingMode") == "PROVISIONED"
    has_stream, has_index = "StreamSpecification" in given, not actions.isdisjoint(("Create", "Delete"))
    if has_units and has_stream:
        raise RequestRefused(f"{INVALID}You cannot modify stream status while updating table IOPS")
    if has_units and has_index:
        raise RequestRefused(f"{INVALID}You cannot create or delete index while updating table IOPS")
    if has_stream and has_index:
        raise RequestRefused(f"{INVALID}You cannot create or delete index while changing stream status")
