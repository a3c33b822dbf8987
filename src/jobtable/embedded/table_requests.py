"""CreateTable's and UpdateTable's parameters, checked in DynamoDB's order and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from jobtable.embedded.key_schemas import (
    KeySchema,
    attribute_definitions,
    global_key_schema,
    maps,
    projection,
    simple_key_schema,
    text,
)
from jobtable.embedded.names import valid_name
from jobtable.embedded.ordering import KeyType
from jobtable.embedded.requests import expect_type
from jobtable.embedded.storage.catalogue import OnDemandLimit, Projection, Throughput, ViewType
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request

MOST_UNITS = 40_000
_MOST_GLOBAL_INDEXES = 20
_MOST_LOCAL_INDEXES = 5
_MOST_INCLUDED = 100
_VIEWS = ("NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY")


@dataclass(frozen=True, slots=True)
class NewIndex:
    """An index that a request asks for."""

    name: str
    is_local: bool
    key: KeySchema
    projection: Projection
    included: tuple[str, ...]
    throughput: Throughput
    on_demand: OnDemandLimit | None


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that a request asks for."""

    name: str
    attributes: dict[str, KeyType]
    key: KeySchema
    indexes: tuple[NewIndex, ...]
    is_on_demand: bool
    throughput: Throughput
    on_demand: OnDemandLimit | None
    view: ViewType | None
    table_class: str | None
    is_protected: bool
    encryption: dict[str, str] | None
    tags: dict[str, str]


def new_table(request: Request, tags: dict[str, str]) -> NewTable:
    """The table that CreateTable asks for, or RequestRefused."""
    name = valid_name(request.get("TableName"))
    key = simple_key_schema(request)
    attributes = attribute_definitions(request)
    for kind, names in zip(("Hash", "Range"), key, strict=True):
        if any(one not in attributes for one in names):
            raise RequestRefused(f"{kind} Key not specified in Attribute Definitions.  Type unknown.")
    is_on_demand = billing_mode(request) == "PAY_PER_REQUEST"
    indexes = _local_indexes(request, key, attributes) + _global_indexes(request, attributes, is_on_demand)
    _check_together(key, attributes, indexes)
    return NewTable(
        name=name,
        attributes=attributes,
        key=key,
        indexes=indexes,
        is_on_demand=is_on_demand,
        throughput=Throughput() if is_on_demand else table_throughput(request),
        on_demand=on_demand_limit(request),
        view=stream_view(request),
        table_class=table_class(request),
        is_protected=bool(flag(request, "DeletionProtectionEnabled")),
        encryption=encryption(request),
        tags=tags,
    )


def flag(structure: Request, member: str) -> bool | None:
    """A member that is true or false, or None."""
    value = structure.get(member)
    if value is not None:
        expect_type(value, bool)
    return value


def billing_mode(request: Request) -> str | None:
    """BillingMode, or None; RequestRefused for an unknown one."""
    return _one_of(request, "BillingMode", ("PROVISIONED", "PAY_PER_REQUEST"))


def table_class(request: Request) -> str | None:
    """TableClass, or None; RequestRefused for an unknown one."""
    return _one_of(request, "TableClass", ("STANDARD", "STANDARD_INFREQUENT_ACCESS"))


def table_throughput(request: Request) -> Throughput:
    """The ProvisionedThroughput of a table, which must be there."""
    return _throughput(request, "table", "Table")


def index_throughput(structure: Request) -> Throughput:
    """The ProvisionedThroughput of a global index, which must be there."""
    return _throughput(structure, "global secondary index", "Global Secondary Index's")


def on_demand_limit(structure: Request) -> OnDemandLimit | None:
    """OnDemandThroughput, or None."""
    given = structure.get("OnDemandThroughput")
    if given is None:
        return None
    expect_type(given, dict)
    return OnDemandLimit(read=_units(given, "MaxReadRequestUnits"), write=_units(given, "MaxWriteRequestUnits"))


def encryption(request: Request) -> dict[str, str] | None:
    """SSESpecification as it is described; None where the key is DynamoDB's own. Nothing is encrypted here."""
    given = request.get("SSESpecification")
    if given is None:
        return None
    expect_type(given, dict)
    if not flag(given, "Enabled"):
        return None
    key = text(given, "KMSMasterKeyId")
    return {"SSEType": "KMS"} if key is None else {"SSEType": "KMS", "KMSMasterKeyArn": key}


def stream_view(request: Request) -> ViewType | None:
    """What the stream is to show, None where there shall be none (or nothing is said: see `stream_change`)."""
    specification = request.get("StreamSpecification")
    if specification is None:
        return None
    expect_type(specification, dict)
    is_enabled, view = flag(specification, "StreamEnabled"), text(specification, "StreamViewType")
    if is_enabled is None:
        raise RequestRefused("Stream StreamEnabled was null")
    if is_enabled and not view:
        raise RequestRefused("Invalid StreamViewType: Stream ViewType must not be null or empty when enabling streams.")
    if not is_enabled and view:
        raise RequestRefused("Invalid StreamViewType: Stream StreamEnabled was false but a StreamViewType was present.")
    _one_of(specification, "StreamViewType", _VIEWS)
    return cast("ViewType", view) if is_enabled else None


def new_global_index(structure: Request, path: str, attributes: dict[str, KeyType], *, is_on_demand: bool) -> NewIndex:
    """The global index that a request asks for at `path`, or RequestRefused."""
    throughput = Throughput() if is_on_demand else index_throughput(structure)
    name = valid_name(structure.get("IndexName"))
    kind, included = projection(structure)
    key = global_key_schema(structure, path)
    for attribute in (*key[0], *key[1]):
        if attribute not in attributes:
            raise RequestRefused(f"Attribute {attribute} is not defined in AttributeDefinitions")
    return NewIndex(name, False, key, kind, included, throughput, on_demand_limit(structure))


def check_index_counts(indexes: int, included: int) -> None:
    """RequestRefused if a table would have too many global indexes or included attributes."""
    if indexes > _MOST_GLOBAL_INDEXES:
        raise RequestRefused("GlobalSecondaryIndex count exceeds the per-table limit")
    if included > _MOST_INCLUDED:
        # The number in this message is DynamoDB's, though its limit has been raised to 100 since.
        raise RequestRefused("No more than 20 attributes per table can be projected into Local Secondary Indices")


def _local_indexes(request: Request, key: KeySchema, attributes: dict[str, KeyType]) -> tuple[NewIndex, ...]:
    structures = maps(request, "LocalSecondaryIndexes")
    if structures and not key[1]:
        raise RequestRefused("Local Secondary indices are not allowed on hash tables, only hash and range tables")
    if len(structures) > _MOST_LOCAL_INDEXES:
        raise RequestRefused("Cannot have more than 5 local secondary indexes per table")
    indexes: list[NewIndex] = []
    for number, structure in enumerate(structures, start=1):
        index = _local_index(structure, f"localSecondaryIndexes.{number}.member.", key, attributes)
        if any(other.name == index.name for other in indexes):
            raise RequestRefused("Two local secondary indices have the same name")
        indexes.append(index)
    return tuple(indexes)


def _local_index(structure: Request, path: str, key: KeySchema, attributes: dict[str, KeyType]) -> NewIndex:
    name = valid_name(structure.get("IndexName"))
    kind, included = projection(structure)
    partition, sort = simple_key_schema(structure, path)
    if partition != key[0]:
        raise RequestRefused("Local Secondary indices must have the same hash key as the main table")
    if not sort:
        raise RequestRefused("Local secondary indices must have a range key")
    if sort[0] not in attributes:
        raise RequestRefused("Local Secondary Index range key not specified in Attribute Definitions.Type unknown.")
    return NewIndex(name, True, (partition, sort), kind, included, Throughput(), None)


def _global_indexes(request: Request, attributes: dict[str, KeyType], is_on_demand: bool) -> tuple[NewIndex, ...]:
    structures = maps(request, "GlobalSecondaryIndexes")
    if not structures and request.get("GlobalSecondaryIndexes") is not None:
        raise RequestRefused("GSI list is empty/invalid")
    check_index_counts(len(structures), 0)
    names: set[str] = set()
    for structure in structures:
        if not is_on_demand:
            index_throughput(structure)
        name = valid_name(structure.get("IndexName"))
        if name in names:
            raise RequestRefused("Two global secondary indices have the same name")
        names.add(name)
    return tuple(
        new_global_index(one, f"globalSecondaryIndexes.{number}.member.", attributes, is_on_demand=is_on_demand)
        for number, one in enumerate(structures, start=1)
    )


def _check_together(key: KeySchema, attributes: dict[str, KeyType], indexes: tuple[NewIndex, ...]) -> None:
    if len({index.name for index in indexes}) < len(indexes):
        raise RequestRefused("Local Secondary Indices AND Global Secondary Indices must have different names")
    check_index_counts(0, sum(len(index.included) for index in indexes))
    used = {*key[0], *key[1]}
    for index in indexes:
        used.update(*index.key)
    if used != attributes.keys():
        raise RequestRefused(
            "The number of attributes in key schema must match the number of attributes defined in attribute"
            " definitions."
        )


def _throughput(structure: Request, owner: str, possessive: str) -> Throughput:
    given = structure.get("ProvisionedThroughput")
    if given is None:
        raise RequestRefused(f"No provisioned throughput specified for the {owner}")
    expect_type(given, dict)
    read, write = _units(given, "ReadCapacityUnits"), _units(given, "WriteCapacityUnits")
    if read is None or write is None or read < 1 or write < 1:
        raise RequestRefused(f"{possessive} read and write throughput must be at least 1, and cannot be null")
    if max(read, write) > MOST_UNITS:
        raise RequestRefused(f"Cannot increase provisioned throughput to more than {MOST_UNITS:,} units per table")
    return Throughput(read=read, write=write)


def _units(structure: Request, member: str) -> int | None:
    value = structure.get(member)
    if value is not None:
        expect_type(value, int)
    return value


def _one_of(structure: Request, member: str, allowed: tuple[str, ...]) -> str | None:
    value = text(structure, member)
    if value is not None and value not in allowed:
        path = member[:1].lower() + member[1:]
        raise RequestRefused(
            f"1 validation error detected: Value '{value}' at '{path}' failed to satisfy constraint: Member must"
            f" satisfy enum value set: [{', '.join(allowed)}]"
        )
    return value
