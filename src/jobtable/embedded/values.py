"""Attribute values in wire form: their validation, their sizes, and their order.

Validation makes every value canonical: numbers in their one form, sets in order, and only one base64 for the same
bytes. So two valid values are equal exactly when they are equal dicts.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from jobtable.embedded import wordings
from jobtable.embedded.decimals import MAX_DIGITS, canonical_number, compare_numbers
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, EncodedItem, Item
from jobtable.store.sizes import CONTAINER_BYTES, number_size, utf8_length

MAX_CONTAINER_DEPTH = 31
"""A list or map may be inside of 30 others; other values may be one level deeper."""
_MAX_LEVELS = 1 + 2 * (MAX_CONTAINER_DEPTH + 1)
"""The levels of JSON in the deepest valid item: the item, and two for each value inside of another."""
MAX_NAME_BYTES = 65535

_EMPTY_VALUE = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
SEVERAL_TYPES = (
    "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
)
_SPARE_BITS = "Invalid last non-pad Base64 character dectected"  # DynamoDB's spelling
FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""Texts that DynamoDB reads as flags, in any case."""
_EMPTY_NAME = "Empty attribute name"
BECOMES_TOO_DEEP = "Nesting Levels have exceeded supported limits"
"""The message for what an update, or a literal of a statement, would make too deep."""
TOO_DEEP = f"{BECOMES_TOO_DEEP}: Attributes in the item have nested levels beyond supported limit"


def measure_item(item: Any) -> tuple[Item, int]:
    """Return the item in canonical form (itself if nothing changes), and its bytes as DynamoDB measures them.

    Raise RequestRefused if it is invalid.
    """
    if type(item) is EncodedItem:
        return _measured_encoded(item)
    if type(item) is not dict:
        raise wordings.wrong_json_type(item, wordings.MAP_OF_VALUES)
    try:
        return _measured_members(item, 1)
    except RequestRefused as fault:
        # Names of attributes are checked before any value, those in maps if no value is too deep.
        if isinstance(fault, wordings.TooDeep) and "" in item:
            raise wordings.EmptyName(_EMPTY_NAME) from fault
        if isinstance(fault, wordings.EmptyName) and "" not in item and wordings.is_deeper(item, _MAX_LEVELS):
            raise wordings.TooDeep(TOO_DEEP) from fault
        raise


def _measured_encoded(item: EncodedItem) -> tuple[Item, int]:
    """Measure an item of which only some attributes need be checked."""
    changed: Item | None = None
    size = item.size
    for name in item.unknown:
        value = item.get(name)
        if value is not None:
            checked, value_size = _measured(value, 1)
            size += value_size + utf8_length(name)
            if checked is not value:
                changed = changed or item.whole()
                changed[name] = checked
    return changed or item, size


def measure_value(value: Any, *, may_be_deeper: bool = False) -> tuple[AttributeValue, int]:
    """Return the value in canonical form (itself if nothing changes) and its bytes, or raise RequestRefused.

    `may_be_deeper`: its content may have one level more than in an item.
    """
    return _measured(value, 0 if may_be_deeper else 1)


def validate_item(item: Any) -> Item:
    """Return the item in canonical form, or raise RequestRefused."""
    return measure_item(item)[0]


def validate_value(value: Any, *, may_be_deeper: bool = False) -> AttributeValue:
    """Return the value in canonical form, or raise RequestRefused."""
    return measure_value(value, may_be_deeper=may_be_deeper)[0]


def container_depth(value: AttributeValue) -> int:
    """Return the number of nested lists and maps in a (valid) value; 0 for anything else."""
    [(kind, content)] = value.items()
    if kind == "L":
        return 1 + max(map(container_depth, content), default=0)
    if kind == "M":
        return 1 + max(map(container_depth, content.values()), default=0)
    return 0


def compare(left: AttributeValue, right: AttributeValue) -> int | None:
    """Return a number below, equal to or above zero as left is to right; None if they have no order."""
    [(kind, content)] = left.items()
    other = right.get(kind)
    if other is None:
        return None
    if kind == "N":
        return compare_numbers(content, other)
    if kind == "S":
        return -1 if content < other else int(content > other)
    if kind == "B":
        here, there = binascii.a2b_base64(content), binascii.a2b_base64(other)
        return -1 if here < there else int(here > there)
    return None


def _measured(value: Any, depth: int) -> tuple[AttributeValue, int]:
    if type(value) is dict and len(value) == 1:
        for kind, content in value.items():
            measure = _MEASURES.get(kind)
            if measure is not None and content is not None:
                checked, size = measure(content, depth)
                return (value if checked is content else {kind: checked}), size
    return _measured_odd(value, depth)


def _measured_odd(value: Any, depth: int) -> tuple[AttributeValue, int]:
    """Measure a value without a known member, or with several members; unknown and null ones do not count."""
    if value is None:
        raise RequestRefused("The supplied Item contains a null AttributeValue")
    if type(value) is not dict:
        raise wordings.wrong_json_type(value, wordings.ATTRIBUTE_VALUE)
    found = {kind: measure(value[kind], depth) for kind, measure in _MEASURES.items() if value.get(kind) is not None}
    if not found:
        raise wordings.NotOneType(_EMPTY_VALUE)
    if len(found) > 1:
        raise wordings.NotOneType(SEVERAL_TYPES)
    [(kind, (content, size))] = found.items()
    return {kind: content}, size


def _measured_members(members: dict[str, Any], depth: int) -> tuple[dict[str, AttributeValue], int]:
    """Return the members of an item or map in canonical form, and their bytes with their names."""
    changed: dict[str, AttributeValue] | None = None
    total = 0
    for name, value in members.items():
        # Most values are strings: checking them here, without a call, saves 6 to 15 % of a put.
        if type(value) is dict and len(value) == 1 and type(text := value.get("S")) is str:
            total += len(text) if text.isascii() else utf8_length(text)
        elif type(value) is dict and len(value) == 1 and type(text := value.get("N")) is str:
            number, size = _measured_number(text)
            total += size
            if number != text:
                if changed is None:
                    changed = dict(members)
                changed[name] = {"N": number}
        else:
            if value is None:
                raise RequestRefused(f"The supplied Item contains a null AttributeValue: {name} is null")
            checked, size = _measured(value, depth)
            total += size
            if checked is not value:
                if changed is None:
                    changed = dict(members)
                changed[name] = checked
        if not name:
            raise wordings.EmptyName(_EMPTY_NAME)
        name_bytes = len(name) if name.isascii() else utf8_length(name)
        if name_bytes > MAX_NAME_BYTES:
            raise RequestRefused("Attribute name is too large, must be less than 65536 bytes")
        total += name_bytes
    return (members if changed is None else changed), total


def _text(content: Any, depth: int) -> tuple[str, int]:
    if type(content) is not str:
        raise wordings.wrong_json_type(content, wordings.STRING)
    return content, len(content) if content.isascii() else utf8_length(content)


def _number(content: Any, depth: int) -> tuple[str, int]:
    if type(content) is not str:
        raise wordings.wrong_json_type(content, wordings.STRING)
    number, size = _measured_number(content)
    return (content if number == content else number), size


def _measured_number(text: str) -> tuple[str, int]:
    if len(text) <= MAX_DIGITS:
        return _known_number(text)
    number = canonical_number(text)
    return number, number_size(number)


@lru_cache(maxsize=16384)  # most numbers come again; long ones would fill the memory
def _known_number(text: str) -> tuple[str, int]:
    number = canonical_number(text)
    return number, number_size(number)


def _binary(content: Any, depth: int) -> tuple[str, int]:
    if type(content) is not str:
        if isinstance(content, (list, dict)):
            raise wordings.wrong_json_type(content, wordings.BYTES)
        raise RequestRefused("only base-64-encoded strings are convertible to bytes", code="SerializationException")
    try:
        raw = binascii.a2b_base64(content, strict_mode=True)
    except ValueError as error:
        raise _wrong_base64(content) from error
    if binascii.b2a_base64(raw, newline=False).decode("ascii") != content:
        raise RequestRefused(_SPARE_BITS, code="SerializationException")
    return content, len(raw)


def _wrong_base64(content: str) -> RequestRefused:
    if len(content) % 4:
        message = f"Base64 encoded length is expected a multiple of 4 bytes but found: {len(content)}"
    else:
        strange = next((c for c in content if not (c.isascii() and (c.isalnum() or c in "+/="))), "=")
        has_spare_bits = strange == "=" and _has_spare_bits(content[-4:])
        message = _SPARE_BITS if has_spare_bits else f"Invalid Base64 character: '{strange}'"
    return RequestRefused(message, code="SerializationException")


def _has_spare_bits(last_four: str) -> bool:
    """Whether the last character before the padding has bits that belong to no byte; other padding counts as zeros."""
    unpadded = last_four.rstrip("=")
    digits = unpadded.replace("=", "A").ljust(4, "=")
    return len(unpadded) > 1 and binascii.b2a_base64(binascii.a2b_base64(digits), newline=False).decode() != digits


def _boolean(content: Any, depth: int) -> tuple[bool, int]:
    flag = content
    if type(content) is not bool:
        flag = FLAGS.get(content.lower()) if isinstance(content, str) else None
        if flag is None:
            raise wordings.wrong_json_type(content, wordings.BOOLEAN)
    return flag, 1


def _null(content: Any, depth: int) -> tuple[bool, int]:
    if not _boolean(content, depth)[0]:
        raise wordings.RefusedInStart(wordings.INVALID + "Null attribute value types must have the value of true")
    return True, 1


def _members(content: Any) -> list[Any]:
    if type(content) is not list:
        raise wordings.wrong_json_type(content, wordings.LIST)
    return content


def _string_set(content: Any, depth: int) -> tuple[list[str], int]:
    members = _members(content)
    if not members:
        raise wordings.RefusedInStart(wordings.INVALID + "An string set  may not be empty")
    if None in members:
        raise wordings.invalid("An string set may not have a null string as a member")
    size = sum([_text(member, depth)[1] for member in members])
    if len(set(members)) < len(members):
        listed = ", ".join(f'"{member}"' for member in _up_to_repeated(members, str))
        raise _repeated(f"[{listed}] contains duplicates.", f"[{', '.join(members)}] contains duplicates.")
    return _same_or(members, sorted(members)), size


def _number_set(content: Any, depth: int) -> tuple[list[str], int]:
    members = _members(content)
    if not members:
        raise wordings.invalid("An number set  may not be empty")
    sizes: dict[str, int] = {}
    for member in members:  # The first fault counts, be it of a number by itself or beside those before it.
        number, size = _number("" if member is None else member, depth)
        if number in sizes:
            message = "Input collection contains duplicates"
            raise wordings.ValueRefused(f"{wordings.INVALID}{message}.", message)
        sizes[number] = size
    return _same_or(members, sorted(sizes, key=Decimal)), sum(sizes.values())


def _binary_set(content: Any, depth: int) -> tuple[list[str], int]:
    members = _members(content)
    if not members:
        raise wordings.RefusedInStart(wordings.INVALID + "Binary sets should not be empty")
    if None in members:
        raise wordings.invalid("Binary sets may not contain null values")
    measured = [_binary(member, depth) for member in members]
    values = [value for value, _ in measured]
    if len(set(values)) < len(values):
        listed = ",".join(f'"{value}"' for value in _up_to_repeated(values, binascii.a2b_base64))
        said = "of type BS contains duplicates."
        raise _repeated(f"[{listed}]{said}", f"[{', '.join(values)}]{said}")
    return _same_or(members, sorted(values, key=binascii.a2b_base64)), sum([size for _, size in measured])


def _repeated(listed: str, older: str) -> wordings.ValueRefused:
    start = f"{wordings.INVALID}Input collection "
    return wordings.ValueRefused(start + listed, start + older)


def _up_to_repeated(members: list[str], order: Callable[[str], str | bytes]) -> list[str]:
    """List a set with a repeated member as DynamoDB does: in order up to the first repetition, then as given."""
    different: set[str] = set()
    for member in members:
        if member in different:
            break
        different.add(member)
    return [*sorted(different, key=order), *members[len(different) :]]


def _same_or(given: list[Any], canonical: list[str]) -> list[str]:
    return given if given == canonical else canonical


def _list(content: Any, depth: int) -> tuple[list[AttributeValue], int]:
    if depth > MAX_CONTAINER_DEPTH:
        raise wordings.TooDeep(TOO_DEEP)
    members = _members(content)
    measured = [_measured(member, depth + 1) for member in members]
    size = CONTAINER_BYTES + len(members) + sum([size for _, size in measured])
    for (new, _), old in zip(measured, members, strict=True):
        if new is not old:
            return [checked for checked, _ in measured], size
    return members, size


def _map(content: Any, depth: int) -> tuple[dict[str, AttributeValue], int]:
    if depth > MAX_CONTAINER_DEPTH:
        raise wordings.TooDeep(TOO_DEEP)
    if type(content) is not dict:
        raise wordings.wrong_json_type(content, wordings.MAP_OF_VALUES)
    members, size = _measured_members(content, depth + 1)
    return members, CONTAINER_BYTES + len(members) + size


_MEASURES: dict[str, Callable[[Any, int], tuple[Any, int]]] = {
    "S": _text,
    "N": _number,
    "B": _binary,
    "BOOL": _boolean,
    "NULL": _null,
    "SS": _string_set,
    "NS": _number_set,
    "BS": _binary_set,
    "L": _list,
    "M": _map,
}
"""For each type: returns the content in canonical form, and its bytes as `sizes` counts them too."""
