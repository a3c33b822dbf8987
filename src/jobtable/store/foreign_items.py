"""Items that come from elsewhere, in wire form: whether a table can hold them, before the first of them is written."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from jobtable.errors import ValueRefusedError
from jobtable.model.numbers import decimal_text
from jobtable.model.table import Table
from jobtable.store.sizes import MAX_ITEM_SIZE, item_size, value_size

_MOST_AROUND = 31
"""How many lists and maps may be inside one another."""
_MOST_PARTITION_BYTES, _MOST_SORT_BYTES = 2048, 1024


class ItemCheck:
    """What a table asks of its items, on whichever backend it is."""

    def __init__(self, table: Table) -> None:
        self._primary = table.primary
        self._key_types = table.key_types()
        self._most_bytes = dict.fromkeys(self._key_types, _MOST_PARTITION_BYTES)
        sorts = [table.primary[1:], *(index.sort for index in table.indexes.values())]
        self._most_bytes.update((name, _MOST_SORT_BYTES) for names in sorts for name in names)

    def check(self, item: Any) -> None:
        """ValueRefusedError, which says why, for an item that the table cannot hold."""
        _check_map(item, 0)
        if (size := item_size(item)) > MAX_ITEM_SIZE:
            raise ValueRefusedError(f"it has {size:,} bytes, and {MAX_ITEM_SIZE:,} are the most")
        for name in self._primary:
            if name not in item:
                raise ValueRefusedError(f"it has no {name}")
        for name, kind in self._key_types.items():
            if name in item:
                self._check_key(name, kind, item[name])

    def _check_key(self, name: str, kind: str, value: dict[str, Any]) -> None:
        if kind not in value or not value[kind]:
            raise ValueRefusedError(f"{name} is a key of type {kind}, and is empty or of another type")
        if value_size(value) > self._most_bytes[name]:
            raise ValueRefusedError(f"{name} is a key of more than {self._most_bytes[name]:,} bytes")


def _check_map(members: Any, around: int) -> None:
    if type(members) is not dict:
        raise ValueRefusedError("it has a map that is none")
    for name, value in members.items():
        if not name:
            raise ValueRefusedError("it has an attribute without a name")
        _check_value(name, value, around)


def _check_value(name: str, value: Any, around: int) -> None:
    if type(value) is not dict or len(value) != 1:
        raise ValueRefusedError(f"{name} has not one type")
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
            raise ValueRefusedError(f"{name} is no {kind}")
        if not content or len(set(content)) < len(content):
            raise ValueRefusedError(f"{name} is a set that is empty, or has a member twice")
    elif kind not in _IS or not _IS[kind](content):
        raise ValueRefusedError(f"{name} is no {kind[:10]} that can be")


def _is_number(content: Any) -> bool:
    if type(content) is not str:
        return False
    try:
        decimal_text(Decimal(content))
    except (InvalidOperation, ValueRefusedError):
        return False
    return True


def _is_base64(content: Any) -> bool:
    if type(content) is not str:
        return False
    try:
        binascii.a2b_base64(content, strict_mode=True)
    except ValueError:
        return False
    return True


_IS: dict[str, Callable[[Any], bool]] = {
    "S": lambda content: type(content) is str,
    "N": _is_number,
    "B": _is_base64,
    "BOOL": lambda content: type(content) is bool,
    "NULL": lambda content: content is True,
}
"""Whether a content is one of its type."""
