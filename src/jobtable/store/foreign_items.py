"""Items that come from elsewhere, in wire form: whether a table can hold them, before the first of them is written."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from jobtable.errors import ValueRefusedError
from jobtable.model.plain_values import decimal_text
from jobtable.model.table import Table
from jobtable.store.sizes import MAX_ITEM_SIZE, item_size, utf8_length, value_size

_MOST_AROUND = 31
"""How many lists and maps may be inside one another."""
_MOST_NAME_BYTES = 65_535
_MOST_PARTITION_BYTES, _MOST_SORT_BYTES = 2048, 1024
_NUMBER = re.compile("[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?")


class ItemCheck:
    """What a table asks of its items, on whichever backend it is."""

    def __init__(self, table: Table) -> None:
        self._primary = table.primary
        self._key_types = table.key_types()
        limits = [(table.primary[:1], _MOST_PARTITION_BYTES), (table.primary[1:], _MOST_SORT_BYTES)]
        for index in table.indexes.values():
            limits += [(index.partition, _MOST_PARTITION_BYTES), (index.sort, _MOST_SORT_BYTES)]
        self._limits = limits

    def check(self, item: Any) -> None:
        """ValueRefusedError, which says why, for an item that the table cannot hold."""
        _check_map(item, 0)
        if (size := item_size(item)) > MAX_ITEM_SIZE:
            raise ValueRefusedError(f"it has {size:,} bytes; at most {MAX_ITEM_SIZE:,} are allowed")
        for name in self._primary:
            if name not in item:
                raise ValueRefusedError(f"it has no {name}")
        for name, kind in self._key_types.items():
            if name in item and not item[name].get(kind):
                raise ValueRefusedError(f"{name} must be a key of type {kind} that is not empty")
        for names, most in self._limits:
            if sum(_key_bytes(item[name]) for name in names if name in item) > most:
                raise ValueRefusedError(f"the key {' and '.join(names)} has more than {most:,} bytes")


def _key_bytes(value: dict[str, Any]) -> int:
    """What a value adds to the length of a key: a number adds nothing."""
    return 0 if "N" in value else value_size(value)


def _check_map(members: Any, around: int) -> None:
    if type(members) is not dict:
        raise ValueRefusedError("it has an invalid map")
    for name, value in members.items():
        if not name:
            raise ValueRefusedError("it has an attribute without a name")
        if not _is_text(name) or utf8_length(name) > _MOST_NAME_BYTES:
            raise ValueRefusedError(f"the name {name[:20]!r} is too long, or not a valid string")
        _check_value(name, value, around)


def _check_value(name: str, value: Any, around: int) -> None:
    if type(value) is not dict or len(value) != 1:
        raise ValueRefusedError(f"{name} must have exactly one type")
    [(kind, content)] = value.items()
    if kind in ("L", "M"):
        if around == _MOST_AROUND:
            raise ValueRefusedError(f"{name} is inside more than {_MOST_AROUND} lists and maps")
        if kind == "M":
            _check_map(content, around + 1)
            return
        for member in content if type(content) is list else [None]:
            _check_value(name, member, around + 1)
    elif kind in ("SS", "NS", "BS"):
        if not isinstance(content, list) or not all(_IS[kind[0]](member) for member in content):
            raise ValueRefusedError(f"{name} is not a valid {kind}")
        members = [_number(member) for member in content] if kind == "NS" else content
        if not members or len(set(members)) < len(members):
            raise ValueRefusedError(f"{name} is a set that is empty or has duplicates")
    elif kind not in _IS or not _IS[kind](content):
        raise ValueRefusedError(f"{name} is not a valid {kind[:10]}")


def _is_text(content: Any) -> bool:
    """Whether it is a text that can be written: JSON can also name halves of characters."""
    if type(content) is not str:
        return False
    try:
        content.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(content: str) -> str:
    """The one text of a number, or ValueRefusedError."""
    if not _NUMBER.fullmatch(content):
        raise ValueRefusedError(f"{content[:50]!r} is not a number")
    value = Decimal(content)
    if not value:  # an exponent that no number may have, zero may not have either
        decimal_text(Decimal((0, (1,), value.adjusted())))
    return decimal_text(value)


def _is_number(content: Any) -> bool:
    if type(content) is not str:
        return False
    try:
        _number(content)
    except ValueRefusedError:
        return False
    return True


def _is_base64(content: Any) -> bool:
    """Whether it is the one base64 of its bytes."""
    if type(content) is not str:
        return False
    try:
        return binascii.b2a_base64(binascii.a2b_base64(content, strict_mode=True), newline=False).decode() == content
    except ValueError:
        return False


_IS: dict[str, Callable[[Any], bool]] = {
    "S": _is_text,
    "N": _is_number,
    "B": _is_base64,
    "BOOL": lambda content: type(content) is bool,
    "NULL": lambda content: content is True,
}
"""Whether a content is one of its type."""
