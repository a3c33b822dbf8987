"""Names of tables and indexes, their ARNs, and the key schemas of a request, in DynamoDB's order and words."""

from __future__ import annotations

import re
from typing import Any

from jobtable.embedded.request_model import name_faults, name_or_arn_faults, table_of_arn
from jobtable.embedded.storage import View
from jobtable.embedded.storage.table_catalogue import TableRecord
from jobtable.embedded.table_schema import KeyType, ProjectionType
from jobtable.embedded.wordings import constraint, constraints_broken, invalid, lower_first
from jobtable.errors import AccessDenied, RequestRefused, TableNotFound, request_error
from jobtable.store.backend import Request

REGION = "ddblocal"
ACCOUNT = "000000000000"
_TABLES = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/"

_STREAM_ARN = re.compile(r"arn:[^:]*:dynamodb:[^:]*:[^:]*:table/[a-zA-Z0-9_.-]+/stream/.+", re.ASCII)
_BACKUP_ARN = re.compile(
    r"arn:([^:]*):([^:]*):([^:]*):([^:]*):table/([a-zA-Z0-9_.-]{3,255})/backup/(\d{14}-[0-9a-f]{8})", re.ASCII
)
_INVALID_NAME = (
    "Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the"
    " characters a-z, A-Z, 0-9, '_', '-', and '.'"
)
_INVALID_ATTRIBUTE = (
    "Names of key attributes and attributes projected into an index must be between 1 and 255 characters, inclusive"
)


def table_arn(table: str) -> str:
    return _TABLES + table


def index_arn(table: str, index: str) -> str:
    return f"{_TABLES}{table}/index/{index}"


def stream_arn(table: str, label: str) -> str:
    return f"{_TABLES}{table}/stream/{label}"


def backup_arn(table: str, label: str) -> str:
    return f"{_TABLES}{table}/backup/{label}"


def backup_of_arn(arn: str) -> tuple[str, str]:
    """Return the table and label of a backup's ARN, in any region; RequestError if it names none here."""
    match = _BACKUP_ARN.fullmatch(arn)
    if match is None:
        raise RequestRefused("Invalid Backup ARN")
    partition, service, region, account, table, label = match.groups()
    if not region or account != ACCOUNT:
        raise AccessDenied("Access is denied")
    if (partition, service) != ("aws", "dynamodb"):
        raise RequestRefused("Invalid Request: BackupArn is not valid")
    return table, label


def is_backup_arn(text: str) -> bool:
    """Whether a text has the form of a backup's ARN, in any region and account."""
    return _BACKUP_ARN.fullmatch(text) is not None


def encryption_key_arn(key: str) -> str:
    """Return the ARN of an encryption key given by its id, alias or ARN."""
    if key.startswith("arn:"):
        return key
    return f"arn:aws:kms:{REGION}:{ACCOUNT}:{key if key.startswith('alias/') else f'key/{key}'}"


def stream_of_arn(arn: str) -> tuple[str, str] | None:
    """Return the table and label of a stream's ARN; None for another text."""
    table, found, label = arn.removeprefix(_TABLES).partition("/stream/")
    return (table, label) if found and arn.startswith(_TABLES) else None


def is_own_arn(arn: str) -> bool:
    """Whether an ARN has the form of this engine's own ones."""
    return arn.startswith(_TABLES)


def is_of_own_account(arn: str) -> bool:
    """Whether a table's ARN is of this engine's account, in any region."""
    return arn.split(":")[4] == ACCOUNT


def is_stream_arn(text: str) -> bool:
    """Whether a text has the form of a stream's ARN, in any region and account."""
    return _STREAM_ARN.fullmatch(text) is not None


def valid_name(name: str) -> str:
    """Return a name of a table, or raise RequestRefused."""
    if name_faults(name):
        raise RequestRefused(_INVALID_NAME)
    return name


def table_of(request: Request, member: str = "TableName") -> str:
    """Return the table that a request names, by its name or its ARN; RequestRefused without one."""
    name: str | None = request.get(member)
    if name is None:
        raise RequestRefused(f"The parameter '{member}' is required but was not present in the request")
    faults = name_or_arn_faults(name)
    if faults:
        raise constraints_broken([constraint(lower_first(member), f"'{name}'", fault) for fault in faults])
    return table_of_arn(name) or name


def existing_table(view: View, name: str) -> TableRecord:
    """Return the record of a table, or raise TableNotFound."""
    record = view.record(name)
    if record is None:
        raise _not_found(name)
    return record


def _not_found(name: str) -> TableNotFound:
    return TableNotFound(f"Requested resource not found: Table: {name} not found")


def whole_table(view: View, name: str) -> TableRecord:
    """Return the same, but raise TableNotFound during a restore too: DynamoDB only describes the table then."""
    record = existing_table(view, name)
    if record.is_creating:
        raise _not_found(name)
    return record


def source_table(view: View, name: str) -> TableRecord:
    """Return the same for operations on backups, which have their own error for a missing table."""
    record = view.record(name)
    if record is None or record.is_creating:
        raise request_error("TableNotFoundException", f"Table not found: {name}")
    return record


_MOST_OF_A_KIND = 4

KeySchema = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of the partition attributes, and of the sort attributes."""


def attribute_definitions(request: Request) -> dict[str, KeyType]:
    """Return AttributeDefinitions as name to type, or raise RequestRefused."""
    types: dict[str, KeyType] = {}
    for definition in request.get("AttributeDefinitions") or ():
        name: str = definition["AttributeName"]
        if name in types:
            raise RequestRefused(f"Attribute Name is duplicated: {name}")
        types[name] = definition["AttributeType"]
    return types


def check_defined(structure: Request, attributes: dict[str, KeyType]) -> None:
    """Raise RequestRefused if the KeySchema of a table or index has undefined attributes."""
    names = [element["AttributeName"] for element in structure["KeySchema"]]
    if not attributes.keys() >= set(names):
        raise invalid(
            f"Some index key attributes are not defined in AttributeDefinitions. Keys: [{', '.join(names)}],"
            f" AttributeDefinitions: [{', '.join(attributes)}]"
        )


def simple_key_schema(structure: Request) -> KeySchema:
    """Return the KeySchema of a table or local index: one partition attribute, at most one sort attribute."""
    names, kinds = _elements(structure)
    if len(set(names)) < len(names):
        raise _same_name()
    _check_first(kinds)
    if "HASH" in kinds[1:]:
        raise RequestRefused("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
    return tuple(names[:1]), tuple(names[1:])


def global_key_schema(structure: Request) -> KeySchema:
    """Return the KeySchema of a global index: up to four partition attributes, then up to four sort attributes."""
    names, kinds = _elements(structure)
    if len(set(names)) < len(names):
        if kinds == ["HASH", "RANGE"]:
            raise _same_name()
        raise RequestRefused("The KeySchema contains multiple key attributes with the same name")
    _check_first(kinds)
    behind = kinds.count("HASH")
    if "HASH" in kinds[behind:]:
        raise invalid("All HASH key attributes must precede RANGE key attributes in the KeySchema")
    for kind in ("HASH", "RANGE"):
        if kinds.count(kind) > _MOST_OF_A_KIND:
            raise invalid(f"The KeySchema exceeds the maximum allowed number of {kind} key attributes")
    return tuple(names[:behind]), tuple(names[behind:])


def projection(structure: Request) -> tuple[ProjectionType, tuple[str, ...]]:
    """Return the Projection of an index: its type and the included attributes."""
    given = structure["Projection"]
    kind, names = given.get("ProjectionType"), given.get("NonKeyAttributes")
    if kind is None:
        raise invalid("Unknown ProjectionType: null")
    if kind != "INCLUDE" and names is not None:
        raise invalid(f"ProjectionType is {kind}, but NonKeyAttributes is specified")
    if kind == "INCLUDE" and names is None:
        raise invalid("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
    return kind, () if names is None else _included(names)


def _included(names: list[Any]) -> tuple[str, ...]:
    for name in names:
        if name is None:
            raise RequestRefused("Attribute name must be specified.")
        if not 1 <= len(name.encode()) <= 255:
            raise RequestRefused(_INVALID_ATTRIBUTE)
    repeated = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if repeated is not None:
        raise invalid(f"Duplicate element in NonKeyAttributes: {repeated}")
    return tuple(names)


def _elements(structure: Request) -> tuple[list[str], list[str]]:
    elements = structure["KeySchema"]
    return [element["AttributeName"] for element in elements], [element["KeyType"] for element in elements]


def _check_first(kinds: list[str]) -> None:
    if kinds[0] != "HASH":
        raise RequestRefused("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")


def _same_name() -> RequestRefused:
    return RequestRefused("Both the Hash Key and the Range Key element in the KeySchema have the same name")
