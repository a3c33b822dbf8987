"""Values between JSON and the JSONata library, and how large they may be."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from jobtable.workflows.asl.query_languages import jsonata_library as library

MOST_BYTES = 6_990_256
"""AWS's limit for one value of an expression: eight bytes a number or member, and one a character."""
_MOST_REMEMBERED = 8 * MOST_BYTES
_NUMBER_BYTES = 8
_MOST_INTEGER = 2**63 - 1


class MemoryExceededError(Exception):
    """A value is larger than AWS lets it become."""

    def __init__(self) -> None:
        super().__init__("Expression evaluation memory limit exceeded: Check for excessive memory usage")


class UnsupportedValueError(Exception):
    """A value cannot be written as JSON."""


def from_json(value: Any) -> Any:
    """Return a value of JSON as the library reads it: its own null, and numbers as AWS reads them."""
    if value is None:
        return library.null()
    if isinstance(value, dict):
        return {name: from_json(member) for name, member in value.items()}
    if isinstance(value, list):
        return [from_json(element) for element in value]
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -_MOST_INTEGER - 1 <= value <= _MOST_INTEGER else float(value)
    if not math.isfinite(value):
        raise ValueError("a number is out of range")
    return int(value) if value.is_integer() and abs(value) <= _MOST_INTEGER else value


def to_plain(value: Any, *, functions_as_text: bool = False) -> Any:
    """Return a value of the library as JSON, or raise UnsupportedValueError for functions."""
    if value is None or library.is_null(value):
        return None
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return _plain_number(value)
    if isinstance(value, dict):
        return {name: to_plain(member, functions_as_text=functions_as_text) for name, member in value.items()}
    if isinstance(value, list):
        return [to_plain(element, functions_as_text=functions_as_text) for element in value]
    if functions_as_text:
        return ""
    raise UnsupportedValueError


def _plain_number(value: float) -> Any:
    if isinstance(value, int):
        return value if abs(value) <= _MOST_INTEGER else float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return int(value) if value.is_integer() and abs(value) <= _MOST_INTEGER else value


def to_text(value: Any, *, is_pretty: bool = False) -> str:
    """Return a value as the JSON that `$string` writes."""
    return _text(to_plain(value, functions_as_text=True), "\n" if is_pretty else "")


def _text(value: Any, line: str) -> str:
    if isinstance(value, dict | list) and value:
        inner = line and line + "  "
        if isinstance(value, dict):
            colon = ": " if line else ":"
            parts = [json.dumps(name, ensure_ascii=False) + colon + _text(each, inner) for name, each in value.items()]
        else:
            parts = [_text(each, inner) for each in value]
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        return f"{opening}{inner}{f',{inner}'.join(parts)}{line}{closing}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    return json.dumps(value, ensure_ascii=False)


def number_text(value: float) -> str:
    """Return a number as JavaScript writes it: fifteen digits, and an exponent from 1e21 and below 1e-6."""
    if isinstance(value, int) and abs(value) <= _MOST_INTEGER:
        return str(value)
    number = float(value)
    if not math.isfinite(number):
        raise library.fail("D3001")
    if not number.is_integer():
        number = float(f"{number:.15g}")
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    if number == 0:
        return "0"
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    if -6 < point <= 21:
        body = _plain_digits(text, point)
    else:
        body = text[0] + ("." + text[1:] if len(text) > 1 else "") + f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return ("-" if sign else "") + body


def _plain_digits(text: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + text
    return text.ljust(point, "0") if point >= len(text) else f"{text[:point]}.{text[point:]}"


class Sizes:
    """Measures values, each large one once, so that a value of values of values costs no more than its parts."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, int]] = {}
        self._remembered = 0

    def check(self, value: Any) -> None:
        """Raise MemoryExceededError if a value is too large."""
        if isinstance(value, str):
            if len(value) > MOST_BYTES:
                raise MemoryExceededError
        elif isinstance(value, dict | list) and id(value) not in self._known:
            # The library's ranges say that they have one element more than they have.
            if len(value) * _NUMBER_BYTES > MOST_BYTES + _NUMBER_BYTES:
                raise MemoryExceededError
            self._remember(value, self._measure(value))

    def _remember(self, value: Any, size: int) -> None:
        if size > _NUMBER_BYTES * 64:
            if self._remembered > _MOST_REMEMBERED:
                self._known.clear()
                self._remembered = 0
            # Kept, so that its id stays its own.
            self._known[id(value)] = (value, size)
            self._remembered += size

    def _measure(self, value: Any) -> int:
        size = 0
        todo = [value]
        while todo:
            each = todo.pop()
            if isinstance(each, dict | list):
                known = self._known.get(id(each))
                if known is None:
                    todo += each.values() if isinstance(each, dict) else each
                    size += sum(map(len, each)) if isinstance(each, dict) else 0
                else:
                    size += known[1]
            size += len(each) if isinstance(each, str) else _NUMBER_BYTES
            if size > MOST_BYTES + _NUMBER_BYTES * 2:
                raise MemoryExceededError
        return size
