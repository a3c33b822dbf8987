"""Key schemas, attribute definitions and projections of a request, checked in DynamoDB's order and words."""

from __future__ import annotations

from typing import Any, cast

from jobtable.embedded.names import valid_attribute_name
from jobtable.embedded.ordering import KeyType
from jobtable.embedded.requests import constraint, constraints_broken, expect_type
from jobtable.embedded.storage.catalogue import Projection
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request

KeySchema = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of the partition attributes, and those of the sort attributes."""


def maps(request: Request, member: str) -> list[dict[str, Any]]:
    """A member that is a list of structures; empty if it is missing."""
    value = request.get(member)
    if value is None:
        return []
    expect_type(value, list)
    for one in value:
        expect_type(one, dict)
    return list(value)


def text(structure: Request, member: str) -> str | None:
    """A member that is a string, or None."""
    value = structure.get(member)
    if value is not None:
        expect_type(value, str)
    return value


def attribute_definitions(request: Request) -> dict[str, KeyType]:
    """AttributeDefinitions as name to type, or RequestRefused."""
    types: dict[str, KeyType] = {}
    definitions = maps(request, "AttributeDefinitions")
    if not definitions:
        raise RequestRefused("No Attribute Schema Defined")
    for definition in definitions:
        name, type_ = text(definition, "AttributeName"), text(definition, "AttributeType")
        if name is None:
            raise RequestRefused("Attribute name must be specified.")
        if type_ is None:
            raise RequestRefused("Invalid Attribute value. Must contain exactly one of the supported datatypes.")
        if type_ not in ("S", "N", "B"):
            raise RequestRefused("Member must satisfy enum value set: [B, N, S]")
        if name in types:
            raise RequestRefused("Cannot have two attributes with the same name")
        types[valid_attribute_name(name)] = cast("KeyType", type_)
    return types


def simple_key_schema(structure: Request, path: str = "") -> KeySchema:
    """The KeySchema of a table or local index: one partition attribute, at most one sort attribute.

    `path` is where the index stands in the request ("localSecondaryIndexes.1.member.").
    """
    elements = _elements(structure)
    if len(elements) > 2:
        raise RequestRefused(
            "Key Schema too big.  Key Schema must at most consist of the hash and range key of a table"
        )
    partition, sort = _split(elements, path)
    if len(partition) > 1:
        raise RequestRefused("Too many hash keys specified.  All Dynamo DB tables must have exactly one hash key")
    return partition, sort


def global_key_schema(structure: Request, path: str) -> KeySchema:
    """The KeySchema of the global index at `path`: up to four partition attributes, then up to four sort attributes."""
    partition, sort = _split(_elements(structure), path)
    if len(partition) > 4:
        raise RequestRefused("Too many partition keys. GSI can have at most 4 partition keys")
    if len(sort) > 4:
        raise RequestRefused("Too many sort keys. GSI can have at most 4 sort keys")
    return partition, sort


def projection(structure: Request) -> tuple[Projection, tuple[str, ...]]:
    """The Projection of an index: its type, and the attributes that are included."""
    given = structure.get("Projection")
    if given is not None:
        expect_type(given, dict)
    kind = text(given or {}, "ProjectionType")
    if kind is None:
        raise RequestRefused("Indexes must have a projection specified")
    if kind not in ("ALL", "KEYS_ONLY", "INCLUDE"):
        raise RequestRefused("Projection type must be INCLUDE, ALL, or KEYS_ONLY")
    names = (given or {}).get("NonKeyAttributes")
    if kind != "INCLUDE" and names is not None:
        raise RequestRefused("No attributes should be specified to be projected unless projection type is INCLUDE")
    if kind == "INCLUDE" and not names:
        raise RequestRefused(
            "If Projection type INCLUDE is specified, some non-key attributes to include in the projection must be"
            " specified as well"
        )
    return cast("Projection", kind), _included(names or [])


def key_elements(partition: tuple[str, ...], sort: tuple[str, ...]) -> list[dict[str, str]]:
    """A key schema as DynamoDB describes it."""
    hashes = [{"AttributeName": name, "KeyType": "HASH"} for name in partition]
    return hashes + [{"AttributeName": name, "KeyType": "RANGE"} for name in sort]


def _included(names: Any) -> tuple[str, ...]:
    expect_type(names, list)
    for name in names:
        expect_type(name, str)
        valid_attribute_name(name)
    if len(set(names)) < len(names):
        raise RequestRefused("Cannot have two attributes with the same name")
    return tuple(names)


def _elements(structure: Request) -> list[tuple[str | None, str | None]]:
    elements = [(text(one, "AttributeName"), text(one, "KeyType")) for one in maps(structure, "KeySchema")]
    if not elements:
        raise RequestRefused(
            "No defined key schema.  A key schema containing at least a hash key must be defined for all tables"
        )
    return elements


def _split(elements: list[tuple[str | None, str | None]], path: str) -> KeySchema:
    if any(kind is None for _, kind in elements):
        raise RequestRefused("One or more keys is not specified as being hash or range.")
    for number, (_, kind) in enumerate(elements, start=1):
        if kind not in ("HASH", "RANGE"):
            where = f"{path}keySchema.{number}.member.keyType"
            rule = "Member must satisfy enum value set: [HASH, RANGE]"
            raise constraints_broken([constraint(where, f"'{kind}'", rule)])
    if any(name is None for name, _ in elements):
        raise RequestRefused("Attribute name must be specified.")
    names = [str(name) for name, _ in elements]
    if len(set(names)) < len(names):
        raise RequestRefused("Two keys can not have the same name")
    partition = tuple(str(name) for name, kind in elements if kind == "HASH")
    if not partition:
        raise RequestRefused("No Hash Key specified in schema.  All Dynamo DB tables must have exactly one hash key")
    if any(kind == "HASH" for _, kind in elements[len(partition) :]):
        raise RequestRefused(
            "Invalid key order. Hash Key must be specified first in key schema, Range Key must be specifed second"
        )
    return partition, tuple(names[len(partition) :])
