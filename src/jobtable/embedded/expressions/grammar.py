"""The tokens and the grammar of expressions: from text to an immutable tree, once per text.

condition  = and {OR and}                    update = section {section}
and        = not {AND not}                   section = SET assignment {, assignment} | REMOVE path {, path}
not        = NOT not | test                          | (ADD | DELETE) path :value {, path :value}
test       = operand comparator operand      assignment = path = sum
           | operand BETWEEN operand AND operand
           | operand IN (operand {, operand})   sum = operand [(+ | -) operand] | ( sum )
           | function | ( condition )        projection = path {, path}
operand    = path | :value | function | ( operand )
function   = name ( operand {, operand} )
path       = (name | #name) {. (name | #name) | [index]}
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from jobtable.embedded.expressions.paths import InvalidExpression, Path

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


def tokens_of(text: str, *, is_condition: bool) -> list[Token]:
    """Return the tokens of an expression, ended by one of kind "end", or raise InvalidExpression."""
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


def _syntax_error(text: str, tokens: list[Token], at: int) -> InvalidExpression:
    """Return the error for an unexpected token, shown with its neighbours."""
    token = tokens[at]
    start = tokens[at - 1].start if at > 0 else 0
    end = tokens[at + 1].end if at + 1 < len(tokens) else len(text)
    return InvalidExpression(f'Syntax error; token: "{token.text}", near: "{text[start:end]}"')


COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})
Section = Literal["SET", "REMOVE", "ADD", "DELETE"]

_SECTIONS: tuple[Section, ...] = ("SET", "REMOVE", "ADD", "DELETE")
_PRECEDENCE = {"OR": 1, "AND": 2, "NOT": 3}
_OPERAND_KINDS = frozenset({"name", "placeholder", "value", "index", ".", "[", "]", "("})
_Node = TypeVar("_Node")


@dataclass(frozen=True, slots=True)
class PathOperand:
    """The value at a path of the item."""

    path: Path


@dataclass(frozen=True, slots=True)
class ValueOperand:
    """A value of the request, by its :name."""

    name: str


@dataclass(frozen=True, slots=True)
class Function:
    """A call; whether the function exists and is allowed there is checked after parsing."""

    name: str
    arguments: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Test:
    """A comparator, BETWEEN or IN with its operands."""

    operator: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Junction:
    """AND or OR over two conditions, or NOT over one."""

    operator: Literal["AND", "OR", "NOT"]
    conditions: tuple[ConditionNode, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """Two operands with + or - between them. Only PartiQL has sums of sums."""

    operator: str
    operands: tuple[Operand | Sum, Operand | Sum]


@dataclass(frozen=True, slots=True)
class Action:
    """One change of an update; only REMOVE has no value."""

    section: Section
    path: Path
    value: Operand | Sum | None


Operand: TypeAlias = PathOperand | ValueOperand | Function
ConditionNode: TypeAlias = Test | Junction | Function


@dataclass(frozen=True, slots=True)
class UpdateNode:
    """The actions in the order of the text, and a section that occurs twice."""

    actions: tuple[Action, ...]
    repeated: Section | None


class Parser:
    """Reads one condition, update or projection; InvalidExpression if the text is none."""

    def __init__(self, text: str, *, is_condition: bool = False) -> None:
        self._text = text
        self._tokens = tokens_of(text, is_condition=is_condition)
        self._at = 0
        self._deferring = 0
        self._redundant = False
        self._closed: dict[int, int] = {}
        self._operand_start = self._operand_end = self._closing = 0

    def finished(self, node: _Node) -> _Node:
        """Return the node once the text is used up."""
        self._expect("end")
        return node

    def condition(self) -> ConditionNode:
        """Parse a condition by operator precedence on explicit stacks: nesting does not use up Python's."""
        done: list[ConditionNode] = []
        waiting: list[tuple[str, int]] = []
        while True:
            kind = self._kind()
            if kind == "NOT" or (kind == "(" and not self._opens_operand()):
                waiting.append((kind, self._at))
                self._at += 1
                continue
            done.append(self._test())
            while self._kind() == ")" and any(operator == "(" for operator, _ in waiting):
                self._reduce(done, waiting, 0)
                self._close(waiting.pop()[1])
            kind = self._kind()
            if kind not in ("AND", "OR"):
                break
            self._reduce(done, waiting, _PRECEDENCE[kind])
            waiting.append((kind, self._at))
            self._at += 1
        self._reduce(done, waiting, 0)
        if waiting:
            raise self._error()
        return done[0]

    def _reduce(self, done: list[ConditionNode], waiting: list[tuple[str, int]], precedence: int) -> None:
        """Build the junctions that bind at least as strongly, back to the last open parenthesis."""
        while waiting and waiting[-1][0] != "(" and _PRECEDENCE[waiting[-1][0]] >= precedence:
            operator = waiting.pop()[0]
            last = done.pop()
            if operator == "NOT":
                done.append(Junction("NOT", (last,)))
            else:
                done.append(Junction("AND" if operator == "AND" else "OR", (done.pop(), last)))

    def _close(self, opened: int) -> None:
        """Read the parenthesis that closes the one at `opened`. Two around the same thing are one too many."""
        self._redundant |= self._closed.get(opened + 1) == self._at - 1
        self._closed[opened] = self._at
        self._expect(")")
        self._refuse_redundant()

    def _refuse_redundant(self) -> None:
        # DynamoDB reports them before later faults, but those inside of a call, or around a compared operand, only
        # after reading that.
        if self._redundant and not self._deferring:
            raise InvalidExpression("The expression has redundant parentheses;")

    def _opens_operand(self) -> bool:
        """Whether the parenthesis here holds an operand, not a condition: the token after its operand decides."""
        if self._at >= self._operand_start:
            self._look_past_operand()
        start = self._operand_start
        opened = start - self._at
        if opened > self._closing:
            return False
        is_call = self._tokens[start].kind == "name" and self._tokens[start + 1].kind == "("
        following = self._tokens[self._operand_end + opened].kind
        return not is_call or following in COMPARATORS or following in ("BETWEEN", "IN")

    def _look_past_operand(self) -> None:
        """Find the start and end of the operand in these parentheses, once for all nested ones."""
        at = self._at
        while self._tokens[at].kind == "(":
            at += 1
        self._operand_start = at
        depth = 0
        while self._tokens[at].kind in _OPERAND_KINDS or (depth and self._tokens[at].kind != "end"):
            depth += (self._tokens[at].kind == "(") - (self._tokens[at].kind == ")")
            at += 1
        self._operand_end = at
        while self._tokens[at].kind == ")":
            at += 1
        self._closing = at - self._operand_end

    def _test(self) -> ConditionNode:
        first = self._compared()
        kind = self._kind()
        operands = [first]
        if kind in COMPARATORS:
            self._at += 1
            operands.append(self.operand())
        elif self._take("BETWEEN"):
            operands.append(self.operand())
            self._expect("AND")
            operands.append(self.operand())
        elif self._take("IN"):
            self._expect("(")
            operands += self.separated(self.operand)
            self._expect(")")
        elif isinstance(first, Function):
            return first
        else:
            raise self._error()
        return Test(kind, tuple(operands))

    def _compared(self) -> Operand:
        """Parse the first operand of a test. A missing comparison is reported before redundant parentheses."""
        self._deferring += 1
        operand = self.operand()
        self._deferring -= 1
        if isinstance(operand, Function) or self._kind() in (*COMPARATORS, "BETWEEN", "IN"):
            self._refuse_redundant()
        return operand

    def operand(self) -> Operand:
        """Parse a path, value or function, perhaps in parentheses, on an explicit stack."""
        waiting: list[tuple[str, int, list[Operand]]] = []
        while True:
            opened = self._opened()
            if opened is not None:
                waiting.append((opened, self._at - 1, []))
                continue
            found: Operand = (
                ValueOperand(self._expect("value")) if self._kind() == "value" else PathOperand(self.path())
            )
            while waiting and not (waiting[-1][0] and self._kind() == ","):
                name, at, arguments = waiting.pop()
                if name:
                    self._expect(")")
                    self._deferring -= 1
                    self._refuse_redundant()
                    found = Function(name, (*arguments, found))
                else:
                    self._close(at)
            if not waiting:
                return found
            waiting[-1][2].append(found)
            self._expect(",")

    def _opened(self) -> str | None:
        """Read a parenthesis and return the name of its function, "" without one; None if there is no parenthesis."""
        if self._take("("):
            return ""
        if self._kind() == "name" and self._tokens[self._at + 1].kind == "(":
            name = self._expect("name")
            self._at += 1
            self._deferring += 1
            return name
        return None

    def path(self) -> Path:
        """Parse a document path; whether its names and indexes are allowed is checked after parsing."""
        parts: list[str | int] = [self._name()]
        while True:
            if self._take("."):
                parts.append(self._name())
            elif self._take("["):
                parts.append(int(self._expect("index")))
                self._expect("]")
            else:
                return tuple(parts)

    def _name(self) -> str:
        return self._expect("placeholder" if self._kind() == "placeholder" else "name")

    def update(self) -> UpdateNode:
        actions: list[Action] = []
        sections: list[Section] = []
        while not sections or self._kind() != "end":
            section: Section | None = next((each for each in _SECTIONS if self._take(each)), None)
            if section is None:
                raise self._error()
            sections.append(section)
            actions += self.separated(partial(self._action, section))
        repeated: list[Section] = [section for at, section in enumerate(sections) if sections.index(section) < at]
        return UpdateNode(tuple(actions), repeated[0] if repeated else None)

    def _action(self, section: Section) -> Action:
        path = self.path()
        if section == "REMOVE":
            return Action(section, path, None)
        if section == "SET":
            self._expect("=")
            return Action(section, path, self._sum())
        return Action(section, path, ValueOperand(self._expect("value")))

    def _sum(self) -> Operand | Sum:
        opened: list[int] = []
        while self._take("("):
            opened.append(self._at - 1)
        found: Operand | Sum = self.operand()
        while True:
            while opened and self._kind() == ")":
                self._close(opened.pop())
            sign = self._kind()
            if isinstance(found, Sum) or sign not in ("+", "-"):
                break
            self._at += 1
            found = Sum(sign, (found, self.operand()))
        if opened:
            raise self._error()
        return found

    def separated(self, parse: Callable[[], _Node]) -> list[_Node]:
        """Parse one or more, separated by commas."""
        found = [parse()]
        while self._take(","):
            found.append(parse())
        return found

    def _kind(self) -> str:
        return self._tokens[self._at].kind

    def _take(self, kind: str) -> bool:
        taken = self._tokens[self._at].kind == kind
        self._at += taken
        return taken

    def _expect(self, kind: str) -> str:
        token = self._tokens[self._at]
        if token.kind != kind:
            raise self._error()
        self._at += 1
        return token.text

    def _error(self) -> InvalidExpression:
        return _syntax_error(self._text, self._tokens, self._at)
