"""The sizes of items and values, as DynamoDB measures them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from jobtable.store.backend import AttributeValue, Item

MAX_ITEM_SIZE = 400 * 1024
"""No item is larger."""
CONTAINER_BYTES = 3
"""What a list or map takes itself, besides one byte for each element."""


def item_size(item: Item) -> int:
    """The bytes of a (valid) item as DynamoDB measures them."""
    size = 0
    for name, value in item.items():
        size += len(name) if name.isascii() else utf8_length(name)
        for kind, content in value.items():
            if kind == "S":
                size += len(content) if content.isascii() else utf8_length(content)
            else:
                size += _SIZES[kind](content)
    return size


def size_change(before: Item, after: Item, names: Iterable[str]) -> int:
    """How many bytes larger a (valid) item has become by a change of some attributes.

    What the two share is not looked at, so the change of one value deep inside a large map costs little.
    """
    change = 0
    for name in names:
        old, new = before.get(name), after.get(name)
        if old is new:
            continue
        if old is not None and new is not None:
            change += _value_change(old, new)
        elif new is not None:
            change += utf8_length(name) + value_size(new)
        elif old is not None:
            change -= utf8_length(name) + value_size(old)
    return change


def _value_change(before: AttributeValue, after: AttributeValue) -> int:
    if "S" in before and "S" in after:
        return _text_size(after["S"]) - _text_size(before["S"])
    old, new = before.get("M"), after.get("M")
    if old is not None and new is not None:
        return len(new) - len(old) + size_change(old, new, old.keys() | new.keys())
    if "L" in before and "L" in after:
        return _list_change(before["L"], after["L"])
    return value_size(after) - value_size(before)


def _list_change(before: list[AttributeValue], after: list[AttributeValue]) -> int:
    change = len(after) - len(before)
    for old, new in zip(before, after, strict=False):
        if old is not new:
            change += _value_change(old, new)
    return change + sum(map(value_size, after[len(before) :])) - sum(map(value_size, before[len(after) :]))


def value_size(value: AttributeValue) -> int:
    """The bytes of a (valid) value as DynamoDB measures them, without its attribute name."""
    [(kind, content)] = value.items()
    return _SIZES[kind](content)


def number_size(text: str) -> int:
    """The bytes of a number as DynamoDB measures them.

    One byte, one for each two digits (paired from the decimal point, pairs of zeros at both ends left out), and one
    for a minus sign; 21 at most.
    """
    if text == "0":
        return 1
    if "e" in text or "E" in text:
        text = f"{Decimal(text).normalize():f}"
    if text[-1] != "0" and text.isdigit():
        return (len(text) + 1) // 2 + 1
    negative = text[0] == "-"
    whole, _, fraction = (text[1:] if negative else text).partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    pairs = (len(whole) + 1) // 2 + (len(fraction) + 1) // 2
    if not fraction:
        pairs -= (len(whole) - len(whole.rstrip("0"))) // 2
    elif not whole:
        pairs -= (len(fraction) - len(fraction.lstrip("0"))) // 2
    return min(pairs + 1 + negative, 21)


def utf8_length(text: str) -> int:
    """The bytes of a text, also of one that is not valid Unicode and will be refused for that."""
    return len(text.encode("utf-8", "surrogatepass"))


def _text_size(content: str) -> int:
    return len(content) if content.isascii() else utf8_length(content)


def _binary_size(content: str) -> int:
    return len(content) // 4 * 3 - content.count("=", -2)


def _constant_size(content: bool) -> int:
    return 1


def _list_size(content: list[AttributeValue]) -> int:
    return CONTAINER_BYTES + len(content) + sum(map(value_size, content))


def _map_size(content: Item) -> int:
    return CONTAINER_BYTES + len(content) + item_size(content)


_SIZES: dict[str, Callable[[Any], int]] = {
    "S": _text_size,
    "N": number_size,
    "B": _binary_size,
    "BOOL": _constant_size,
    "NULL": _constant_size,
    "SS": lambda content: sum(map(_text_size, content)),
    "NS": lambda content: sum(map(number_size, content)),
    "BS": lambda content: sum(map(_binary_size, content)),
    "L": _list_size,
    "M": _map_size,
}
