"""Where DynamoDB Local takes definitions of tables otherwise than AWS documents."""

from __future__ import annotations

import copy
import json

from tests.embedded.differential.cases import Case, KnownDifference, is_fragment, same_without
from tests.embedded.differential.comparison import TABLE_OPERATIONS


def _table_found_first(case: Case) -> bool:
    return (
        case.operation in TABLE_OPERATIONS
        and case.embedded.code == "ValidationException"
        and case.local.code in ("ResourceNotFoundException", "ResourceInUseException", "LimitExceededException")
    )


def _units_that_were_left(case: Case) -> bool:
    if case.operation not in ("UpdateTable", "DescribeTable") or case.embedded.code or case.local.code:
        return False
    ((name, local),) = copy.deepcopy(case.local.body).items()
    for index in local.get("GlobalSecondaryIndexes", ()):
        index.pop("ProvisionedThroughput", None)
    is_on_demand = local.get("BillingModeSummary") == {"BillingMode": "PAY_PER_REQUEST"}
    return is_on_demand and case.embedded.body == {name: local}


def _unused_definitions(case: Case) -> bool:
    if case.operation != "UpdateTable" or not same_without(case, "TableDescription"):
        return False
    embedded, local = (dict(answer.body["TableDescription"]) for answer in (case.embedded, case.local))
    definitions, local_definitions = (table.pop("AttributeDefinitions") for table in (embedded, local))
    return embedded == local and all(one in local_definitions for one in definitions)


TABLE_DIFFERENCES = (
    KnownDifference(
        "table found first",
        "The service looks at the request about a table before it looks for the table and its limits; DynamoDB Local "
        "after.",
        _table_found_first,
    ),
    KnownDifference(
        "billing without units",
        "PROVISIONED billing needs its units in the same request; DynamoDB Local takes the table's own.",
        lambda case: (
            case.operation == "UpdateTable"
            and case.local.code is None
            and case.request.get("BillingMode") == "PROVISIONED"
            and "ProvisionedThroughput" not in case.request
        ),
    ),
    KnownDifference(
        "deleted table",
        "The answer to a deletion tells no keys and no indexes; DynamoDB Local describes the table as it was.",
        lambda case: (
            case.operation == "DeleteTable"
            and case.embedded.code is None
            and is_fragment(case.embedded.body, case.local.body)
        ),
    ),
    KnownDifference(
        "units on demand",
        "A table that is billed by requests has no units, and neither have its indexes; DynamoDB Local ignores them.",
        lambda case: (
            case.local.code is None
            and case.embedded.code == "ValidationException"
            and case.operation in ("CreateTable", "UpdateTable")
            and '"ProvisionedThroughput"' in json.dumps(case.request)
        ),
    ),
    KnownDifference(
        "units that were left",
        "The indexes of a table lose their units when it is billed by requests; DynamoDB Local keeps them.",
        _units_that_were_left,
    ),
    KnownDifference(
        "definitions beside a new index",
        "The service takes other types for attributes that a new index does not use, and keeps those that they have; "
        "DynamoDB Local refuses them.",
        lambda case: (
            case.operation == "UpdateTable"
            and case.embedded.code is None
            and case.local.code == "ValidationException"
            and '"Create"' in json.dumps(case.request)
        ),
    ),
    KnownDifference(
        "definitions of a new index",
        "The request for a new index must define all attributes of its key; DynamoDB Local knows those of the table.",
        lambda case: (
            case.operation == "UpdateTable"
            and case.local.code is None
            and case.embedded.code == "ValidationException"
            and '"Create"' in json.dumps(case.request)
        ),
    ),
    KnownDifference(
        "definitions that nothing uses",
        "A table has no definition that no key uses; DynamoDB Local counts an attribute of two indexes twice.",
        lambda case: (
            case.operation == "CreateTable"
            and case.local.code is None
            and case.embedded.code == "ValidationException"
            and '"AttributeName": "unused"' in json.dumps(case.request)
        ),
    ),
    KnownDifference(
        "time to live without a switch",
        "UpdateTimeToLive must say whether it is Enabled; DynamoDB Local takes it for off.",
        lambda case: (
            case.operation == "UpdateTimeToLive"
            and case.embedded.code == "ValidationException"
            and "Enabled" not in (case.request.get("TimeToLiveSpecification") or {})
        ),
    ),
    KnownDifference(
        "unused definitions",
        "The service keeps the definitions of key attributes only; DynamoDB Local all that UpdateTable mentions.",
        _unused_definitions,
    ),
)
