"""DynamoDB's numbers: decimals of up to 38 digits, as text.

Every number has one canonical form: plain digits without an exponent, without zeros that mean nothing, and "0" for
zero. Two canonical numbers are equal exactly when their texts are.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal

from jobtable.embedded.wordings import ValueRefused
from jobtable.errors import RequestRefused

MAX_DIGITS = 38
MAX_MAGNITUDE = 125
MIN_MAGNITUDE = -130

_CANONICAL_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9]|-?[1-9][0-9]*")
_NUMBER = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?)(\d+))?")
_EXACT = Context(prec=2 * (MAX_MAGNITUDE - MIN_MAGNITUDE + MAX_DIGITS))
_LARGEST_EXPONENT = 2**63 - 1
_OLDER_LARGEST = 2**31 - 1
"""The largest exponent of the older reader (see wordings.py)."""
_OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
_UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
_NO_NUMBER = "The parameter cannot be converted to a numeric value"


def canonical_number(text: str) -> str:
    """Return a number in DynamoDB's form, or raise RequestRefused with DynamoDB's message."""
    if len(text) <= MAX_DIGITS and (
        (text.isdigit() and text.isascii() and (text[0] != "0" or text == "0")) or _CANONICAL_NUMBER.fullmatch(text)
    ):
        return text
    sign, digits, exponent = _parsed(text)
    magnitude = len(digits or "0") + exponent - 1
    if len(digits) > MAX_DIGITS:
        raise RequestRefused("Attempting to store more than 38 significant digits in a Number")
    if not MIN_MAGNITUDE <= magnitude <= MAX_MAGNITUDE:
        message = older = _OVERFLOW if magnitude > MAX_MAGNITUDE else _UNDERFLOW
        if abs(exponent) > _OLDER_LARGEST:
            older = _not_a_number(text).older
        elif magnitude >= _OLDER_LARGEST:
            older = _UNDERFLOW  # the older reader adds one, which overflows its integer
        raise ValueRefused(message, older)
    return sign + _plain(digits, exponent) if digits else "0"


def compare_numbers(left: str, right: str) -> int:
    """Compare two canonical numbers: below, equal to or above zero."""
    if left == right:
        return 0
    if "." in left or "." in right:
        return -1 if Decimal(left) < Decimal(right) else 1
    return -1 if int(left) < int(right) else 1


def add_numbers(left: str, right: str) -> str:
    """Return the exact canonical sum of two canonical numbers, or raise RequestRefused above 38 digits."""
    if len(left) < MAX_DIGITS and len(right) < MAX_DIGITS and "." not in left and "." not in right:
        return str(int(left) + int(right))
    total = format(_EXACT.add(Decimal(left), Decimal(right)), "f")
    if len(_parsed(total)[1]) > MAX_DIGITS:
        raise RequestRefused(_OVERFLOW)  # DynamoDB says so, too, where there are too many digits.
    return canonical_number(total)


def subtract_numbers(left: str, right: str) -> str:
    """Return the exact canonical difference of two canonical numbers, or raise RequestRefused above 38 digits."""
    return add_numbers(left, right[1:] if right[0] == "-" else "0" if right == "0" else "-" + right)


def number_sort_bytes(text: str) -> bytes:
    """Return bytes that sort as the (canonical) numbers do; no number's bytes are a prefix of another's.

    A byte for the sign, one for the magnitude, the significant digits, and an end mark below them all; for a negative
    number everything after the sign is inverted.
    """
    if text == "0":
        return b"\x01"
    negative = text[0] == "-"
    whole, _, fraction = (text[1:] if negative else text).partition(".")
    if whole != "0":
        magnitude = len(whole) - 1
        digits = (whole + fraction).rstrip("0")
    else:
        digits = fraction.lstrip("0")
        magnitude = len(digits) - len(fraction) - 1
    tail = b"%c%s\x00" % (magnitude - MIN_MAGNITUDE, digits.encode("ascii"))
    return b"\x00" + tail.translate(_INVERTED) if negative else b"\x02" + tail


_INVERTED = bytes(range(255, -1, -1))


def _parsed(text: str) -> tuple[str, str, int]:
    """Return the sign, the significant digits (none for zero), and the exponent of the last one."""
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise _not_a_number(text)
    sign, whole, fraction, exponent_sign, exponent_text = match.groups(default="")
    exponent_digits = _ascii_digits(exponent_text).lstrip("0") or "0"
    if len(exponent_digits) > 19 or int(exponent_digits) > _LARGEST_EXPONENT:
        raise _not_a_number(text)
    exponent = -int(exponent_digits) if exponent_sign == "-" else int(exponent_digits)
    digits = _ascii_digits(whole + fraction).lstrip("0")
    if not digits:
        return "", "", exponent
    trimmed = digits.rstrip("0")
    return ("-" if sign == "-" else ""), trimmed, exponent - len(fraction) + len(digits) - len(trimmed)


def _not_a_number(text: str) -> ValueRefused:
    message = f"{_NO_NUMBER}: {text}"
    return ValueRefused(message, message if text else _NO_NUMBER)


def _ascii_digits(digits: str) -> str:
    return digits if digits.isascii() else "".join(str(int(digit)) for digit in digits)


def _plain(digits: str, exponent: int) -> str:
    if exponent >= 0:
        return digits + "0" * exponent
    if -exponent < len(digits):
        return f"{digits[:exponent]}.{digits[exponent:]}"
    return "0." + "0" * (-exponent - len(digits)) + digits
