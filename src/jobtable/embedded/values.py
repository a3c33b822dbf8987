"""Attribute values in wire form: what is a valid one, how large it is, how two of them compare."""

from __future__ import annotations

from typing import Any

from jobtable.store.backend import AttributeValue, Item

MAX_ITEM_SIZE = 400 * 1024


def validate_item(item: Any) -> Item:
    """The item with canonical numbers, and itself where nothing had to change; RequestRefused if it is no item."""
    raise NotImplementedError


def validate_value(value: Any) -> AttributeValue:
    """The value with canonical numbers, and itself where nothing had to change; RequestRefused if it is none."""
    raise NotImplementedError


def item_size(item: Item) -> int:
    """The bytes of a (valid) item as DynamoDB measures them."""
    raise NotImplementedError


def value_size(value: AttributeValue) -> int:
    """The bytes of a (valid) value as DynamoDB measures them, without its attribute name."""
    raise NotImplementedError


def equal(left: AttributeValue, right: AttributeValue) -> bool:
    """Whether two (valid) values are the same: numbers by value, sets in any order."""
    raise NotImplementedError


def compare(left: AttributeValue, right: AttributeValue) -> int | None:
    """Below, equal to or above zero as left is to right; None where the two have no order."""
    raise NotImplementedError
