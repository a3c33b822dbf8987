"""What a member of a request may be, and the words of AWS for one that breaks a rule.

A request is read as a whole before it is checked: a member of another JSON type is reported alone, and broken
constraints are reported together, up to ten of them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from jobtable.errors import OperationRefused

_MOST_REPORTED = 10


class Rule(ABC):
    """The type of a member and the constraints on its value. None is a missing member."""

    @abstractmethod
    def check_type(self, value: Any) -> None:
        """Raise OperationRefused for a value of another JSON type."""

    def faults(self, value: Any, path: str) -> Iterator[str]:
        """Yield the constraints that a value of the right type breaks; `path` is its place in the request."""
        return iter(())

    def word(self, value: Any) -> str:
        """Return a value as AWS writes it in a list."""
        return _word(value)


class Text(Rule):
    """A string. AWS does not repeat a sensitive one in its messages."""

    def __init__(
        self,
        shortest: int = 0,
        longest: int | None = None,
        *,
        pattern: str | None = None,
        choices: tuple[str, ...] = (),
        is_sensitive: bool = False,
    ) -> None:
        self.shortest = shortest
        self.longest = longest
        self.pattern = pattern
        self.choices = choices
        self.is_sensitive = is_sensitive
        self._matches = None if pattern is None else re.compile(pattern.replace(r"\p{ASCII}", r"[\x00-\x7f]"))

    def check_type(self, value: Any) -> None:
        if not isinstance(value, str):
            raise _wrong_type(value, "String")

    def faults(self, value: Any, path: str) -> Iterator[str]:
        shown = None if self.is_sensitive else value
        if self.choices and value not in self.choices:
            yield _fault(path, shown, f"Member must satisfy enum value set: [{', '.join(self.choices)}]")
        if self._matches is not None and not self._matches.fullmatch(value):
            yield _fault(path, shown, f"Member must satisfy regular expression pattern: {self.pattern}")
        yield from _length_faults(len(value), self.shortest, self.longest, path, shown)


class Number(Rule):
    """A number; a whole one unless it may be a fraction."""

    def __init__(self, least: int | None = None, most: int | None = None, *, is_fraction: bool = False) -> None:
        self.least = least
        self.most = most
        self.is_fraction = is_fraction

    def check_type(self, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float) if self.is_fraction else int):
            raise _wrong_type(value, "Float" if self.is_fraction else "Integer")

    def faults(self, value: Any, path: str) -> Iterator[str]:
        if self.least is not None and value < self.least:
            yield _fault(path, value, f"Member must have value greater than or equal to {self.least}")
        if self.most is not None and value > self.most:
            yield _fault(path, value, f"Member must have value less than or equal to {self.most}")


class Flag(Rule):
    """True or false."""

    def check_type(self, value: Any) -> None:
        if not isinstance(value, bool):
            raise _wrong_type(value, "Boolean")


class Many(Rule):
    """A list."""

    def __init__(self, content: Rule, shortest: int = 0, longest: int | None = None) -> None:
        self.content = content
        self.shortest = shortest
        self.longest = longest

    def check_type(self, value: Any) -> None:
        if not isinstance(value, list):
            raise _wrong_type(value, "List")
        for each in value:
            if each is not None:
                self.content.check_type(each)

    def faults(self, value: Any, path: str) -> Iterator[str]:
        yield from _length_faults(
            len(value), self.shortest, self.longest, path, f"[{', '.join(map(self.content.word, value))}]"
        )
        for number, each in enumerate(value, start=1):
            if each is None:
                yield _missing(f"{path}.{number}.member")
            else:
                yield from self.content.faults(each, f"{path}.{number}.member")


class Members(Rule):
    """A structure; `name` is the one that its lists show. Unknown members are ignored."""

    def __init__(self, required: Mapping[str, Rule], optional: Mapping[str, Rule], name: str = "") -> None:
        self.required = required
        self.optional = optional
        self.name = name

    def check_type(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise _wrong_type(value, "Structure")
        for name, rule in (*self.required.items(), *self.optional.items()):
            if value.get(name) is not None:
                rule.check_type(value[name])

    def faults(self, value: Any, path: str) -> Iterator[str]:
        prefix = f"{path}." if path else ""
        for name in self.required:
            if value.get(name) is None:
                yield _missing(prefix + _shown(name))
        for name, rule in (*self.required.items(), *self.optional.items()):
            if value.get(name) is not None:
                yield from rule.faults(value[name], prefix + _shown(name))

    def word(self, value: Any) -> str:
        if value is None:
            return "null"
        shown = (f"{name}={_word(value.get(name))}" for name in (*self.required, *self.optional))
        return f"{self.name}({', '.join(shown)})"


def check(rule: Members, request: Mapping[str, Any]) -> None:
    """Raise OperationRefused for a request that breaks the rules of its members."""
    rule.check_type(request)
    faults = list(islice(rule.faults(request, ""), _MOST_REPORTED))
    if faults:
        plural = "" if len(faults) == 1 else "s"
        raise OperationRefused(f"{len(faults)} validation error{plural} detected: {'; '.join(faults)}")


def _shown(name: str) -> str:
    """Return the name of a member as errors have it: its first letter is a small one in every service."""
    return name[:1].lower() + name[1:]


def _missing(path: str) -> str:
    return f"Value null at '{path}' failed to satisfy constraint: Member must not be null"


def _fault(path: str, shown: Any, rule: str) -> str:
    value = "Value" if shown is None else f"Value '{_word(shown)}'"
    return f"{value} at '{path}' failed to satisfy constraint: {rule}"


def _length_faults(length: int, shortest: int, longest: int | None, path: str, shown: Any) -> Iterator[str]:
    if length < shortest:
        yield _fault(path, shown, f"Member must have length greater than or equal to {shortest}")
    if longest is not None and length > longest:
        yield _fault(path, shown, f"Member must have length less than or equal to {longest}")


def _word(value: Any) -> str:
    """Return a value as Java writes it."""
    if isinstance(value, dict):
        members = ", ".join(f"{name}={_word(member)}" for name, member in value.items())
        return f"{{{members}}}"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def _wrong_type(value: Any, wanted: str) -> OperationRefused:
    if isinstance(value, dict):
        message = "Start of structure or map found where not expected."
    elif isinstance(value, list):
        message = "Start of list found where not expected."
    elif wanted == "Structure":
        message = "Expected null"
    elif wanted == "List":
        message = "Expected list or null"
    else:
        message = f"{_token(value)}_VALUE can not be converted to {wanted}"
    return OperationRefused(message, code="SerializationException")


def _token(scalar: Any) -> str:
    if isinstance(scalar, bool):
        return str(scalar).upper()
    if isinstance(scalar, str):
        return "STRING"
    return "NUMBER" if isinstance(scalar, int) else "DECIMAL"
