"""Key schemas, attribute definitions and projections of a request, checked in DynamoDB's order and words."""

from __future__ import annotations

from typing import Any

from jobtable.embedded.json_types import expect_type
from jobtable.embedded.names import valid_attribute_name
from jobtable.embedded.ordering import KeyType
from jobtable.embedded.requests import structures
from jobtable.embedded.schema import ProjectionType
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request

_MOST_OF_A_KIND = 4

KeySchema = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of the partition attributes, and those of the sort attributes."""


def attribute_definitions(request: Request) -> dict[str, KeyType]:
    """AttributeDefinitions as name to type, or RequestRefused."""
    types: dict[str, KeyType] = {}
    for definition in structures(request, "AttributeDefinitions"):
        name: str = definition["AttributeName"]
        if name in types:
            raise RequestRefused(f"Attribute Name is duplicated: {name}")
        types[name] = definition["AttributeType"]
    return types


def check_defined(structure: Request, attributes: dict[str, KeyType]) -> None:
    """RequestRefused if the KeySchema of a table or index has attributes that are not defined."""
    names = [element["AttributeName"] for element in structure["KeySchema"]]
    if not attributes.keys() >= set(names):
        raise RequestRefused(
            f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. Keys: [{', '.join(names)}],"
            f" AttributeDefinitions: [{', '.join(attributes)}]"
        )


def simple_key_schema(structure: Request) -> KeySchema:
    """The KeySchema of a table or local index: one partition attribute, at most one sort attribute."""
    names, kinds = _elements(structure)
    if len(set(names)) < len(names):
        raise _same_name()
    _check_first(kinds)
    if "HASH" in kinds[1:]:
        raise RequestRefused("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
    return tuple(names[:1]), tuple(names[1:])


def global_key_schema(structure: Request) -> KeySchema:
    """The KeySchema of a global index: up to four partition attributes, then up to four sort attributes."""
    names, kinds = _elements(structure)
    if len(set(names)) < len(names):
        if kinds == ["HASH", "RANGE"]:
            raise _same_name()
        raise RequestRefused("The KeySchema contains multiple key attributes with the same name")
    _check_first(kinds)
    behind = kinds.count("HASH")
    if "HASH" in kinds[behind:]:
        raise RequestRefused(f"{INVALID}All HASH key attributes must precede RANGE key attributes in the KeySchema")
    for kind in ("HASH", "RANGE"):
        if kinds.count(kind) > _MOST_OF_A_KIND:
            raise RequestRefused(f"{INVALID}The KeySchema exceeds the maximum allowed number of {kind} key attributes")
    return tuple(names[:behind]), tuple(names[behind:])


def projection(structure: Request) -> tuple[ProjectionType, tuple[str, ...]]:
    """The Projection of an index: its type, and the attributes that are included."""
    given = structure["Projection"]
    kind, names = given.get("ProjectionType"), given.get("NonKeyAttributes")
    if kind is None:
        raise RequestRefused(f"{INVALID}Unknown ProjectionType: null")
    if kind != "INCLUDE" and names is not None:
        raise RequestRefused(f"{INVALID}ProjectionType is {kind}, but NonKeyAttributes is specified")
    if kind == "INCLUDE" and names is None:
        raise RequestRefused(f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
    return kind, () if names is None else _included(names)


def _included(names: list[Any]) -> tuple[str, ...]:
    for name in names:
        expect_type(name, str)
        valid_attribute_name(name)
    repeated = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if repeated is not None:
        raise RequestRefused(f"{INVALID}Duplicate element in NonKeyAttributes: {repeated}")
    return tuple(names)


def _elements(structure: Request) -> tuple[list[str], list[str]]:
    """The names and the key types of a KeySchema."""
    elements = structure["KeySchema"]
    return [element["AttributeName"] for element in elements], [element["KeyType"] for element in elements]


def _check_first(kinds: list[str]) -> None:
    if kinds[0] != "HASH":
        raise RequestRefused("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")


def _same_name() -> RequestRefused:
    return RequestRefused("Both the Hash Key and the Range Key element in the KeySchema have the same name")
