"""Values of no declared type: plain Python values in wire form, and back.

Numbers are text of at most 38 significant digits, within DynamoDB's range, in the form that DynamoDB gives back: plain
digits without an exponent and without zeros that mean nothing.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

from jobtable.errors import ValueRefusedError
from jobtable.model.fields import format_timestamp

MOST_DIGITS = 38
_LARGEST_EXPONENT = 125
_SMALLEST_EXPONENT = -130
_PLAIN_INT = 10**MOST_DIGITS
_DEEPEST_NESTING = 32
_LONGEST_MAP_KEY = 65_535
ORDERS: dict[str, Callable[[str], Any]] = {"S": str, "N": Decimal, "B": a2b_base64}
"""The sort key of a set's members, for each kind: the order in which DynamoDB gives them back."""


def int_text(value: int) -> str:
    return str(value) if -_PLAIN_INT < value < _PLAIN_INT else decimal_text(Decimal(value))


def float_text(value: float) -> str:
    """The wire text of a float: the shortest text that gives the same float back."""
    text = repr(value if type(value) is float else _as_float(value))
    if text[-2:] == ".0":
        return text[:-2] if text != "-0.0" else "0"
    # Without an exponent, and not inf or nan, it is within the range.
    return decimal_text(Decimal(text)) if "e" in text or "n" in text else text


def _as_float(value: Any) -> float:
    """A number of another type as a float: numpy's show themselves otherwise."""
    if not isinstance(value, float | int):
        raise ValueRefusedError(f"{value!r:.100} is not a number")
    return float(value)


def decimal_text(value: Decimal) -> str:
    if not value.is_finite():
        raise ValueRefusedError(f"{value} cannot be stored: DynamoDB has no NaN and no infinity")
    _, digits, _ = value.as_tuple()
    significant = len("".join(map(str, digits)).strip("0"))
    if significant > MOST_DIGITS:
        raise ValueRefusedError(f"{value} has {significant} significant digits; DynamoDB keeps {MOST_DIGITS}")
    if value and not _SMALLEST_EXPONENT <= value.adjusted() <= _LARGEST_EXPONENT:
        raise ValueRefusedError(f"{value} is outside DynamoDB's range of 1E-130 to 9.99E+125")
    if not value:
        return "0"
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def bytes_text(value: bytes) -> str:
    """Binary as base64 text."""
    return b2a_base64(value, newline=False).decode("ascii")


def plain(wire: Mapping[str, Any]) -> Any:
    """The plain Python value of a wire form: int or float for numbers where that is exact, else Decimal."""
    ((tag, value),) = wire.items()
    reader = _PLAIN.get(tag)
    if reader is None:
        raise ValueError(f"{tag!r} is not a DynamoDB type")
    return reader(value)


def _plain_number(text: str) -> int | float | Decimal:
    if text.lstrip("-").isdigit():
        return int(text)
    number = float(text)
    return number if Decimal(repr(number)) == Decimal(text) else Decimal(text)


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "S": str,
    "N": _plain_number,
    "B": a2b_base64,
    "BOOL": bool,
    "NULL": lambda _: None,
    "L": lambda values: [plain(value) for value in values],
    "M": lambda values: {key: plain(value) for key, value in values.items()},
    "SS": set,
    "NS": lambda values: {_plain_number(value) for value in values},
    "BS": lambda values: {a2b_base64(value) for value in values},
}


def wire_form(value: Any, depth: int = 1) -> dict[str, Any]:
    """The wire form of a plain Python value."""
    if depth > _DEEPEST_NESTING:
        raise ValueRefusedError(f"the value is nested deeper than {_DEEPEST_NESTING} levels")
    scalar = _scalar_form(value)
    if scalar is not None:
        return scalar
    if isinstance(value, list | tuple):
        return {"L": [wire_form(each, depth + 1) for each in value]}
    if isinstance(value, Mapping):
        return {"M": {map_key(key): wire_form(each, depth + 1) for key, each in value.items()}}
    if isinstance(value, set | frozenset):
        return _set_form(value)
    raise ValueRefusedError(f"a value of type {type(value).__name__} cannot be stored: {value!r:.100}")


def _scalar_form(value: Any) -> dict[str, Any] | None:
    if isinstance(value, Enum):
        return _scalar_form(value.value)
    for kind in type(value).__mro__:
        form = _SCALAR_FORMS.get(kind)
        if form is not None:
            return form(value)
    return None


def _float_form(value: float) -> dict[str, Any]:
    # A whole number is read back as an int, which equals the float only if all its digits are there.
    return {"N": str(int(value)) if abs(value) < 10**MOST_DIGITS and value.is_integer() else float_text(value)}


_SCALAR_FORMS: dict[type, Callable[[Any], dict[str, Any]]] = {
    type(None): lambda _: {"NULL": True},
    bool: lambda value: {"BOOL": value},
    str: lambda value: {"S": value},
    int: lambda value: {"N": int_text(value)},
    float: _float_form,
    Decimal: lambda value: {"N": decimal_text(value)},
    bytes: lambda value: {"B": bytes_text(value)},
    datetime: lambda value: {"S": format_timestamp(value)},
    date: lambda value: {"S": value.isoformat()},
}
"""How a value is written, by the nearest of its types: a datetime is also a date, and a bool an int."""


def map_key(key: Any) -> str:
    """A key of a map as DynamoDB takes it."""
    if not isinstance(key, str) or not key:
        raise ValueRefusedError(f"a map key must be a non-empty string, not {key!r}")
    if key.isascii() and len(key) <= _LONGEST_MAP_KEY:
        return key
    try:
        length = len(key.encode())
    except UnicodeEncodeError as error:
        raise ValueRefusedError(f"the key {key!r:.100} of a map is not valid Unicode") from error
    if length > _LONGEST_MAP_KEY:
        raise ValueRefusedError(
            f"the key {key:.20}... of a map has {length:,} bytes; at most {_LONGEST_MAP_KEY:,} are allowed"
        )
    return key


def _set_form(values: set[Any] | frozenset[Any]) -> dict[str, Any]:
    tags: dict[Literal["S", "N", "B"], list[str]] = {"S": [], "N": [], "B": []}
    for value in values:
        ((tag, text),) = wire_form(value).items()
        if tag not in tags:
            raise ValueRefusedError(f"a set must contain strings, numbers or binaries, not {value!r:.100}")
        tags[tag].append(text)
    used = [(tag, texts) for tag, texts in tags.items() if texts]
    if len(used) != 1:
        raise ValueRefusedError("a set must not be empty and must contain values of one kind")
    ((tag, texts),) = used
    return {f"{tag}S": sorted(texts, key=ORDERS[tag])}
