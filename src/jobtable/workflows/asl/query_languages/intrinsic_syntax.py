"""Intrinsic functions as they are written: `States.Format('Hello, {}', $.name)`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from jobtable.workflows.asl.query_languages.expression_text import ExpressionText
from jobtable.workflows.asl.query_languages.path_parser import read_path_at
from jobtable.workflows.asl.query_languages.path_syntax import ROOT, Path

PREFIX = "States."
COUNTS: dict[str, tuple[int, int | None]] = {
    "Array": (0, None),
    "ArrayContains": (2, 2),
    "ArrayGetItem": (2, 2),
    "ArrayLength": (1, 1),
    "ArrayPartition": (2, 2),
    "ArrayRange": (3, 3),
    "ArrayUnique": (1, 1),
    "Base64Decode": (1, 1),
    "Base64Encode": (1, 1),
    "Format": (1, None),
    "Hash": (2, 2),
    "JsonMerge": (3, 3),
    "JsonToString": (1, 1),
    "MathAdd": (2, 2),
    "MathRandom": (2, 3),
    "StringSplit": (2, 2),
    "StringToJson": (1, 1),
    "UUID": (0, 0),
}
"""The functions, each with the least and the greatest number of its arguments."""
_MOST_NESTED = 10
_NAME = re.compile(r"\w+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
_CONSTANT = re.compile(r"(?:true|false|null)\b")
_ESCAPABLE = frozenset("'{}\\")


@dataclass(frozen=True)
class Text:
    """A string: its value, and with the escapes of braces, as States.Format reads it."""

    value: str
    template: str


@dataclass(frozen=True)
class Constant:
    """A number, `true`, `false` or `null`."""

    value: Any


@dataclass(frozen=True)
class Invocation:
    """A function and its arguments."""

    name: str
    arguments: tuple[Argument, ...]


Argument: TypeAlias = Text | Constant | Path | Invocation


@lru_cache(maxsize=1024)
def parse_intrinsic(text: str) -> Invocation:
    """Return the parts of an invocation, or raise ExpressionSyntaxError."""
    reader = ExpressionText(text)
    reader.skip_space()
    invocation = _read_invocation(reader)
    reader.skip_space()
    if not reader.is_at_end:
        raise reader.error("unexpected text")
    return invocation


def _read_invocation(reader: ExpressionText) -> Invocation:
    reader.enter(_MOST_NESTED)
    reader.expect(PREFIX)
    name = reader.match(_NAME)
    if name not in COUNTS:
        raise reader.error(f"unknown intrinsic function 'States.{name or ''}'")
    reader.skip_space()
    reader.expect("(")
    reader.skip_space()
    arguments: list[Argument] = []
    while not reader.take(")"):
        if arguments:
            reader.expect(",")
            reader.skip_space()
        arguments.append(_read_argument(reader))
        reader.skip_space()
    reader.leave()
    return Invocation(name, tuple(arguments))


def _read_argument(reader: ExpressionText) -> Argument:
    if reader.next == "'":
        return _read_text(reader)
    if reader.next == ROOT:
        return read_path_at(reader)
    if reader.text.startswith(PREFIX, reader.at):
        return _read_invocation(reader)
    constant = reader.match(_CONSTANT)
    if constant is not None:
        return Constant(_CONSTANTS[constant])
    number = reader.match(_NUMBER)
    if number is None:
        raise reader.error("expected a string, a number, a path or a function")
    is_integer = number.lstrip("-").isdigit() and len(number) < 40
    return Constant(int(number) if is_integer else float(number))


def _read_text(reader: ExpressionText) -> Text:
    reader.expect("'")
    value: list[str] = []
    template: list[str] = []
    while not reader.take("'"):
        if reader.is_at_end:
            raise reader.error("a string is not closed")
        is_escaped = reader.take("\\")
        character = reader.next
        if is_escaped and character not in _ESCAPABLE:
            raise reader.error("a backslash must be followed by one of '{}\\")
        reader.at += 1
        value.append(character)
        template.append("\\" + character if is_escaped and character != "'" else character)
    return Text("".join(value), "".join(template))
