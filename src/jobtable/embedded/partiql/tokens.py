"""A statement's text as tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobtable.errors import RequestRefused

KEYWORDS = frozenset(
    """
    absolute action add all allocate alter and any are as asc assertion at authorization avg bag begin between bit
    bit_length blob bool boolean by cascade cascaded case cast catalog char char_length character character_length
    check clob close coalesce collate collation column commit conflict connect connection constraint constraints
    continue convert corresponding count create cross current current_user cursor date date_add date_diff
    deallocate dec decimal declare default deferrable deferred delete desc describe descriptor diagnostics
    disconnect distinct do domain double drop else end escape except exception exec execute exists external
    extract false fetch first float for foreign found from full get global go goto grant group having identity
    immediate in index indicator initially inner input insensitive insert int integer intersect interval into is
    isolation join key language last left let level like limit list local lower match max min missing modified
    module names national natural nchar new next no not nothing null nullif numeric octet_length of old on only
    open option or order outer output overlaps pad partial pivot position precision prepare preserve primary prior
    privileges procedure public read real references relative remove restrict returning revoke right rollback rows
    schema scroll section select session session_user set sexp size smallint some space sql sqlcode sqlerror
    sqlstate string struct substring sum symbol system_user table temporary then time timestamp to transaction
    translate translation trim true tuple union unique unknown unpivot update upper usage user using value values
    varchar varying view when whenever where with work write zone
    """.upper().split()
)
"""Words that are no names unless they are quoted."""

OPERATORS = frozenset(
    {"AND", "OR", "NOT", "IS", "IN", "LIKE", "BETWEEN", "UNION", "EXCEPT", "INTERSECT"}
    | {"=", "<>", "<", "<=", ">", ">=", "/", "%", "||"}
)
"""What stands between operands, or before one."""
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
    """Where something stands in a statement, and how long it is."""

    line: int
    column: int
    length: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}:{self.length}"


class Token(NamedTuple):
    """`kind` is name, number, string, ion or end, or the upper-case keyword or the symbol itself."""

    kind: str
    text: str
    """A name or string without its quotes, else the text as it is."""
    place: Place


def tokens_of(text: str) -> list[Token]:
    """The tokens of a statement, with one of kind "end" behind them; RequestRefused if some of the text is none."""
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
    """The error for a text that is no statement."""
    return RequestRefused(f"Statement wasn't well formed, can't be processed: {reason}")


def unexpected(token: Token) -> RequestRefused:
    """The error for a token where another one has to stand."""
    if token.kind == "end":
        return malformed("Unexpected end of the statement")
    if token.kind == token.text.upper() and token.kind in KEYWORDS:
        return malformed(f"Unexpected keyword {token.text} at {token.place}")
    return malformed(f"Unexpected token {token.text!r} at {token.place}")


def no_operand(token: Token) -> RequestRefused:
    """The error for a token that no operand begins with."""
    if token.kind in OPERATORS:
        return malformed("Unexpected operator")
    return malformed("Unexpected keyword" if token.kind in KEYWORDS else "Unexpected term")
