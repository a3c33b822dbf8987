"""The tokens and the tree of a statement. A tree is immutable, and serves every request with the same text."""

from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from jobtable.embedded.expressions.paths import Path
from jobtable.errors import RequestRefused

KEYWORDS = frozenset(pathlib.Path(__file__).with_name("keywords.txt").read_text().upper().split())
"""Words that are not names unless they are quoted."""

OPERATORS = frozenset(
    {"AND", "OR", "NOT", "IS", "IN", "LIKE", "BETWEEN", "UNION", "EXCEPT", "INTERSECT"}
    | {"=", "<>", "<", "<=", ">", ">=", "/", "%", "||"}
)
"""Tokens between operands, or before one."""
_LARGEST_EXPONENT = 2**31 - 1

_TOKEN = re.compile(
    r"""(?:[ \t\r\n]|--[^\n]*|/\*.*?\*/)*(?:
      (?P<word>[A-Za-z_$][A-Za-z0-9_$]*)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | '(?P<string>(?:[^']|'')*)'
    | "(?P<quoted>(?:[^"]|"")*)"
    | (?P<ion>`[^`]*`)
    | (?P<open>/\*)
    | (?P<symbol><<|>>|<=|>=|<>|!=|\|\||[<>=+\-*/%()\[\]{},.:;?@])
    | (?P<end>\Z)
    | (?P<unknown>.)
    )""",
    re.VERBOSE | re.DOTALL,
)


class Place(NamedTuple):
    """The place of something in a statement, and its length."""

    line: int
    column: int
    length: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}:{self.length}"


class Token(NamedTuple):
    """`kind` is name, number, string, ion or end, or the upper-case keyword or the symbol itself."""

    kind: str
    text: str  # a name or string without its quotes, else the text
    place: Place


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a statement, ended by one of kind "end", or raise RequestRefused."""
    tokens: list[Token] = []
    line, line_start, seen = 1, 0, 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "unknown"
        content = match[kind]
        if kind in ("unknown", "open") or (kind == "number" and not _has_exponent_in_range(content)):
            raise malformed("")
        start = match.start(kind) - (kind in ("string", "quoted"))
        breaks = text.count("\n", seen, start)
        if breaks:
            line, line_start = line + breaks, text.rindex("\n", seen, start) + 1
        seen = start
        place = Place(line, start - line_start + 1, max(match.end() - start, 1))
        if kind == "string":
            content = content.replace("''", "'")
        elif kind == "quoted":
            kind, content = "name", content.replace('""', '"')
        elif kind == "symbol":
            kind = "<>" if content == "!=" else content
        elif kind == "word":
            kind = content.upper() if content.upper() in KEYWORDS else "name"
        tokens.append(Token(kind, content, place))
        if kind == "end":
            break
    return tokens


def _has_exponent_in_range(number: str) -> bool:
    """Whether the exponent, and that of the last digit, are integers of 32 bits."""
    digits, _, exponent = number.lower().partition("e")
    size = exponent.lstrip("+-").lstrip("0") or "0"
    if len(size) > len(str(_LARGEST_EXPONENT)) or int(size) > _LARGEST_EXPONENT:
        return False
    places = len(digits.partition(".")[2])
    return places + int(size) <= _LARGEST_EXPONENT if exponent.startswith("-") else True


def malformed(reason: str) -> RequestRefused:
    """Return the error for a malformed statement."""
    return RequestRefused(f"Statement wasn't well formed, can't be processed: {reason}")


def unexpected(token: Token) -> RequestRefused:
    """Return the error for an unexpected token."""
    if token.kind == "end":
        return malformed("Unexpected end of the statement")
    if token.kind == token.text.upper() and token.kind in KEYWORDS:
        return malformed(f"Unexpected keyword {token.text} at {token.place}")
    return malformed(f"Unexpected token {token.text!r} at {token.place}")


def no_operand(token: Token) -> RequestRefused:
    """Return the error for a token that does not start an operand."""
    if token.kind in OPERATORS:
        return malformed("Unexpected operator")
    return malformed("Unexpected keyword" if token.kind in KEYWORDS else "Unexpected term")


Returned: TypeAlias = Literal["ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"]
"""What RETURNING asks for, as ReturnValues names it."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A text, number, flag or null."""

    kind: Literal["S", "N", "BOOL", "NULL"]
    content: str | bool
    place: Place


@dataclass(frozen=True, slots=True)
class Missing:
    """MISSING, which only IS can test."""

    place: Place


@dataclass(frozen=True, slots=True)
class Parameter:
    """The question mark with this number, from 0."""

    number: int
    place: Place


@dataclass(frozen=True, slots=True)
class Reference:
    """The value at a path of the item."""

    path: Path
    place: Place


@dataclass(frozen=True, slots=True)
class ListOf:
    """[a, b] or (a, b), or the bag <<a, b>>, which is a set."""

    members: tuple[Node, ...]
    place: Place
    is_bag: bool = False


@dataclass(frozen=True, slots=True)
class TupleOf:
    """{'a': b}, which is a map."""

    members: tuple[tuple[Node, Node], ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments; its name is in lower case."""

    name: str
    arguments: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator with its operands: AND and OR have two or more, NOT has one, the others as written.

    IN has the searched value and then the choices. "IS STRING" and the like have one operand.
    """

    operator: str
    operands: tuple[Node, ...]
    place: Place


Node: TypeAlias = Constant | Missing | Parameter | Reference | ListOf | TupleOf | Call | Operation


@dataclass(frozen=True, slots=True)
class TableReference:
    """The table, and perhaps an index, by their names."""

    table: str
    index: str | None = None


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """SELECT; no paths mean all attributes."""

    paths: tuple[Path, ...]
    source: TableReference
    where: Node | None
    order: tuple[tuple[Node, bool], ...]  # what ORDER BY names, and whether each is descending
    fault: str | None
    """A fault of the projection, which is reported once the table is known."""


@dataclass(frozen=True, slots=True)
class ExistsStatement:
    """EXISTS(SELECT ...), which a transaction of writes can check."""

    select: SelectStatement


@dataclass(frozen=True, slots=True)
class InsertStatement:
    """INSERT INTO ... VALUE {...}."""

    source: TableReference
    item: Node


@dataclass(frozen=True, slots=True)
class Change:
    """SET path = value, or REMOVE path without a value."""

    path: Path
    value: Node | None = None


@dataclass(frozen=True, slots=True)
class UpdateStatement:
    """UPDATE."""

    source: TableReference
    changes: tuple[Change, ...]
    where: Node | None
    returned: Returned | None


@dataclass(frozen=True, slots=True)
class DeleteStatement:
    """DELETE."""

    source: TableReference
    where: Node | None
    returned: Returned | None


Statement: TypeAlias = SelectStatement | ExistsStatement | InsertStatement | UpdateStatement | DeleteStatement


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement, and its number of question marks."""

    statement: Statement
    parameters: int


def shown(node: Node) -> str:
    """Return the name of a misplaced node in messages."""
    match node:
        case Operation(operator):
            return operator.partition(" ")[0].lower()
        case Call(name):
            return name
        case Reference():
            return "VariableReference" if len(node.path) == 1 else "PATH"
        case Missing():
            return "MISSING"
        case Constant(kind, content):
            return f'"{content}"' if kind == "S" else "null" if kind == "NULL" else str(content).lower()
        case ListOf():
            return "BAG" if node.is_bag else "LIST"
        case TupleOf():
            return "STRUCT"
        case _:
            return "PARAMETER"
