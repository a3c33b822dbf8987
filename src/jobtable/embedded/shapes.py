"""The shapes of requests: their JSON types, and the constraints on their values.

DynamoDB reads a whole request before it checks anything, so a member of another JSON type is reported before every
other fault, wherever it is. It also accepts flags in words and the whole part of decimals.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jobtable.embedded.values import FLAGS, validate_value
from jobtable.embedded.wordings import (
    BOOLEAN,
    INTEGER,
    LONG,
    STRING,
    constraint,
    expect_type,
    lower_first,
    unshown_constraint,
    wrong_json_type,
)
from jobtable.errors import RequestRefused

_DEEPEST = 100  # deeper values are refused for their depth, whatever they are
_PARAMETERIZED = "sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl"
_NOT_A_COLLECTION = (
    f"class {_PARAMETERIZED} cannot be cast to class java.lang.Class ({_PARAMETERIZED} and java.lang.Class are in"
    " module java.base of loader 'bootstrap')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The constraints on a value of the right type: its allowed texts, its number or its length, or its name."""

    enum: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    check: Callable[[Any], list[str]] | None = None
    """Checks a name; returns the constraints that it breaks."""
    is_shown: bool = True  # whether DynamoDB shows the value that breaks a constraint
    newer_message: str = ""
    """The message of DynamoDB's newer reader for any broken constraint (see wordings.py), if it has its own."""

    def broken(self, value: Any) -> list[str]:
        """Return the constraints that a value breaks."""
        if self.check:
            return self.check(value)
        if self.enum:
            return [] if value in self.enum else [f"Member must satisfy enum value set: [{', '.join(self.enum)}]"]
        what, found = ("value", value) if isinstance(value, int) else ("length", len(value))
        broken = []
        if self.least is not None and found < self.least:
            broken.append(f"Member must have {what} greater than or equal to {self.least}")
        if self.most is not None and found > self.most:
            broken.append(f"Member must have {what} less than or equal to {self.most}")
        return broken

    def faults(self, path: str, name: str, value: Any, *, by_older_reader: bool = False) -> list[str]:
        """Word the constraints that the value of a member breaks; `path` is the place of its structure."""
        broken = self.broken(value)
        if broken and self.newer_message and not by_older_reader:
            return [self.newer_message]
        if not self.is_shown:
            return [unshown_constraint(path + name, rule) for rule in broken]
        return [constraint(path + lower_first(name), _shown(value), rule) for rule in broken]


NO_LIMITS = Limits()


class Shape(ABC):
    """The type of a member of a request: `java` is its name in the service, `type` what it is in Python."""

    def __init__(self, java: str, type_: type[Any], limits: Limits = NO_LIMITS) -> None:
        self.java = java
        self.type = type_
        self.limits = limits
        self.is_free = limits == NO_LIMITS
        self.is_plain = True  # whether nothing inside of it has constraints

    @abstractmethod
    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        """Raise RequestRefused for another type. `is_inside`: it is a member of a list or map."""

    def read(self, found: Any, depth: int) -> Any:
        """Convert a value as DynamoDB does; unreadable values stay as they are."""
        return found

    def faults_inside(self, found: Any, path: str) -> Iterator[str]:
        """Yield the constraints that the members of a value of the right type break."""
        yield from ()


class Scalar(Shape):
    """A text, a flag or a number."""

    _PYTHON_TYPES: ClassVar[dict[str, type]] = {STRING: str, BOOLEAN: bool, INTEGER: int, LONG: int}

    def __init__(self, java: str, limits: Limits = NO_LIMITS) -> None:
        super().__init__(java, self._PYTHON_TYPES[f"class {java}"], limits)

    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        if type(found) is not self.type:
            raise wrong_json_type(found, f"class {self.java}")

    def read(self, found: Any, depth: int) -> Any:
        if self.type is bool and isinstance(found, str):
            return FLAGS.get(found.lower(), found)
        return int(found) if self.type is int and isinstance(found, float) and math.isfinite(found) else found


class Binary(Shape):
    """Bytes in base64."""

    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        validate_value({"B": found})


class WrittenFlag(Scalar):
    """The flag of an attribute value, which may be a word."""

    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        validate_value({"BOOL": found})

    def read(self, found: Any, depth: int) -> Any:
        return found  # It is read where values are.


class Collection(Shape):
    """A list, or a map from any text, with members of one shape."""

    def __init__(self, type_: type[list[Any]] | type[dict[str, Any]], content: Shape, limits: Limits) -> None:
        java = "List<" if type_ is list else "Map<java.lang.String, "
        super().__init__(f"java.util.{java}{content.java}>", type_, limits)
        self.is_plain = content.is_plain
        self.content = content

    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        if not isinstance(found, self.type):
            if is_inside and not isinstance(found, (list, dict)):
                raise _refused(_NOT_A_COLLECTION)
            raise wrong_json_type(found, self.java)
        for member in found.values() if isinstance(found, dict) else found:
            _check(self.content, member, depth, is_inside=True)

    def read(self, found: Any, depth: int) -> Any:
        if not isinstance(found, self.type):
            return found
        if isinstance(found, dict):
            return {name: _read(self.content, member, depth) for name, member in found.items()}
        return [_read(self.content, member, depth) for member in found]

    def faults_inside(self, found: Any, path: str) -> Iterator[str]:
        if self.is_plain:
            return
        expect_type(found, self.type)
        if self.type is list:
            found = dict(enumerate((one or {} for one in found), start=1))  # a null structure of a list is an empty one
        for place, member in found.items():
            if member is not None:
                yield from self.content.faults_inside(member, f"{path}{place}.member.")


class Structure(Shape):
    """Members of given names, of which any may be missing; others are ignored."""

    def __init__(self, name: str) -> None:
        super().__init__(f"com.amazonaws.dynamodb.v20120810.{name}", dict)
        self.is_plain = name == "AttributeValue"
        self.members: dict[str, Shape] = {}
        self.required: set[str] = set()
        self.looked_for_first: list[str] = []
        """The members without any of which a request is refused for that alone."""
        self.checked: list[tuple[str, Shape, bool]] = []
        """The members that are checked together, in DynamoDB's order, and whether each is required."""
        self.older: list[str] = []
        """The parameters from before expressions, which are checked by themselves."""

    def add(self, name: str, shape: Shape, marks: str, *, is_older: bool) -> None:
        """Add a member that is required if it is marked with "!", and looked for first if marked with "!!"."""
        self.members[name] = shape
        if marks:
            self.required.add(name)
        if marks == "!!":
            self.looked_for_first.append(name)
        if is_older:
            self.older.append(name)
        else:
            self.checked.append((name, shape, bool(marks)))

    def check(self, found: Any, depth: int, *, is_inside: bool = False) -> None:
        if not isinstance(found, dict):
            if isinstance(found, list):
                raise wrong_json_type(found, f"class {self.java}")
            raise _refused("Unexpected value type in payload" if is_inside else "Unexpected field type")
        for name, member in found.items():
            if name in self.members:
                _check(self.members[name], member, depth)

    def read(self, found: Any, depth: int) -> Any:
        if not isinstance(found, dict):
            return found
        members = self.members
        return {
            name: _read(members[name], member, depth) if name in members else member for name, member in found.items()
        }

    def faults_inside(self, found: Any, path: str = "") -> Iterator[str]:
        expect_type(found, dict)
        for name in self.members:
            yield from self.faults_of(name, found.get(name), path)

    def faults_of(self, name: str, value: Any, path: str = "") -> Iterator[str]:
        """Yield the constraints that one member breaks, itself and inside; `path` is the place of this structure."""
        if value is not None:
            shape = self.members[name]
            if not shape.is_free:
                yield from shape.limits.faults(path, name, value)
            yield from shape.faults_inside(value, f"{path}{lower_first(name)}.")
        elif name in self.required:
            yield missing_member(path, name)


def missing_member(path: str, name: str) -> str:
    """Word the fault of a missing member of the structure at a path."""
    return constraint(path + lower_first(name), "null", "Member must not be null")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"'{json.dumps(value, separators=(',', ':'), default=str)}'"
    return f"'[{', '.join(map(_shown_element, value))}]'" if isinstance(value, list) else f"'{value}'"


def _shown_element(element: str | Mapping[str, str] | None) -> str:
    if isinstance(element, str):
        return element
    if element is None:
        return "null"
    name, kind = (element.get(member) or "null" for member in ("AttributeName", "KeyType"))
    return f"KeySchemaElement(attributeName={name}, keyType={kind})"


def _check(shape: Shape, found: Any, depth: int, *, is_inside: bool = False) -> None:
    if found is not None and depth < _DEEPEST:
        shape.check(found, depth + 1, is_inside=is_inside)


def _read(shape: Shape, found: Any, depth: int) -> Any:
    return found if depth >= _DEEPEST else shape.read(found, depth + 1)


def _refused(message: str) -> RequestRefused:
    return RequestRefused(message, code="SerializationException")
