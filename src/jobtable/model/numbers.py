"""Python numbers as DynamoDB's numbers: text of at most 38 significant digits, within its range.

The text is the one that DynamoDB gives back: plain digits without an exponent and without zeros that mean nothing.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from jobtable.errors import ValueRefusedError

MOST_DIGITS = 38
_LARGEST_EXPONENT = 125
_SMALLEST_EXPONENT = -130
_PLAIN_INT = 10**MOST_DIGITS


def int_text(value: int) -> str:
    """The wire text of an integer."""
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
    """The wire text of a decimal number."""
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
