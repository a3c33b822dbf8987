"""CreateTable's and UpdateTable's parameters, checked in DynamoDB's order and words."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple

from jobtable.embedded import table_names
from jobtable.embedded import throughput as capacity
from jobtable.embedded.request_checks import check_constraints
from jobtable.embedded.storage.table_catalogue import IndexRecord, TableRecord, Throughput, ViewType
from jobtable.embedded.table_schema import KeyType
from jobtable.embedded.wordings import invalid
from jobtable.errors import RequestError, RequestRefused, request_error
from jobtable.store.backend import Request

MOST_GLOBAL_INDEXES = 20
NO_ID = 0  # the id of a new table or index until it is stored
_MOST_LOCAL_INDEXES = 5
_MOST_INCLUDED = 100
_TABLE_CLASSES = ("STANDARD", "STANDARD_INFREQUENT_ACCESS")
_NOT_KEPT = (
    "ReplicaUpdates",
    "GlobalTableWitnessUpdates",
    "GlobalTableSourceArn",
    "GlobalTableSettingsReplicationMode",
    "MultiRegionConsistency",
    "DisassociationProtectionEnabled",
    "ResourcePolicy",
    "VectorIndexes",
    "VectorIndexUpdates",
    "VectorIndexOverride",
)
_NOTHING: tuple[object, ...] = (None, "", [])


def new_table(request: Request, tags: dict[str, str]) -> tuple[TableRecord, ViewType | None]:
    """Return the table that CreateTable asks for, not yet numbered and dated, and the view of its stream."""
    check_constraints("CreateTable", request)
    refuse_what_is_not_kept(request)
    is_on_demand = request.get("BillingMode") == "PAY_PER_REQUEST"
    throughput = Throughput() if is_on_demand else capacity.table_throughput(request)
    if is_on_demand:
        capacity.refuse_table_throughput(request)
    else:
        capacity.refuse_on_demand_limit(request, is_new=True)
    attributes, key = _key_of_new_table(request)
    indexes = _local_indexes(request, key, attributes) + _global_indexes(request, attributes, is_on_demand)
    _check_together(key, attributes, indexes)
    name = table_names.table_of(request)
    on_demand = capacity.on_demand_limit(request, is_new=True)
    warm = capacity.new_warm_throughput(request, throughput, is_on_demand=is_on_demand)
    view = _view_of_new_table(request)
    record = TableRecord(
        id=NO_ID,
        uuid=str(uuid.uuid4()),
        name=name,
        created=0.0,
        attributes=attributes,
        partition=key[0][0],
        sort=key[1][0] if key[1] else None,
        indexes=indexes,
        is_on_demand=is_on_demand,
        throughput=throughput,
        on_demand=on_demand,
        warm=warm,
        table_class=table_class(request),
        is_protected=bool(request.get("DeletionProtectionEnabled")),
        encryption=encryption(request),
        tags=tags,
    )
    return record, view


def refuse_what_is_not_kept(request: Request) -> None:
    """Raise RequestRefused for features that the engine lacks: ignoring them would promise them."""
    refused = next((name for name in _NOT_KEPT if request.get(name) not in _NOTHING), None)
    if refused is not None:
        # By these words, programs that probe a server tell a missing feature from a fault.
        raise RequestRefused(f"{refused} is not supported by this engine")


def table_class(request: Request) -> str | None:
    """Return TableClass, or None; RequestRefused for an unknown one."""
    chosen: str | None = request.get("TableClass")
    if chosen is not None and chosen not in _TABLE_CLASSES:
        raise RequestRefused(
            "Invalid table-class parameter provided. Please try again with a valid table-class value:"
            f" [{', '.join(_TABLE_CLASSES)}]."
        )
    return chosen


def encryption(request: Request) -> dict[str, str] | None:
    """Describe SSESpecification; None if the key is DynamoDB's own. Nothing is encrypted here."""
    given = request.get("SSESpecification")
    if given is None:
        return None
    kind, key, is_enabled = given.get("SSEType"), given.get("KMSMasterKeyId"), given.get("Enabled")
    for member, value in (("SSEType", kind), ("KMSMasterKeyId", key)):
        if is_enabled is False and value is not None:
            raise invalid(f"{member} can not be specified if Enabled is false")
    if kind == "AES256":
        raise invalid("SSEType AES256 is not supported")
    if key is not None and kind is None:
        raise invalid("SSEType KMS is required if KMSMasterKeyId is specified")
    if not is_enabled and kind is None:
        return None
    return {"SSEType": "KMS", "KMSMasterKeyArn": table_names.encryption_key_arn(key or "alias/aws/dynamodb")}


def _view_of_new_table(request: Request) -> ViewType | None:
    is_enabled, view = stream_specification(request)
    if is_enabled and view is None:
        raise invalid("Table is being created with a stream enabled, UpdateViewType is required")
    if not is_enabled and view is not None:
        raise invalid("Table is being created with a stream disabled, UpdateViewType should not be specified")
    return view


def stream_specification(request: Request) -> tuple[bool | None, ViewType | None]:
    """Return whether a stream is wanted, and its view; None if the request does not say."""
    given = request.get("StreamSpecification") or {}
    return given.get("StreamEnabled"), given.get("StreamViewType")


def new_global_index(structure: Request, attributes: dict[str, KeyType], *, is_on_demand: bool) -> IndexRecord:
    """Return one global index that a request asks for, or raise RequestRefused."""
    table_names.check_defined(structure, attributes)
    key = table_names.global_key_schema(structure)
    kind, included = table_names.projection(structure)
    throughput = capacity.global_index_throughput(structure, is_on_demand=is_on_demand)
    if not is_on_demand:
        capacity.refuse_on_demand_limit(structure, is_new=True)
    limit = capacity.on_demand_limit(structure, is_new=True)
    warm = capacity.new_warm_throughput(structure, throughput, is_on_demand=is_on_demand)
    return IndexRecord(
        id=NO_ID,
        name=structure["IndexName"],
        is_local=False,
        partition=key[0],
        sort=key[1],
        projection=kind,
        included=included,
        throughput=throughput,
        on_demand=limit,
        warm=warm,
    )


def refuse_same_names(names: list[str]) -> None:
    for number, name in enumerate(names):
        if name in names[:number]:
            raise invalid(f"Duplicate index name: {name}")


def check_included(included: int) -> None:
    """Raise RequestRefused if the indexes of a table would include too many attributes."""
    if included > _MOST_INCLUDED:
        # The number in this message is DynamoDB's, though its limit has been raised to 100 since.
        raise RequestRefused("No more than 20 attributes per table can be projected into Local Secondary Indices")


def _key_of_new_table(request: Request) -> tuple[dict[str, KeyType], table_names.KeySchema]:
    """Return the defined attributes and the key. DynamoDB counts them before it checks them."""
    if len(request["KeySchema"]) > len(request["AttributeDefinitions"]):
        raise RequestRefused("Invalid KeySchema: Some index key attribute have no definition")
    attributes = table_names.attribute_definitions(request)
    table_names.check_defined(request, attributes)
    return attributes, table_names.simple_key_schema(request)


def _local_indexes(
    request: Request, key: table_names.KeySchema, attributes: dict[str, KeyType]
) -> tuple[IndexRecord, ...]:
    structures = _structures(request, "LocalSecondaryIndexes")
    if structures and not key[1]:
        raise invalid(
            "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"
        )
    if len(structures) > _MOST_LOCAL_INDEXES:
        raise invalid(f"Number of LocalSecondaryIndexes exceeds per-table limit of {_MOST_LOCAL_INDEXES}")
    return tuple(_local_index(structure, key, attributes) for structure in structures)


def _local_index(structure: Request, key: table_names.KeySchema, attributes: dict[str, KeyType]) -> IndexRecord:
    name = structure["IndexName"]
    table_names.check_defined(structure, attributes)
    partition, sort = table_names.simple_key_schema(structure)
    if not sort:
        raise invalid(f"Index KeySchema does not have a range key for index: {name}")
    if partition != key[0]:
        raise invalid(
            f"Index KeySchema does not have the same leading hash key as table KeySchema for index: {name}."
            f" index hash key: {partition[0]}, table hash key: {key[0][0]}"
        )
    kind, included = table_names.projection(structure)
    return IndexRecord(
        id=NO_ID, name=name, is_local=True, partition=partition, sort=sort, projection=kind, included=included
    )


def _global_indexes(request: Request, attributes: dict[str, KeyType], is_on_demand: bool) -> tuple[IndexRecord, ...]:
    structures = _structures(request, "GlobalSecondaryIndexes")
    if len(structures) > MOST_GLOBAL_INDEXES:
        raise invalid(f"GlobalSecondaryIndex count exceeds the per-table limit of {MOST_GLOBAL_INDEXES}")
    for structure in structures:
        if not is_on_demand and structure.get("ProvisionedThroughput") is None:
            raise invalid(f"ProvisionedThroughput is not specified for index: {structure['IndexName']}")
    return tuple(new_global_index(structure, attributes, is_on_demand=is_on_demand) for structure in structures)


def _structures(request: Request, member: str) -> list[Request]:
    """Return the indexes that a request asks for; RequestRefused for an empty list."""
    structures: list[Request] | None = request.get(member)
    if structures == []:
        raise invalid(f"List of {member} is empty")
    return structures or []


def _check_together(
    key: table_names.KeySchema, attributes: dict[str, KeyType], indexes: tuple[IndexRecord, ...]
) -> None:
    refuse_same_names([index.name for index in indexes])
    check_included(sum(len(index.included) for index in indexes))
    used = dict.fromkeys((*key[0], *key[1], *(name for index in indexes for name in (*index.partition, *index.sort))))
    if used.keys() == attributes.keys():
        return
    if not indexes:
        raise invalid(
            "Number of attributes in KeySchema does not exactly match number of attributes defined in"
            " AttributeDefinitions"
        )
    raise invalid(
        f"Some AttributeDefinitions are not used. AttributeDefinitions: [{', '.join(attributes)}], keys used:"
        f" [{', '.join(used)}]"
    )


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
"""Options that need a request of their own, in the order in which DynamoDB demands that."""
_NOTHING_IF_EMPTY = ("OnDemandThroughput", "WarmThroughput")
_INDEX_ACTIONS = ("Update", "Create", "Delete")


class IndexAction(NamedTuple):
    """A change of one global index."""

    action: str
    content: dict[str, Any]


def check_request(request: Request) -> None:
    """Raise RequestRefused for faults of the request alone: invalid members, no change, or contradictions."""
    check_constraints("UpdateTable", request)
    refuse_what_is_not_kept(request)
    table_names.attribute_definitions(request)
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
        raise invalid("List of GlobalSecondaryIndexUpdates is empty")
    changes = index_changes(request)
    _check_changes_together(request, given, {change.action for change in changes})
    _check_units(request, changes)


def index_changes(request: Request) -> list[IndexAction]:
    """Return the changes of global indexes, or raise RequestRefused."""
    changes: list[IndexAction] = []
    for update in request.get("GlobalSecondaryIndexUpdates") or ():
        actions = [action for action in _INDEX_ACTIONS if (update or {}).get(action) is not None]
        if not actions:
            named = ", ".join(f"GlobalSecondaryIndexUpdate.{action}" for action in _INDEX_ACTIONS)
            raise invalid(f"One of {named} must not be null")
        if len(actions) > 1:
            raise invalid("Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object")
        [action] = actions
        name = update[action]["IndexName"]
        if any(name == change.content["IndexName"] for change in changes):
            raise invalid(f"Only one global secondary index update per index is allowed simultaneously. Index: {name}")
        warm = update[action].get("WarmThroughput") if action == "Update" else None
        if warm is not None and all(units is None for units in warm.values()):
            raise invalid(
                f"WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond"
                f" specified for index: {name}"
            )
        changes.append(IndexAction(action, update[action]))
    if sum(change.action != "Update" for change in changes) > 1:
        raise too_many_at_once()
    return changes


def too_many_at_once() -> RequestError:
    """Return the error for creating or deleting an index while another one is created or deleted."""
    return request_error(
        "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
    )


def _is_given(request: Request, name: str) -> bool:
    return bool(request.get(name)) if name in _NOTHING_IF_EMPTY else request.get(name) is not None


def _check_units(request: Request, changes: list[IndexAction]) -> None:
    mode, has_units = request.get("BillingMode"), request.get("ProvisionedThroughput") is not None
    if mode == "PAY_PER_REQUEST" and has_units:
        raise invalid("ProvisionedThroughput cannot be specified when BillingMode is PAY_PER_REQUEST")
    if mode == "PROVISIONED" and not has_units:
        raise invalid("ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
    for structure in (request, *(change.content for change in changes)):
        capacity.check_bounds(structure)


def _check_changes_together(request: Request, given: set[str], actions: set[str]) -> None:
    for name, what in _ALONE.items():
        if name in given and len(given) > 1:
            raise invalid(f"{what} must be the only operation in the request")
    if "OnDemandThroughput" in given and given - {"OnDemandThroughput", "BillingMode"}:
        raise invalid("OnDemandThroughput can only be combined with BillingMode in an UpdateTable request")
    if "WarmThroughput" in given:
        if "Create" in actions:
            raise invalid("Create global secondary index cannot be specified when updating WarmThroughput")
        if given - {"WarmThroughput", "GlobalSecondaryIndexUpdates"}:
            raise invalid("WarmThroughput must be the only operation in the request")
    has_units = "ProvisionedThroughput" in given or request.get("BillingMode") == "PROVISIONED"
    has_stream, has_index = "StreamSpecification" in given, not actions.isdisjoint(("Create", "Delete"))
    if has_units and has_stream:
        raise invalid("You cannot modify stream status while updating table IOPS")
    if has_units and has_index:
        raise invalid("You cannot create or delete index while updating table IOPS")
    if has_stream and has_index:
        raise invalid("You cannot create or delete index while changing stream status")
