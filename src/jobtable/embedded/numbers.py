"""DynamoDB's numbers: decimals of up to 38 digits, as text."""

from __future__ import annotations


def canonical_number(text: str) -> str:
    """The form in which DynamoDB gives a number back; RequestRefused with its message if it is none."""
    raise NotImplementedError


def compare_numbers(left: str, right: str) -> int:
    """Below, equal to or above zero, as the left number is to the right one. Both must be valid."""
    raise NotImplementedError


def add_numbers(left: str, right: str) -> str:
    """The exact sum, canonical; RequestRefused if it does not fit into 38 digits."""
    raise NotImplementedError


def subtract_numbers(left: str, right: str) -> str:
    """The exact difference, canonical; RequestRefused if it does not fit into 38 digits."""
    raise NotImplementedError


def number_sort_bytes(text: str) -> bytes:
    """Bytes that sort as the (canonical) numbers do; no number's bytes are a prefix of another's."""
    raise NotImplementedError
