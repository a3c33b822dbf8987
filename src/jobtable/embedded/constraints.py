"""The constraints on the parameters of table operations.

All broken constraints of a request are reported together, before any table is looked up and before parameters are
checked against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from jobtable.embedded.request_checks import (
    MOST_TOLD,
    Limits,
    constraint,
    constraints_broken,
    index_name_faults,
    lower_first,
    name_faults,
    table_of_arn,
)
from jobtable.embedded.shapes import wrong_type
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request


@dataclass(frozen=True, slots=True)
class Rule(Limits):
    """The constraints on one parameter, and on the members of the structure or structures in it."""

    is_required: bool = False
    is_looked_for_first: bool = False  # whether a request without it is refused for that alone
    name_faults: Callable[[str], list[str]] | None = None
    """Checks a parameter that is a name; returns the constraints that it breaks."""
    members: Mapping[str, Rule] = field(default_factory=dict)

    def faults(self, value: Any, path: str) -> Iterator[str]:
        """Yield the constraints that a value of the right type breaks; `path` is its place in the request."""
        if value is None:
            if self.is_required:
                yield constraint(path, "null", "Member must not be null")
            return
        for rule in (*self.broken(value), *(self.name_faults(value) if self.name_faults else ())):
            yield constraint(path, _shown(value), rule)
        if isinstance(value, dict):
            yield from _faults_of_members(value, self.members, f"{path}.")
        elif isinstance(value, list) and self.members:
            for number, one in enumerate(value, start=1):
                yield from _faults_of_members(one or {}, self.members, f"{path}.{number}.member.")


def check_constraints(operation: str, request: Request) -> None:
    """Raise RequestRefused if a parameter has the wrong JSON type, or with the first ten broken constraints."""
    mistyped = wrong_type(operation, request)
    if mistyped is not None:
        raise mistyped
    rules = _RULES[operation]
    for name, rule in rules.items():
        if rule.is_looked_for_first and request.get(name) is None:
            raise RequestRefused(f"The parameter '{name}' is required but was not present in the request")
    faults = list(islice(_faults_of_members(request, rules), MOST_TOLD))
    if faults:
        raise constraints_broken(faults)


def _faults_of_members(structure: Mapping[str, Any], rules: Mapping[str, Rule], path: str = "") -> Iterator[str]:
    for name, rule in rules.items():
        yield from rule.faults(structure.get(name), path + lower_first(name))


def _shown(value: Any) -> str:
    return f"'[{', '.join(map(_shown_element, value))}]'" if isinstance(value, list) else f"'{value}'"


def _shown_element(element: str | Mapping[str, str] | None) -> str:
    if isinstance(element, str):
        return element
    if element is None:
        return "null"
    name, kind = (element.get(member) or "null" for member in ("AttributeName", "KeyType"))
    return f"KeySchemaElement(attributeName={name}, keyType={kind})"


_NEW_NAME = Rule(is_required=True, name_faults=name_faults)
_NEW_TABLE_NAME = replace(_NEW_NAME, is_looked_for_first=True)
_OPTIONAL_TABLE_NAME = Rule(name_faults=lambda name: [] if table_of_arn(name) else name_faults(name))
_TABLE_NAME = replace(_OPTIONAL_TABLE_NAME, is_looked_for_first=True)
_ATTRIBUTE_NAME = Rule(is_required=True, shortest=1, longest=255)
_DEFINITION = {"AttributeType": Rule(is_required=True, enum=("B", "N", "S")), "AttributeName": _ATTRIBUTE_NAME}
_KEY_ELEMENT = {"AttributeName": _ATTRIBUTE_NAME, "KeyType": Rule(is_required=True, enum=("HASH", "RANGE"))}
_TWO_KEYS = Rule(is_required=True, shortest=1, longest=2, members=_KEY_ELEMENT)
_UNIT = Rule(is_required=True, least=1)
_THROUGHPUT = Rule(members={"WriteCapacityUnits": _UNIT, "ReadCapacityUnits": _UNIT})
_PROJECTION = Rule(
    is_required=True,
    members={
        "ProjectionType": Rule(enum=("ALL", "INCLUDE", "KEYS_ONLY")),
        "NonKeyAttributes": Rule(shortest=1, longest=20),
    },
)
_LOCAL_INDEX = {"IndexName": _NEW_NAME, "KeySchema": _TWO_KEYS, "Projection": _PROJECTION}
_GLOBAL_INDEX = {
    "IndexName": _NEW_NAME,
    "KeySchema": Rule(is_required=True, shortest=1, members=_KEY_ELEMENT),
    "Projection": _PROJECTION,
    "ProvisionedThroughput": _THROUGHPUT,
}
_INDEX_UPDATE = {
    "Update": Rule(members={"IndexName": _NEW_NAME, "ProvisionedThroughput": _THROUGHPUT}),
    "Create": Rule(members=_GLOBAL_INDEX),
    "Delete": Rule(members={"IndexName": _NEW_NAME}),
}
_BILLING = Rule(enum=("PROVISIONED", "PAY_PER_REQUEST"))
_ENCRYPTION = Rule(members={"SSEType": Rule(enum=("AES256", "KMS")), "KMSMasterKeyId": Rule(shortest=1)})
_OPTIONS = {
    "BillingMode": _BILLING,
    "ProvisionedThroughput": _THROUGHPUT,
    "StreamSpecification": Rule(
        members={
            "StreamEnabled": Rule(is_required=True),
            "StreamViewType": Rule(enum=("OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE")),
        }
    ),
    "SSESpecification": _ENCRYPTION,
}
_NAMED = {"TableName": _TABLE_NAME}
_BACKUP_ARN = Rule(shortest=37, longest=1024)
_NAMED_BACKUP = {"BackupArn": Rule(is_required=True)}
_OVERRIDES = {
    "BillingModeOverride": _BILLING,
    "ProvisionedThroughputOverride": _THROUGHPUT,
    "SSESpecificationOverride": _ENCRYPTION,
    "GlobalSecondaryIndexOverride": Rule(members=_GLOBAL_INDEX),
    "LocalSecondaryIndexOverride": Rule(members=_LOCAL_INDEX),
}

_RULES: dict[str, Mapping[str, Rule]] = {
    "CreateTable": {
        "AttributeDefinitions": Rule(is_required=True, members=_DEFINITION),
        **_NAMED,
        **_OPTIONS,
        "KeySchema": _TWO_KEYS,
        "GlobalSecondaryIndexes": Rule(members=_GLOBAL_INDEX),
        "LocalSecondaryIndexes": Rule(members=_LOCAL_INDEX),
    },
    "UpdateTable": {
        "AttributeDefinitions": Rule(members=_DEFINITION),
        **_NAMED,
        **_OPTIONS,
        "GlobalSecondaryIndexUpdates": Rule(members=_INDEX_UPDATE),
    },
    "ListTables": {"ExclusiveStartTableName": Rule(name_faults=index_name_faults), "Limit": Rule(least=1, most=100)},
    "UpdateTimeToLive": {
        **_NAMED,
        "TimeToLiveSpecification": Rule(
            is_required=True, members={"AttributeName": _ATTRIBUTE_NAME, "Enabled": Rule(is_required=True)}
        ),
    },
    "RestoreTableToPointInTime": {
        "SourceTableName": _OPTIONAL_TABLE_NAME,
        "TargetTableName": _NEW_TABLE_NAME,
        **_OVERRIDES,
    },
    "CreateBackup": {**_NAMED, "BackupName": replace(_NEW_NAME, name_faults=index_name_faults)},
    "DescribeBackup": _NAMED_BACKUP,
    "DeleteBackup": _NAMED_BACKUP,
    "ListBackups": {
        "TableName": _OPTIONAL_TABLE_NAME,
        "Limit": Rule(least=1, most=100),
        "ExclusiveStartBackupArn": _BACKUP_ARN,
        "BackupType": Rule(enum=("USER", "SYSTEM", "AWS_BACKUP", "ALL")),
    },
    "RestoreTableFromBackup": {"TargetTableName": _NEW_TABLE_NAME, **_NAMED_BACKUP, **_OVERRIDES},
}
