"""Key schemas, attribute definitions and projections of a request, checked in DynamoDB's order and words."""

from __future__ import annotations

from typing import Any

from jobtable.embedded.names import valid_attribute_name
from jobtable.embedded.ordering import KeyType
from jobtable.embedded.requests import (
    REQUIRED_MAP,
    Member,
    check_members,
    constraint,
    constraints_broken,
    expect_type,
)
from jobtable.embedded.storage.catalogue import Projection
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request

_INVALID = "One or more parameter values were invalid: "
_NAME = Member(str, required=True, longest=255)
_DEFINITION_MEMBERS = {"AttributeName": _NAME, "AttributeType": Member(str, required=True, enum=("B", "N", "S"))}
_ELEMENT_MEMBERS = {"AttributeName": _NAME, "KeyType": Member(str, required=True, enum=("HASH", "RANGE"))}
_MOST_OF_A_KIND = 4
_MOST_INCLUDED = 20
_PROJECTION_TYPE = Member(str, enum=("ALL", "INCLUDE", "KEYS_ONLY"))

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
    for number, definition in enumerate(maps(request, "AttributeDefinitions"), start=1):
        check_members(definition, _DEFINITION_MEMBERS, f"attributeDefinitions.{number}.member.")
        name: str = definition["AttributeName"]
        if name in types:
            raise RequestRefused(f"Attribute Name is duplicated: {name}")
        types[name] = definition["AttributeType"]
    return types


def table_key_schema(request: Request) -> KeySchema:
    """The KeySchema of a table. DynamoDB counts its attributes before it looks at them."""
    if len(_two_elements(request, "")) > len(maps(request, "AttributeDefinitions")):
        raise RequestRefused("Invalid KeySchema: Some index key attribute have no definition")
    return simple_key_schema(request)


def simple_key_schema(structure: Request, path: str = "") -> KeySchema:
    """The KeySchema of a table or local index: one partition attribute, at most one sort attribute.

    `path` is where the structure stands in the request ("localSecondaryIndexes.1.member.").
    """
    partition, sort = _split(_two_elements(structure, path))
    if len(partition) > 1:
        raise RequestRefused("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
    return partition, sort


def global_key_schema(structure: Request, path: str) -> KeySchema:
    """The KeySchema of a global index: up to four partition attributes, then up to four sort attributes."""
    partition, sort = _split(_elements(structure, path))
    for kind, names in (("HASH", partition), ("RANGE", sort)):
        if len(names) > _MOST_OF_A_KIND:
            raise RequestRefused(f"{_INVALID}The KeySchema exceeds the maximum allowed number of {kind} key attributes")
    return partition, sort


def projection(structure: Request, path: str) -> tuple[Projection, tuple[str, ...]]:
    """The Projection of an index: its type, and the attributes that are included."""
    check_members(structure, {"Projection": REQUIRED_MAP}, path)
    given = structure["Projection"]
    check_members(given, {"ProjectionType": _PROJECTION_TYPE}, f"{path}projection.")
    kind, names = given.get("ProjectionType"), given.get("NonKeyAttributes")
    if kind is None:
        raise RequestRefused(f"{_INVALID}Unknown ProjectionType: null")
    if kind != "INCLUDE" and names is not None:
        raise RequestRefused(f"{_INVALID}ProjectionType is {kind}, but NonKeyAttributes is specified")
    if kind == "INCLUDE" and names is None:
        raise RequestRefused(f"{_INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
    return kind, () if names is None else _included(names, f"{path}projection.nonKeyAttributes")


def key_elements(partition: tuple[str, ...], sort: tuple[str, ...]) -> list[dict[str, str]]:
    """A key schema as DynamoDB describes it."""
    hashes = [{"AttributeName": name, "KeyType": "HASH"} for name in partition]
    return hashes + [{"AttributeName": name, "KeyType": "RANGE"} for name in sort]


def _included(names: Any, path: str) -> tuple[str, ...]:
    expect_type(names, list)
    for name in names:
        expect_type(name, str)
    if not 1 <= len(names) <= _MOST_INCLUDED:
        rule = f"{'less' if names else 'greater'} than or equal to {_MOST_INCLUDED if names else 1}"
        shown = f"'[{', '.join(names)}]'"
        raise constraints_broken([constraint(path, shown, f"Member must have length {rule}")])
    for name in names:
        valid_attribute_name(name)
    if len(set(names)) < len(names):
        raise RequestRefused(f"{_INVALID}Duplicate element in NonKeyAttributes: {_first_repeated(names)}")
    return tuple(names)


def _elements(structure: Request, path: str) -> list[tuple[str, str]]:
    check_members(structure, {"KeySchema": Member(list, required=True)}, path)
    elements = maps(structure, "KeySchema")
    if not elements:
        rule = "Member must have length greater than or equal to 1"
        raise constraints_broken([constraint(f"{path}keySchema", "'[]'", rule)])
    for number, element in enumerate(elements, start=1):
        check_members(element, _ELEMENT_MEMBERS, f"{path}keySchema.{number}.member.")
    return [(element["AttributeName"], element["KeyType"]) for element in elements]


def _two_elements(structure: Request, path: str) -> list[tuple[str, str]]:
    elements = _elements(structure, path)
    if len(elements) > 2:
        rule = "Member must have length less than or equal to 2"
        shown = ", ".join(f"KeySchemaElement(attributeName={name}, keyType={kind})" for name, kind in elements)
        raise constraints_broken([constraint(f"{path}keySchema", f"'[{shown}]'", rule)])
    return elements


def _split(elements: list[tuple[str, str]]) -> KeySchema:
    names, kinds = [name for name, _ in elements], [kind for _, kind in elements]
    if kinds[0] != "HASH":
        raise RequestRefused("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if len(set(names)) < len(names):
        if kinds == ["HASH", "RANGE"]:
            raise RequestRefused("Both the Hash Key and the Range Key element in the KeySchema have the same name")
        raise RequestRefused("The KeySchema contains multiple key attributes with the same name")
    behind = kinds.count("HASH")
    if "HASH" in kinds[behind:]:
        raise RequestRefused(f"{_INVALID}All HASH key attributes must precede RANGE key attributes in the KeySchema")
    return tuple(names[:behind]), tuple(names[behind:])


def _first_repeated(names: list[str]) -> str:
    return next(name for number, name in enumerate(names) if name in names[:number])
