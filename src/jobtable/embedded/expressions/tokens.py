"""An expression's text as tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobtable.errors import RequestRefused

KEYWORDS = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"})
MAX_EXPRESSION_BYTES = 4096

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<name>[A-Za-z][A-Za-z0-9_]*)
    | (?P<placeholder>\#[A-Za-z0-9_]+)
    | (?P<value>:[A-Za-z0-9_]+)
    | (?P<index>0|[1-9][0-9]*)
    | (?P<symbol><>|<=|>=|[<>=()\[\].,+-])
    | (?P<unknown>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_BLANKS = " \t\r\n"


class Token(NamedTuple):
    """`kind` is name, placeholder, value, index, unknown or end, or the upper-case keyword or the symbol itself."""

    kind: str
    text: str
    start: int
    end: int


class InvalidExpression(Exception):
    """What is wrong with an expression; becomes "Invalid <parameter>: <reason>"."""

    def refused(self, parameter: str) -> RequestRefused:
        """The error for the request, whose parameter ("FilterExpression", ...) holds the expression."""
        return RequestRefused(f"Invalid {parameter}: {self}")


def tokens_of(text: str, *, is_condition: bool) -> list[Token]:
    """The tokens of an expression, with one of kind "end" behind them; InvalidExpression if it is empty or too long."""
    if not text:
        raise InvalidExpression("The expression can not be empty;")
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_EXPRESSION_BYTES:
        # DynamoDB names the size only for conditions.
        size_shown = f" expression size: {size}" if is_condition else ""
        raise InvalidExpression(f"Expression size has exceeded the maximum allowed size;{size_shown}")
    tokens = []
    for match in _TOKEN.finditer(text.rstrip(_BLANKS)):
        kind = match.lastgroup or "unknown"
        word = match[kind]
        if kind == "symbol":
            kind = word
        elif kind == "name" and word.upper() in KEYWORDS:
            kind = word.upper()
        tokens.append(Token(kind, word, match.start(match.lastgroup or 0), match.end()))
    tokens.append(Token("end", "<EOF>", len(text), len(text)))
    return tokens


def syntax_error(text: str, tokens: list[Token], at: int) -> InvalidExpression:
    """The error for a token that cannot stand where it stands; shows it with its neighbours."""
    token = tokens[at]
    start = tokens[at - 1].start if at > 0 else 0
    end = tokens[at + 1].end if at + 1 < len(tokens) else len(text)
    return InvalidExpression(f'Syntax error; token: "{token.text}", near: "{text[start:end]}"')
