"""ExpressionAttributeNames and ExpressionAttributeValues of a request, and the cache of what expressions become."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from jobtable.embedded.values import MAX_NAME_BYTES, measure_value
from jobtable.embedded.wordings import MAP_OF_NAMES, MAP_OF_VALUES, STRING, TooDeep, ValueRefused, wrong_json_type
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Request

T = TypeVar("T")

Names: TypeAlias = tuple[tuple[str, str], ...]  # the entries of ExpressionAttributeNames, as a key for caches

MOST_TREES = 128
"""Number of trees kept of each kind of expression. The longest takes half a megabyte."""
_MOST_KEPT = 1024
_LONGEST_KEPT = 1024
"""Most characters of an expression and its names together: they may have 2 MB, a thousand of which fill the memory."""


def remembered(make: Callable[[str, Names], T]) -> Callable[[str, Names], T]:
    """Cache the results of a function for texts and names that are not too long."""
    known = lru_cache(maxsize=_MOST_KEPT)(make)

    @wraps(make)
    def find(text: str, names: Names) -> T:
        return known(text, names) if is_short(names, text) else make(text, names)

    return find


def is_short(names: Names, text: str = "") -> bool:
    """Whether results for these names, and for the text that uses them, may be cached."""
    return len(text) + sum(map(len, chain.from_iterable(names))) <= _LONGEST_KEPT


MAX_KEY_LENGTH = 255
MAX_MAP_BYTES = 2 * 1024 * 1024

_NAME_KEY = re.compile(r"#[A-Za-z0-9_]+")
_VALUE_KEY = re.compile(r":[A-Za-z0-9_]+")
_NOTHING: dict[str, Any] = {}
_NONE: frozenset[str] = frozenset()


class InvalidValue(ValueRefused):
    """An entry of ExpressionAttributeValues is invalid."""

    def __init__(self, key: str, fault: RequestRefused) -> None:
        older = fault.older if isinstance(fault, ValueRefused) else fault.message
        said = "ExpressionAttributeValues contains invalid value"
        super().__init__(f"{said}: {fault.message} for key {key}", f"{said}: {older} for key {key}")
        self.fault = fault
        """The fault of the value alone, which is all that some operations report."""


class Placeholders:
    """The two maps, validated, and the entries that the expressions of the request used."""

    __slots__ = ("_used_names", "_used_values", "names", "names_key", "nested_names", "values", "values_size")

    names: Mapping[str, str]
    names_key: Names  # the names as a key for caches
    values: Mapping[str, AttributeValue]
    values_size: int  # the bytes of the values, without their keys
    nested_names: frozenset[str]
    """The top-level attributes whose members the expressions so far use, as in `name.member` or `name[0]`."""

    def __init__(self, names: Any = None, values: Any = None, *, by_older_reader: bool = False) -> None:
        """Raise RequestRefused for a malformed map; None is a missing map.

        `by_older_reader`: DynamoDB's older reader reads them (see wordings.py), which accepts values one level deeper.
        """
        self.names_key = () if names is None else _names_key(names)
        self.names = _NOTHING if names is None else names
        self.values, self.values_size = (_NOTHING, 0) if values is None else _valid_values(values, by_older_reader)
        self.nested_names = _NONE
        self._used_names = _NONE
        self._used_values = _NONE

    @classmethod
    def of(cls, request: Request, *expressions: str, by_older_reader: bool = False) -> Placeholders:
        """Return those of a request; its `expressions` can use names and values, ProjectionExpression names only.

        A map without an expression that could use it is ignored.
        """
        names, values = request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues")
        if names is None and values is None:
            return cls()
        if any(request.get(name) is not None for name in expressions):
            return cls(names, values, by_older_reader=by_older_reader)
        return cls() if request.get("ProjectionExpression") is None else cls(names)

    def use(self, names: frozenset[str], values: frozenset[str], nested_names: frozenset[str] = _NONE) -> None:
        """Note that an expression used these keys of the two maps, and members of these attributes."""
        self.nested_names |= nested_names
        self._used_names |= names
        self._used_values |= values

    def finish(self) -> None:
        """Raise RequestRefused if no expression used an entry."""
        if len(self._used_names) != len(self.names):
            raise _unused("ExpressionAttributeNames", self.names, self._used_names)
        if len(self._used_values) != len(self.values):
            raise _unused("ExpressionAttributeValues", self.values, self._used_values)


def _unused(parameter: str, given: Mapping[str, Any], used: frozenset[str]) -> RequestRefused:
    unused = ", ".join(key for key in given if key not in used)
    return RequestRefused(f"Value provided in {parameter} unused in expressions: keys: {{{unused}}}")


def _names_key(names: Any) -> Names:
    if type(names) is not dict:
        raise wrong_json_type(names, MAP_OF_NAMES)
    if not names:
        raise RequestRefused("ExpressionAttributeNames must not be empty")
    entries = tuple(names.items())
    try:
        check = _check_known_names if is_short(entries) else _check_names
        check(entries)
    except TypeError:
        # Values without a length, or that cannot be keys of the cache, are not names either.
        _check_names(entries)
    return entries


def _check_names(entries: tuple[tuple[str, Any], ...]) -> None:
    size = 0
    for key, name in entries:
        if not key:
            raise _invalid_key("Names", _EMPTY)
        if len(key) > MAX_KEY_LENGTH:
            raise _invalid_key("Names", f"{_TOO_LONG} size of key: {len(key)}")
        if _NAME_KEY.fullmatch(key) is None:
            raise _invalid_key("Names", f'Syntax error; key: "{key}"')
        if name is None:
            raise _invalid_name("null", key)
        if type(name) is not str:
            raise wrong_json_type(name, STRING)
        if not name:
            raise _invalid_name("Empty attribute name", key)
        size += len(key) + len(name.encode("utf-8", "surrogatepass"))
        if len(name) > MAX_NAME_BYTES // 4 and len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
            raise _invalid_name("Attribute name is too large, must be less than 65536 bytes", key)
    if size > MAX_MAP_BYTES:
        raise RequestRefused("ExpressionAttributeNames exceeds max size")


_check_known_names = lru_cache(maxsize=1024)(_check_names)


def _valid_values(values: Any, by_older_reader: bool) -> tuple[dict[str, AttributeValue], int]:
    """Return the valid map of values, and their bytes."""
    if type(values) is not dict:
        raise wrong_json_type(values, MAP_OF_VALUES)
    if not values:
        raise RequestRefused("ExpressionAttributeValues must not be empty")
    valid: dict[str, AttributeValue] = {}
    size = size_of_keys = 0
    for key in values:
        _check_value_key(key)
        size_of_keys += len(key)
    for key, value in values.items():
        try:
            valid[key], value_size = measure_value(value)
        except RequestRefused as error:
            valid[key], value_size = _deep_value(key, value, error, by_older_reader)
        size += value_size
    if size + size_of_keys > MAX_MAP_BYTES:
        raise RequestRefused("ExpressionAttributeValues exceeds max size")
    return valid, size


def _deep_value(key: str, value: Any, fault: RequestRefused, by_older_reader: bool) -> tuple[AttributeValue, int]:
    """Return a value that only the older reader accepts as deep as it is, and its bytes; else raise its fault."""
    if by_older_reader and isinstance(fault, TooDeep):
        try:
            return measure_value(value, may_be_deeper=True)
        except RequestRefused as deeper:
            fault = deeper
    if fault.code != RequestRefused.code:
        raise fault
    raise InvalidValue(key, fault) from fault


@lru_cache(maxsize=4096)
def _check_value_key(key: str) -> None:
    if not key:
        raise _invalid_key("Values", _EMPTY)
    if len(key) > MAX_KEY_LENGTH:
        raise _invalid_key("Values", _TOO_LONG)
    if _VALUE_KEY.fullmatch(key) is None:
        raise _invalid_key("Values", f'Syntax error; key: "{key}"')


_EMPTY = "The expression attribute map contains an empty key;"
_TOO_LONG = "The expression attribute map contains a key that is too long;"


def _invalid_key(which: str, reason: str) -> RequestRefused:
    return RequestRefused(f"ExpressionAttribute{which} contains invalid key: {reason}")


def _invalid_name(reason: str, key: str) -> RequestRefused:
    return RequestRefused(f"ExpressionAttributeNames contains invalid value: {reason} for key {key}")
