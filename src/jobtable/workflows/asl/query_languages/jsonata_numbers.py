"""The functions of numbers of JSONata in which the library differs from it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from jobtable.workflows.asl.query_languages import jsonata_library as library

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[Ee][+-]?\d+)?|0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+")


def _number(value: Any = None) -> Any:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        raise library.fail("T0410", 1, "number")
    if not _NUMBER.fullmatch(value):
        raise library.fail("D3030", value)
    number = float(int(value, 0)) if value[1:2] in set("xXbBoO") else float(Decimal(value))
    if not math.isfinite(number):
        raise library.fail("D3030", value)
    return int(number) if number.is_integer() else number


def _power(base: float | None = None, exponent: float | None = None) -> float | None:
    if base is None or exponent is None:
        return None
    try:
        value: Any = float(base) ** float(exponent)
    except ArithmeticError:
        value = math.inf
    if isinstance(value, complex) or not math.isfinite(value):
        raise library.fail("D3061", base, exponent)
    return float(value)


def _format_number(
    value: float | None = None, picture: str | None = None, symbols: dict[str, str] | None = None
) -> str | None:
    if value is None or picture is None:
        return None
    symbols = symbols or {}
    number = Decimal(repr(value))
    return library.format_number(
        _round_to(number, picture, symbols) if math.isfinite(value) else number, picture, symbols
    )


def _round_to(number: Decimal, picture: str, symbols: dict[str, str]) -> Decimal:
    """Round a number to the digits of a picture, halves to even; the library rounds what has an exponent."""
    parts = picture.split(symbols.get("pattern-separator", ";"))
    part = parts[-1] if number < 0 else parts[0]
    zero = symbols.get("zero-digit", "0")
    digits = {symbols.get("digit", "#"), *(chr(ord(zero) + each) for each in range(10))}
    places = sum(each in digits for each in part.partition(symbols.get("decimal-separator", "."))[2])
    exponent = symbols.get("exponent-separator", "e")
    if any(each == exponent and part[at + 1 : at + 2] in digits for at, each in enumerate(part)):
        return number
    places += 2 * (symbols.get("percent", "%") in part) + 3 * (symbols.get("per-mille", "‰") in part)
    return number if -int(number.as_tuple().exponent) <= places else number.quantize(Decimal(1).scaleb(-places))


def _parse_integer(text: str | None = None, picture: str | None = None) -> Any:
    if text is None or picture is None:
        return None
    try:
        return library.parse_integer(text, picture)
    except ValueError:
        return math.nan


NUMBER_FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "number": (_number, "<(nsb)-:n>"),
    "power": (_power, "<n-n:n>"),
    "formatNumber": (_format_number, "<n-so?:s>"),
    "parseInteger": (_parse_integer, "<s-s:n>"),
}
"""The functions by name, with their signatures."""
