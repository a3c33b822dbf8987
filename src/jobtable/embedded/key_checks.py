"""Checks of keys and items against the schema of their table, in DynamoDB's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from operator import attrgetter

from jobtable.embedded.table_schema import (
    MAX_PARTITION_BYTES,
    MAX_SORT_BYTES,
    IndexSchema,
    KeyAttribute,
    TableSchema,
    key_bytes,
)
from jobtable.embedded.wordings import INVALID
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Item

KEY_MISMATCH = "The provided key element does not match the schema"
TOO_LONG = {
    # DynamoDB's message has no space there.
    MAX_PARTITION_BYTES: f"{INVALID}Size of hashkey has exceeded the maximum size limit of{MAX_PARTITION_BYTES} bytes",
    MAX_SORT_BYTES: f"{INVALID}Aggregated size of all range keys has exceeded the size limit of {MAX_SORT_BYTES} bytes",
}
"""By the limit in bytes: the message for a key that exceeds it."""
_NOT_SCALAR = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
_UNSUPPORTED_TYPE = "The update expression attempted to update the secondary index key to unsupported type"
_NOT_VALID = "One or more parameter values are not valid. "


class EmptyKeyValue(RequestRefused):
    """A key attribute is an empty string or empty binary value; this refuses a whole transaction."""


class SchemaMismatch(RequestRefused):
    """A key or index key does not fit the schema; in a transaction this is a reason to cancel it."""


class ItemKeyMismatch(SchemaMismatch):
    """The primary key of an item to put is missing or of another type."""


def plain_position(table: TableSchema, key: Item) -> bytes | None:
    """Return the position for a key of short strings, as most are; None for a key that needs more checks."""
    return table.plain_position(key) if len(key) == len(table.key) else None


def key_position(table: TableSchema, key: Item) -> bytes:
    """Return the position of the item with this primary key (of valid values), or raise RequestRefused."""
    position = plain_position(table, key)
    if position is not None:
        return position
    _refuse_empty_key(table, key)
    if len(key) != len(table.key):
        raise SchemaMismatch(KEY_MISMATCH)
    for attribute in table.key:
        if attribute.type not in key.get(attribute.name, ()):
            raise SchemaMismatch(KEY_MISMATCH)
        _check_size(table, attribute, key)
    return table.position(key)


def item_position(table: TableSchema, item: Item) -> bytes:
    """Return the position of an item (of valid values), or raise RequestRefused for invalid key attributes."""
    position = table.plain_position(item)
    if position is not None:
        return position
    _refuse_empty_key(table, item)
    for attribute in table.key:
        value = item.get(attribute.name)
        if value is None:
            raise ItemKeyMismatch(f"{INVALID}Missing the key {attribute.name} in the item")
        if attribute.type not in value:
            raise ItemKeyMismatch(
                f"{INVALID}Type mismatch for key {attribute.name} expected: {attribute.type} actual: {_type(value)}"
            )
        _check_size(table, attribute, item)
    return table.position(item)


def _refuse_empty_key(table: TableSchema, item: Item) -> None:
    """Raise RequestRefused if a key attribute is an empty string or empty binary value."""
    for attribute in table.key:
        if _is_empty(attribute, item):
            raise empty_key_value(attribute)


def empty_key_value(attribute: KeyAttribute, index_name: str | None = None) -> EmptyKeyValue:
    """Return the error for an empty value of a key attribute of the table, or of the named index."""
    if index_name is None:
        return EmptyKeyValue(f"{_NOT_VALID}{_empty_fault(attribute)} Key: {attribute.name}")
    return EmptyKeyValue(
        f"{_NOT_VALID}A value specified for a secondary index key is not supported. {_empty_fault(attribute)}"
        f" IndexName: {index_name}, IndexKey: {attribute.name}"
    )


def refuse_nested_keys(table: TableSchema, nested_names: Set[str]) -> None:
    """Raise RequestRefused if an expression names a member of a key attribute."""
    if not nested_names:
        return
    for attribute in table.key:
        if attribute.name in nested_names:
            raise RequestRefused(f"{_NOT_SCALAR}Key: {attribute.name}")
    for index in table.indexes.values():
        for attribute in index.key:
            if attribute.name in nested_names:
                raise RequestRefused(f"{_NOT_SCALAR}IndexKey: {attribute.name}")


def refuse_index_types(table: TableSchema, types: Mapping[str, str]) -> None:
    """Raise SchemaMismatch if one of these attributes is part of an index key of another type."""
    keys = table.index_attributes
    if all(keys[name].type == found for name, found in types.items() if name in keys):
        return
    for index in _by_name(table):
        for attribute in index.key:
            found = types.get(attribute.name, attribute.type)
            if found != attribute.type:
                raise _index_type_mismatch(index, attribute, found)


def check_index_keys(table: TableSchema, item: Item) -> None:
    """Raise RequestRefused if an attribute of the new item is invalid as a key of an index."""
    if table.has_plain_index_keys(item):
        return
    for index in _by_name(table):
        for attribute in index.key:
            if _is_empty(attribute, item):
                raise empty_key_value(attribute, index.name)
    _check_index_types_and_sizes(table, item, None)


def check_updated_index_keys(table: TableSchema, item: Item, updated: frozenset[str]) -> None:
    """Check the item after an update that wrote these attributes in the same way.

    Other attributes may be invalid: an index that was added later ignores such items.
    """
    if updated.isdisjoint(table.index_attributes) or table.has_plain_index_keys(item):
        return
    for index in table.indexes.values():
        for attribute in index.key:
            if attribute.name in updated and _is_empty(attribute, item):
                raise EmptyKeyValue(
                    f"{_NOT_VALID}The update expression attempted to update a secondary index key to a value that is"
                    f" not supported. {_empty_fault(attribute)}"
                )
    _check_index_types_and_sizes(table, item, updated)


def _by_name(table: TableSchema) -> list[IndexSchema]:
    """Return the indexes in the order in which DynamoDB checks their keys."""
    return sorted(table.indexes.values(), key=attrgetter("name"))


def _check_index_types_and_sizes(table: TableSchema, item: Item, only: frozenset[str] | None) -> None:
    for index in _by_name(table):
        for attributes, limit in ((index.partition, MAX_PARTITION_BYTES), (index.sort, MAX_SORT_BYTES)):
            present = [one for one in attributes if one.name in item and (only is None or one.name in only)]
            for attribute in present:
                if attribute.type not in item[attribute.name]:
                    if only is not None:
                        raise SchemaMismatch(_UNSUPPORTED_TYPE)
                    raise _index_type_mismatch(index, attribute, _type(item[attribute.name]))
            if _bytes_of(present, item) > limit:
                raise SchemaMismatch(TOO_LONG[limit])


def _index_type_mismatch(index: IndexSchema, attribute: KeyAttribute, found: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"{INVALID}Type mismatch for Index Key {attribute.name} Expected: {attribute.type} Actual: {found}"
        f" IndexName: {index.name}"
    )


def _check_size(table: TableSchema, attribute: KeyAttribute, item: Item) -> None:
    limit = MAX_PARTITION_BYTES if attribute is table.partition else MAX_SORT_BYTES
    if _bytes_of((attribute,), item) > limit:
        raise SchemaMismatch(TOO_LONG[limit])


def _bytes_of(attributes: Iterable[KeyAttribute], item: Item) -> int:
    return key_bytes((attribute, item[attribute.name][attribute.type]) for attribute in attributes)


def _is_empty(attribute: KeyAttribute, item: Item) -> bool:
    return attribute.name in item and item[attribute.name].get(attribute.type) == ""


def _empty_fault(attribute: KeyAttribute) -> str:
    kind = "string" if attribute.type == "S" else "binary"
    return f"The AttributeValue for a key attribute cannot contain an empty {kind} value."


def _type(value: AttributeValue) -> str:
    return next(iter(value))
