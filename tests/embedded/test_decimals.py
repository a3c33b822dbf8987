"""Numbers against decimal.Decimal, and DynamoDB's limits and messages."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jobtable.embedded.decimals import (
    add_numbers,
    canonical_number,
    compare_numbers,
    number_sort_bytes,
    subtract_numbers,
)
from jobtable.errors import RequestRefused
from jobtable.store.sizes import number_size

TOO_MANY_DIGITS = "Attempting to store more than 38 significant digits in a Number"
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
NOT_A_NUMBER = "The parameter cannot be converted to a numeric value"


def spelled(digits: int, exponent: int) -> str:
    return f"{digits}E{exponent}"


NUMBERS = st.builds(spelled, st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-130, 87)) | st.integers(
    -1000, 1000
).map(str)
CANONICAL = NUMBERS.map(canonical_number)


@given(NUMBERS)
def test_canonical_numbers_keep_their_value(text: str) -> None:
    canonical = canonical_number(text)
    assert Decimal(canonical) == Decimal(text)
    assert canonical_number(canonical) is canonical or canonical_number(canonical) == canonical
    assert "E" not in canonical
    assert not (canonical.startswith(("+", "-0")) and Decimal(text) == 0)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=5, min_value=-(10**20), max_value=10**20))
def test_one_value_has_one_form(value: Decimal) -> None:
    spellings = {str(value), f"{value:f}", f"{value:E}", f"+{value:f}".replace("+-", "-"), f"{value:f}000"}
    assert len({canonical_number(text) for text in spellings}) == 1


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("0.0", "0"),
        ("+1", "1"),
        ("00012", "12"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1.50", "1.5"),
        ("1e5", "100000"),
        ("1E+5", "100000"),
        ("1E-7", "0.0000001"),
        ("1E0000000000005", "100000"),
        ("-1.5E3", "-1500"),
        ("1" * 38 + "0", "1" * 38 + "0"),
        ("9.9999999999999999999999999999999999999E125", "9" * 38 + "0" * 88),
        ("1E-130", "0." + "0" * 129 + "1"),
        ("12E-131", "0." + "0" * 129 + "12"),
        ("0E125", "0"),
        ("0E-130", "0"),
        ("0." + "0" * 140, "0"),
        ("١٢", "12"),
    ],
)
def test_canonical(text: str, canonical: str) -> None:
    assert canonical_number(text) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            (text, f"{NOT_A_NUMBER}: {text}")
            for text in ("", "abc", " 1", "1 ", "0x1", "NaN", "Infinity", ".", "-", "1_0")
        ),
        *((text, f"{NOT_A_NUMBER}: {text}") for text in ("1e", "1e+", "++1", "1E9223372036854775808", "1\n")),
        ("1" * 39, TOO_MANY_DIGITS),
        ("0." + "1" * 39, TOO_MANY_DIGITS),
        ("1" * 39 + "E200", TOO_MANY_DIGITS),
        ("9.99999999999999999999999999999999999999E125", TOO_MANY_DIGITS),
        ("1E126", OVERFLOW),
        ("-1E126", OVERFLOW),
        ("1" + "0" * 5000, OVERFLOW),
        # DynamoDB Local reads exponents of 32 bits only, and takes every zero.
        *((text, OVERFLOW) for text in ("1E2147483647", "1E2147483648", "-1e99999999999", "1E9223372036854775807")),
        *((text, UNDERFLOW) for text in ("1E-2147483648", "1e-99999999999")),
        *((text, OVERFLOW) for text in ("0E126", "-0.0e126")),
        ("0E-131", UNDERFLOW),
        ("1E-131", UNDERFLOW),
        ("-9E-131", UNDERFLOW),
        ("99999E-135", UNDERFLOW),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        canonical_number(text)
    assert caught.value.message == message


@given(CANONICAL, CANONICAL)
def test_order(left: str, right: str) -> None:
    expected = (Decimal(left) > Decimal(right)) - (Decimal(left) < Decimal(right))
    assert compare_numbers(left, right) == expected
    here, there = number_sort_bytes(left), number_sort_bytes(right)
    assert (here > there) - (here < there) == expected
    assert left == right or not here.startswith(there)


@given(CANONICAL, CANONICAL)
def test_sums_are_exact_or_refused(left: str, right: str) -> None:
    with localcontext(prec=1000):
        for function, exact in (
            (add_numbers, Decimal(left) + Decimal(right)),
            (subtract_numbers, Decimal(left) - Decimal(right)),
        ):
            assume(len(exact.normalize().as_tuple().digits) <= 38 or exact != 0)
            try:
                result = function(left, right)
            except RequestRefused:
                assert len(exact.normalize().as_tuple().digits) > 38 or not -131 < exact.adjusted() < 126
            else:
                assert Decimal(result) == exact
                assert result == canonical_number(result)


# Measured on DynamoDB Local: the string beside the number that just fits into one write unit.
@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("0", 1), ("1", 2), ("10", 2), ("99", 2), ("100", 2), ("101", 3), ("110", 3), ("1000", 2), ("1001", 3)),
        *(("1200", 2), ("1230", 3), ("12300", 3), ("12345", 4), ("-1", 3), ("-123", 4), ("-1234", 4)),
        *(("0.1", 2), ("0.01", 2), ("0.001", 2), ("0.123", 3), ("1.1", 3), ("1.12", 3), ("12.345", 4), ("-0.01", 3)),
        *(("0.0001", 2), ("0.00012", 3), ("1" * 38, 20), ("-" + "1" * 38, 21), ("1." + "1" * 37, 21)),
        *(("-1." + "1" * 37, 21), ("0." + "1" * 38, 20), ("1E125", 2), ("1E-130", 2), ("12E11", 3)),
    ],
)
def test_size(text: str, size: int) -> None:
    assert number_size(canonical_number(text)) == size
