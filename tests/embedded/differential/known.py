"""Where DynamoDB Local is not what AWS documents; the engine follows AWS."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.embedded.differential.cases import Case, KnownDifference, is_fragment, same_without
from tests.embedded.differential.faults import Stage, says_the_same, stage_in_service, stage_of_local
from tests.embedded.differential.known_older import OLDER_DIFFERENCES, has_older
from tests.embedded.differential.known_tables import TABLE_DIFFERENCES
from tests.embedded.differential.peers import Answer

_PATHS_LAST = ("Query", "Scan", "UpdateItem", "TransactWriteItems")
"""Where the service looks at paths into keys behind everything else that it finds without the item."""
_REFUSALS = ("ValidationException", "ResourceNotFoundException", "ConditionalCheckFailedException")


_FAULTS_OF_SUMS = (
    "DynamoDB only supports precision up to 38 digits",
    "Number overflow. Attempting to store a number with magnitude larger than supported range",
    "Number underflow. Attempting to store a number with magnitude smaller than supported range",
)


_LOCAL_INDEX_TYPE = re.compile(
    "Type mismatch for Index Key .* IndexName: Local|secondary index key to unsupported type"
)
_EMPTY_INDEX_KEY = "attempted to update a secondary index key to a value that is not supported"
_TYPE_OF_MEMBER: dict[str, type] = {
    **dict.fromkeys(("TableName", "IndexName", "ExclusiveStartTableName", "ClientRequestToken", "Select"), str),
    **dict.fromkeys(("ReturnValues", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"), str),
    **dict.fromkeys(("ConditionExpression", "FilterExpression", "KeyConditionExpression"), str),
    **dict.fromkeys(("ProjectionExpression", "UpdateExpression", "ReturnValuesOnConditionCheckFailure"), str),
    **dict.fromkeys(("BillingMode", "AttributeName", "AttributeType", "KeyType", "ProjectionType"), str),
    **dict.fromkeys(("StreamViewType", "S", "N", "B", "text"), str),
    **dict.fromkeys(("Limit", "Segment", "TotalSegments", "ReadCapacityUnits", "WriteCapacityUnits"), int),
    **dict.fromkeys(("ConsistentRead", "ScanIndexForward", "BOOL", "NULL", "StreamEnabled", "Enabled"), bool),
    **dict.fromkeys(("DeletionProtectionEnabled",), bool),
    **dict.fromkeys(("Key", "Item", "ExclusiveStartKey", "ExpressionAttributeNames", "M", "value"), dict),
    **dict.fromkeys(("ExpressionAttributeValues", "RequestItems", "Get", "Put", "Delete", "Update"), dict),
    **dict.fromkeys(("ConditionCheck", "PutRequest", "DeleteRequest", "Projection", "Create"), dict),
    **dict.fromkeys(("ProvisionedThroughput", "StreamSpecification", "TimeToLiveSpecification", "structure"), dict),
    **dict.fromkeys(("L", "SS", "NS", "BS", "Keys", "TransactItems", "KeySchema", "AttributeDefinitions"), list),
    **dict.fromkeys(("GlobalSecondaryIndexes", "LocalSecondaryIndexes", "NonKeyAttributes"), list),
    **dict.fromkeys(("GlobalSecondaryIndexUpdates", "AttributesToGet", "AttributeValueList"), list),
    **dict.fromkeys(("AttributeUpdates", "Expected", "KeyConditions", "QueryFilter", "ScanFilter", "Value"), dict),
    **dict.fromkeys(("Action", "ComparisonOperator", "ConditionalOperator"), str),
    "Exists": bool,
}
_ELEMENTS = {
    **dict.fromkeys(("SS", "NS", "BS", "NonKeyAttributes", "AttributesToGet"), "text"),
    **dict.fromkeys(("KeySchema", "AttributeDefinitions", "TransactItems", "GlobalSecondaryIndexes"), "structure"),
    **dict.fromkeys(("LocalSecondaryIndexes", "GlobalSecondaryIndexUpdates"), "structure"),
    "Keys": "Key",
    **dict.fromkeys(("L", "AttributeValueList"), "value"),
    "tables": "structure",
}
_VALUES_OF_MAPS = {
    **dict.fromkeys(("Key", "Item", "ExclusiveStartKey", "ExpressionAttributeValues", "M"), "value"),
    **dict.fromkeys(("AttributeUpdates", "Expected", "KeyConditions", "QueryFilter", "ScanFilter"), "structure"),
    "ExpressionAttributeNames": "text",
    "RequestItems": "tables",
}


def _crashed(case: Case) -> bool:
    refusals = ("SerializationException", "ValidationException", "ResourceNotFoundException")
    return case.local.code == "InternalFailure" and case.embedded.code in refusals


def _is_mistyped(name: str, content: Any) -> bool:
    """Whether a member, or one below it, has not the JSON type that it should have."""
    expected = _TYPE_OF_MEMBER.get(name)
    if expected is not None and type(content) is not expected:
        return True
    if isinstance(content, list):
        return any(_is_mistyped(_ELEMENTS.get(name, ""), element) for element in content)
    if isinstance(content, dict):
        inner = _VALUES_OF_MAPS.get(name)
        return any(_is_mistyped(inner or member, inside) for member, inside in content.items())
    return False


def _other_words(case: Case) -> bool:
    if case.embedded.code != case.local.code or case.embedded.code is None:
        return False
    if case.embedded.code == "IdempotentParameterMismatchException":
        return case.local.message == ""
    if case.embedded.message.partition("[")[0] != case.local.message.partition("[")[0]:
        return says_the_same(case.embedded.message, case.local.message)
    return len(_reasons(case.embedded)) == len(_reasons(case.local)) and all(
        _is_same_reason(embedded, local)
        for embedded, local in zip(_reasons(case.embedded), _reasons(case.local), strict=True)
    )


def _reasons(answer: Answer) -> list[dict[str, Any]]:
    reasons: list[dict[str, Any]] = answer.body.get("CancellationReasons", [])
    return reasons


def _is_same_reason(embedded: dict[str, Any], local: dict[str, Any]) -> bool:
    if embedded["Code"] == "ValidationError" and local["Code"] == "ConditionalCheckFailed":
        return True  # The action itself is looked at before the item.
    if local["Code"] == "None" and _LOCAL_INDEX_TYPE.search(embedded.get("Message", "")):
        return True  # See "type of a local index key".
    words, local_words = embedded.get("Message", ""), local.get("Message", "")
    is_same_message = words == local_words.removesuffix(".") or says_the_same(words, local_words)
    return is_same_message and embedded | {"Message": ""} == local | {"Message": ""}


def _other_order(case: Case) -> bool:
    if case.embedded.code not in _REFUSALS or case.local.code not in (*_REFUSALS, "TransactionCanceledException"):
        return False
    embedded, local = stage_in_service(case.embedded.message), _stage_of_local(case)
    if embedded is None or local is None:
        return False
    if _has_parts(case) and embedded < Stage.ITEM:
        return True  # The parts of a batch or a transaction come in no documented order.
    if has_older(case.request) and (
        embedded == local or all(Stage.VALUES <= stage <= Stage.EXPRESSIONS for stage in (embedded, local))
    ):
        return True  # In which order parameters from before expressions are looked at is not documented.
    if embedded == local:
        # Two faults of one stage: the order of conditions, actions, maps and options is not documented.
        if embedded == Stage.ITEM:
            return _has_several_updates(case)
        if embedded == Stage.OPTIONS:
            return "Segment" in case.embedded.message and "Segment" not in case.local.message
        return (
            _has_several_conditions(case)
            or _have_both_maps_faults(case)
            or _is_of_earlier_expression(case)
            or _is_of_start(case)
        )
    return embedded < local


def _stage_of_local(case: Case) -> Stage | None:
    if case.local.message in _FAULTS_OF_SUMS and case.operation in ("UpdateItem", "TransactWriteItems"):
        return Stage.ITEM
    if case.operation in _PATHS_LAST and case.local.message.startswith("Key attributes must be scalars"):
        return Stage.ITEM
    return stage_of_local(case.local.message)


def _has_parts(case: Case) -> bool:
    parts = case.request.get("TransactItems") or ()
    return len(parts) > 1 or case.operation in ("BatchGetItem", "BatchWriteItem")


def _have_both_maps_faults(case: Case) -> bool:
    return {answer.message.partition(" ")[0] for answer in (case.embedded, case.local)} == {
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
    }


def _is_of_earlier_expression(case: Case) -> bool:
    """Whether the engine names an expression that the service looks at before the one that DynamoDB Local names."""
    order = ("Invalid KeyConditionExpression", "Invalid FilterExpression", "Invalid ProjectionExpression")
    named = [answer.message.partition(":")[0] for answer in (case.embedded, case.local)]
    return all(name in order for name in named) and order.index(named[0]) < order.index(named[1])


def _is_of_start(case: Case) -> bool:
    """The service looks at the partition of a start before it looks at the conditions."""
    return case.operation == "Query" and case.embedded.message == "The provided starting key is invalid"


def _has_several_conditions(case: Case) -> bool:
    return case.operation == "Query" and " and " in case.request.get("KeyConditionExpression", "").lower()


def _has_several_updates(case: Case) -> bool:
    return case.operation == "UpdateItem" and len(case.request["UpdateExpression"].split()) > 3


def _cancelled(case: Case) -> bool:
    if case.embedded.code != "TransactionCanceledException" or case.local.code not in _REFUSALS:
        return False
    messages = [reason["Message"] for reason in _reasons(case.embedded) if reason["Code"] == "ValidationError"]
    local = _stage_of_local(case)
    stages = [stage_in_service(message) for message in messages]
    return any(
        message == case.local.message
        or says_the_same(message, case.local.message)
        or (stage is not None and local is not None and (stage <= local or _has_parts(case)))
        for message, stage in zip(messages, stages, strict=True)
    )


def removing_updates(operation: str, request: dict[str, Any]) -> list[dict[str, Any]]:
    """The updates of a valid request that only remove: they set nothing and add nothing."""
    updates = [request] if operation == "UpdateItem" else []
    if operation == "TransactWriteItems":
        updates = [action["Update"] for action in request["TransactItems"] if action.get("Update") is not None]
    return [one for one in updates if _REMOVALS.match(one.get("UpdateExpression") or "") or _only_deletes(one)]


def _only_deletes(update: dict[str, Any]) -> bool:
    actions = {one.get("Action") for one in (update.get("AttributeUpdates") or {}).values()}
    return actions == {"DELETE"}


_REMOVALS = re.compile(r"(?!.*\b(SET|ADD)\b)\s*(REMOVE|DELETE)\b", re.IGNORECASE | re.DOTALL)


def _removal_from_nothing(case: Case) -> bool:
    if case.embedded.code not in (None, "TransactionCanceledException"):
        return False
    if not removing_updates(case.operation, case.request):
        return False
    if case.local.code is None:
        return "Attributes" in case.local.body and same_without(case, "Attributes")
    return "The document path provided in the update expression is invalid for update" in str(case.local)


def _first_reason_alone(case: Case) -> bool:
    if not case.embedded.code == case.local.code == "TransactionCanceledException":
        return False
    told = [reason for reason in _reasons(case.embedded) if reason["Code"] != "None"]
    return [reason["Code"] for reason in told] == ["ValidationError"] and any(
        _is_same_reason(told[0], reason) for reason in _reasons(case.local)
    )


def _capacity_of_nothing(case: Case) -> bool:
    if not same_without(case, "ConsumedCapacity", "ItemCollectionMetrics"):
        return False
    if case.operation in ("Query", "Scan"):
        return 0 in case.embedded.body.get("ScannedCounts", [])
    if case.operation == "GetItem":
        return "Item" not in case.embedded.body
    if case.operation == "BatchGetItem":
        asked = sum(len(part["Keys"]) for part in case.request["RequestItems"].values())
        return asked > sum(len(items) for items in case.embedded.body["Responses"].values())
    writes = ("DeleteItem", "BatchWriteItem", "TransactWriteItems")
    return case.operation in writes and "Delete" in json.dumps([case.operation, case.request])


def _units_by_kind(case: Case) -> bool:
    embedded = _without_kinds(case.embedded.body)
    if "ItemCollectionMetrics" not in case.local.body:
        embedded.pop("ItemCollectionMetrics", None)
    return case.operation.startswith("Transact") and case.local.code is None and bool(embedded == case.local.body)


def _without_kinds(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_kinds(element) for element in node]
    if isinstance(node, dict):
        kinds = ("ReadCapacityUnits", "WriteCapacityUnits")
        return {name: _without_kinds(content) for name, content in node.items() if name not in kinds}
    return node


def _capacity_of_partial_key(case: Case) -> bool:
    is_write = case.operation in ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
    return is_write and _units(case.local) > _units(case.embedded) and same_without(case, "ConsumedCapacity")


def _capacity_of_equal_actions(case: Case) -> bool:
    return (
        case.operation == "TransactWriteItems"
        and len(case.request["TransactItems"]) > 1
        and _units(case.local) < _units(case.embedded)
        and same_without(case, "ConsumedCapacity", "ItemCollectionMetrics")
    )


def _units(answer: Answer) -> float:
    capacity = answer.body.get("ConsumedCapacity", [])
    return sum(float(one["CapacityUnits"]) for one in (capacity if isinstance(capacity, list) else [capacity]))


def _start_at_upper_bound(case: Case) -> bool:
    if case.operation != "Query" or case.embedded.code is not None:
        return False
    if case.local.code is not None:
        return case.local.message == "The provided starting key does not match the range key predicate"
    pages, local_pages = (answer.body.get("ScannedCounts", []) for answer in (case.embedded, case.local))
    paging = ("ScannedCounts", "ConsumedCapacity", "LastEvaluatedKeys")
    return pages == [*local_pages, 0] and same_without(case, *paging)


def _collection_metrics(case: Case) -> bool:
    return "ItemCollectionMetrics" not in case.local.body and same_without(case, "ItemCollectionMetrics")


KNOWN_DIFFERENCES = (
    KnownDifference(
        "failure",
        "DynamoDB Local fails inside (status 500) on members of the wrong JSON type and on broken base64; the service "
        "refuses them with SerializationException or ValidationException.",
        _crashed,
    ),
    KnownDifference(
        "conversion",
        "DynamoDB Local converts scalars of the wrong JSON type (5 to '5'); the service refuses them.",
        lambda case: case.embedded.code == "SerializationException" and _is_mistyped("", case.request),
    ),
    KnownDifference(
        "spare bits",
        "Base64 whose last character has bits that belong to no byte is refused; DynamoDB Local ignores those bits.",
        lambda case: case.embedded.message == "Invalid last non-pad Base64 character dectected",
    ),
    *TABLE_DIFFERENCES,
    KnownDifference(
        "enumerations",
        "DynamoDB Local takes an unknown or empty value of some options, and an empty token, for none; the service "
        "refuses them.",
        lambda case: (
            case.local.code is None
            and case.embedded.code == "ValidationException"
            and (
                "Member must satisfy enum value set" in case.embedded.message
                or "at 'clientRequestToken' failed" in case.embedded.message
                or '"OTHER"' in json.dumps(case.request)
            )
        ),
    ),
    KnownDifference(
        "reserved size",
        "AWS lists SIZE among the reserved words; DynamoDB Local takes it for an attribute name.",
        lambda case: case.embedded.message.lower().endswith(
            "attribute name is a reserved keyword; reserved keyword: size"
        ),
    ),
    KnownDifference(
        "type of a local index key",
        "DynamoDB Local lets an update give the sort attribute of a local index another type; the service refuses it.",
        lambda case: (
            (case.local.code in (None, "TransactionCanceledException") or _EMPTY_INDEX_KEY in case.local.message)
            and _LOCAL_INDEX_TYPE.search(str(case.embedded)) is not None
        ),
    ),
    KnownDifference(
        "words",
        "DynamoDB Local has words of its own for some faults, listed one by one beside the service's in `faults`.",
        _other_words,
    ),
    KnownDifference(
        "order",
        "Where a request has several faults, the service finds them in the order of the stages in `faults`; DynamoDB "
        "Local looks at the table first, and mixes the rest. The engine must have found the earlier fault.",
        _other_order,
    ),
    KnownDifference(
        "reasons of a read",
        "A cancelled TransactGetItems has one reason per item, as a cancelled write has; DynamoDB Local has none.",
        lambda case: (
            case.operation == "TransactGetItems"
            and case.embedded.code == case.local.code == "TransactionCanceledException"
            and any(says_the_same(reason.get("Message", ""), case.local.message) for reason in _reasons(case.embedded))
        ),
    ),
    KnownDifference(
        "reasons of the others",
        "A cancelled transaction has one reason per action; DynamoDB Local has one in all where a key would change.",
        lambda case: (
            case.embedded.code == case.local.code == "TransactionCanceledException"
            and len(_reasons(case.local)) == 1
            and any(_is_same_reason(reason, _reasons(case.local)[0]) for reason in _reasons(case.embedded))
        ),
    ),
    KnownDifference(
        "nothing projected",
        "An item of a transaction of which the projection leaves nothing has an empty response; DynamoDB Local gives "
        "an empty Item.",
        lambda case: (
            case.operation == "TransactGetItems"
            and same_without(case, "Responses", "ConsumedCapacity")
            and case.embedded.body["Responses"]
            == [{} if one.get("Item") == {} else one for one in case.local.body["Responses"]]
        ),
    ),
    KnownDifference(
        "key paths of a condition check",
        "Key attributes are scalars in every condition; DynamoDB Local lets a ConditionCheck look into them.",
        lambda case: (
            case.embedded.message.startswith("Key attributes must be scalars")
            and '"ConditionCheck"' in json.dumps(case.request)
        ),
    ),
    KnownDifference(
        "value in a path",
        "DynamoDB Local's grammar takes a value for a name after a dot, and stumbles over it later.",
        lambda case: (
            case.embedded.code == "ValidationException" and re.search(r"\.\s*:", json.dumps(case.request)) is not None
        ),
    ),
    KnownDifference(
        "update without an expression",
        "The update of a transaction must have an expression; DynamoDB Local takes one without, which changes nothing.",
        lambda case: "update.updateExpression' failed to satisfy constraint" in case.embedded.message,
    ),
    KnownDifference(
        "token of a faulty request",
        "A request that is refused by itself is refused also when its token was used before.",
        lambda case: (
            case.local.code == "IdempotentParameterMismatchException"
            and case.embedded.code in ("ValidationException", "TransactionCanceledException")
        ),
    ),
    KnownDifference(
        "token of another request",
        "A token that comes with other actions is refused; DynamoDB Local compares them by a hash of 32 bits, which is "
        "the same for the keys (b, abc) and (abc, b).",
        lambda case: case.embedded.code == "IdempotentParameterMismatchException" and case.local.code is None,
    ),
    KnownDifference(
        "empty expression",
        "An empty expression is an expression that cannot be empty; DynamoDB Local first takes it for none.",
        lambda case: (
            case.embedded.code == "ValidationException"
            and "" in (case.request.get(name) for name in ("ConditionExpression", "FilterExpression"))
            and "can only be specified when using expressions" in case.local.message
        ),
    ),
    KnownDifference(
        "first reason alone",
        "Of actions that do not fit their schemas, a cancelled transaction tells of the first alone; DynamoDB Local of "
        "all, and of conditions that do not hold.",
        _first_reason_alone,
    ),
    KnownDifference(
        "removal from nothing",
        "An update that only removes leaves an item that is not there alone; DynamoDB Local makes it, with no more than"
        " its key, or refuses a path into it.",
        _removal_from_nothing,
    ),
    KnownDifference(
        "empty map",
        "A map of names or values without an expression is refused also when it is empty; DynamoDB Local takes it for "
        "none.",
        lambda case: (
            case.local.code is None
            and "can only be specified when using expressions" in case.embedded.message
            and re.search(r'"ExpressionAttribute(Names|Values)": \{\}', json.dumps(case.request)) is not None
        ),
    ),
    KnownDifference(
        "maps of actions",
        "An action of a transaction may have names and values that no expression could use; DynamoDB Local refuses them"
        " as in requests about one item.",
        lambda case: (
            case.operation.startswith("Transact")
            and "can only be specified when using expressions" in case.local.message
        ),
    ),
    KnownDifference(
        "cancelled",
        "The service cancels a transaction with the reason ValidationError when an update cannot be applied to the "
        "item (TransactWriteItems documents the messages); DynamoDB Local answers ValidationException.",
        _cancelled,
    ),
    KnownDifference(
        "capacity of nothing",
        "A read that finds nothing, and a delete of what is not there, are charged as the smallest read or write; "
        "DynamoDB Local charges nothing or something else, and for a single delete says so unasked.",
        _capacity_of_nothing,
    ),
    KnownDifference(
        "units by kind",
        "Transactions report ReadCapacityUnits or WriteCapacityUnits beside CapacityUnits; DynamoDB Local does not.",
        _units_by_kind,
    ),
    KnownDifference(
        "capacity of a partial key",
        "An item that lacks one of several attributes of an index key is not in the index; DynamoDB Local charges a "
        "write to the index when the others change.",
        _capacity_of_partial_key,
    ),
    KnownDifference(
        "capacity of equal actions",
        "Every action of a transaction is charged; DynamoDB Local charges only once for actions of equal cost.",
        _capacity_of_equal_actions,
    ),
    KnownDifference(
        "collection metrics",
        "Tables with a local index report ItemCollectionMetrics; DynamoDB Local never does.",
        _collection_metrics,
    ),
    KnownDifference(
        "fetches of a scan",
        "Attributes that a local index does not hold are read from the table at the table's cost; DynamoDB Local "
        "charges for that in queries, not in scans.",
        lambda case: (
            case.operation == "Scan"
            and case.request.get("IndexName") == "LocalKeys"
            and same_without(case, "ConsumedCapacity")
        ),
    ),
    KnownDifference(
        "start at the upper bound",
        "A full page may end, and the next one start, at the item that equals the upper bound of a condition; DynamoDB "
        "Local calls it the last page, and refuses to go on from there.",
        _start_at_upper_bound,
    ),
    KnownDifference(
        "size of a start",
        "A start is a key, and no key is larger than a key may be; DynamoDB Local does not measure that of a scan.",
        lambda case: (
            case.operation == "Scan"
            and case.local.code is None
            and case.embedded.message.startswith("The provided starting key is invalid: ")
            and "exceeded the" in case.embedded.message
        ),
    ),
    KnownDifference(
        "size of a partition key",
        "No item has a partition key that is larger than a key may be; DynamoDB Local lets a query look for one, or "
        "finds the next fault of it.",
        lambda case: (
            case.operation == "Query"
            and case.local.code in (None, "ValidationException")
            and "Size of hashkey" in case.embedded.message
        ),
    ),
    KnownDifference(
        "size of a local index key",
        "No key of an index is larger than a key may be; DynamoDB Local measures that of a local index in puts alone.",
        lambda case: (
            case.operation in ("UpdateItem", "TransactWriteItems", "ExecuteStatement", "ExecuteTransaction")
            and case.local.code is None
            and "Aggregated size of all range keys" in case.embedded.message
        ),
    ),
    KnownDifference(
        "filter behind a projection",
        "An index knows only the attributes that it projects; DynamoDB Local lets the filter of a scan see all.",
        lambda case: (
            case.operation == "Scan"
            and case.request.get("IndexName") in ("Included", "ByNumber", "LocalKeys")
            and ("FilterExpression" in case.request or "ScanFilter" in case.request)
            and case.embedded.body.get("ScannedCount") == case.local.body.get("ScannedCount")
        ),
    ),
    KnownDifference(
        "fragments",
        "UPDATED_OLD and UPDATED_NEW of a nested path give that path alone; DynamoDB Local gives the whole attribute.",
        lambda case: (
            case.request.get("ReturnValues") in ("UPDATED_OLD", "UPDATED_NEW")
            and case.embedded.code is None
            and is_fragment(case.embedded.body, case.local.body)
        ),
    ),
    KnownDifference(
        "segments",
        "Which segment a key belongs to depends on a hash that is the service's own business.",
        lambda case: (
            "Please use ExclusiveStartKey with correct Segment" in case.embedded.message
            or case.local.message == "Exclusive start key must lie within the segment"
        ),
    ),
    *OLDER_DIFFERENCES,
)


def known_difference(case: Case) -> KnownDifference | None:
    """The entry of the list that explains why the two answers differ."""
    return next((known for known in KNOWN_DIFFERENCES if known.matches(case)), None)
