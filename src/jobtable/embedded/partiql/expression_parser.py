"""Reads what statements are made of, by this grammar: conditions, sums, values and paths.

or         = and {OR and}                  and = not {AND not}           not = NOT not | comparison
comparison = sum {(= | <> | != | < | <= | > | >=) sum | [NOT] BETWEEN sum AND sum | [NOT] IN choices | IS [NOT] type}
choices    = ( or {, or} ) | sum
sum        = operand {(+ | -) operand}
operand    = 'text' | number | true | false | null | MISSING | ? | [ ... ] | << ... >> | { ... } | path | ( or {, or} )
           | name ( [or {, or}] ) | - operand | + operand
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jobtable.embedded.expressions.paths import MAX_INDEX, Path
from jobtable.embedded.partiql import syntax
from jobtable.errors import RequestRefused

T = TypeVar("T")

_DEEPEST = 50
"""Most levels of parentheses, lists and the like; values may have fewer."""
_COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_TYPE_NAMES = {
    **{name: name for name in ("MISSING", "NULL", "BOOLEAN", "BLOB", "STRING", "NUMERIC", "STRUCT", "TUPLE", "LIST")},
    **{name: name for name in ("SMALLINT", "INT4", "INT8", "INTEGER", "FLOAT", "REAL", "DECIMAL", "TIMESTAMP")},
    **{name: name for name in ("CHARACTER", "SYMBOL", "CLOB", "SEXP", "BAG", "DATE", "TIME")},
    "BOOL": "BOOLEAN",
    "INT": "INTEGER",
    "DEC": "DECIMAL",
    "CHAR": "CHARACTER",
    "VARCHAR": "CHARACTER_VARYING",
    "CHARACTER VARYING": "CHARACTER_VARYING",
    "DOUBLE PRECISION": "DOUBLE_PRECISION",
}
"""The types of the language, with their names in messages; only some of them are DynamoDB's."""
_OTHER_OPERATORS = frozenset({"*", "/", "%", "||", "LIKE"})


class Expressions:
    """Reads conditions, sums, values and paths of a statement from the remaining tokens."""

    def __init__(self, text: str) -> None:
        self._tokens = syntax.tokens_of(text)
        self._at = 0
        self._depth = 0
        self._role = "Condition"
        self.parameters = 0

    def token(self) -> syntax.Token:
        """The next token."""
        return self._tokens[self._at]

    def kind(self) -> str:
        """The kind of the next token."""
        return self._tokens[self._at].kind

    def next_kind(self) -> str:
        """The kind of the token after the next one."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)].kind

    def take_count(self) -> bool:
        """Read COUNT(*) if it comes next."""
        is_next = [token.kind for token in self._tokens[self._at : self._at + 4]] == ["COUNT", "(", "*", ")"]
        self._at += 4 * is_next
        return is_next

    def separated(self, parse: Callable[[], T]) -> list[T]:
        """Read one or more, separated by commas."""
        found = [parse()]
        while self.take(","):
            found.append(parse())
        return found

    def _expect_right_side(self) -> None:
        if self.kind() == "end":
            raise syntax.malformed("Missing right-hand side expression of infix operator")

    def take(self, kind: str) -> bool:
        """Read the next token if it is of that kind."""
        is_next = self.kind() == kind
        self._at += is_next
        return is_next

    def expect(self, kind: str) -> str:
        """Read a token of that kind, and return its text."""
        token = self.token()
        if token.kind != kind:
            raise syntax.unexpected(token)
        self._at += 1
        return token.text

    def _deepen(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise RequestRefused(f"The statement is nested too deeply: it may have {_DEEPEST} levels at most")

    def condition(self, role: str | None = None) -> syntax.Node:
        """Read a condition, or the value of an update: its translation decides which."""
        outer, self._role = self._role, role or self._role
        node = self._junction("OR")
        self._role = outer
        return node

    def _junction(self, operator: str) -> syntax.Node:
        place = self.token().place
        operands: list[syntax.Node] = []
        while not operands or self.take(operator):
            if operands:
                self._expect_right_side()
            operands.append(self._junction("AND") if operator == "OR" else self._not())
        return operands[0] if len(operands) == 1 else syntax.Operation(operator, tuple(operands), place)

    def _not(self) -> syntax.Node:
        place = self.token().place
        if not self.take("NOT"):
            return self._comparison()
        self._deepen()
        negated = syntax.Operation("NOT", (self._not(),), place)
        self._depth -= 1
        return negated

    def _comparison(self) -> syntax.Node:
        node = self.sum()
        before = self._depth
        while True:
            place = self.token().place
            negates = self.kind() == "NOT" and self._tokens[self._at + 1].kind in ("BETWEEN", "IN", "LIKE")
            self._at += negates
            compared = self._compared(node)
            if compared is None:
                self._depth = before
                return node
            self._deepen()
            node = syntax.Operation("NOT", (compared,), place) if negates else compared

    def _compared(self, left: syntax.Node) -> syntax.Node | None:
        """Read the test that the next tokens make of what precedes them, or return None."""
        token = self.token()
        if token.kind in _OTHER_OPERATORS:
            raise RequestRefused(f"Unsupported operator in {self._role} Expression. Operator: {token.kind.lower()}")
        if token.kind == "." and self.next_kind() == "*":
            place = self._tokens[self._at + 1].place
            raise RequestRefused(f"Unpivot path component like a.*.b are not supported at {place}")
        if token.kind in _COMPARATORS:
            self._at += 1
            self._expect_right_side()
            return syntax.Operation(token.kind, (left, self.sum()), token.place)
        if self.take("BETWEEN"):
            self._expect_right_side()
            low = self.sum()
            self.expect("AND")
            return syntax.Operation("BETWEEN", (left, low, self.sum()), token.place)
        if self.take("IN"):
            self._expect_right_side()
            return syntax.Operation("IN", (left, *self._choices()), token.place)
        if self.take("IS"):
            return self._typed(left, token)
        return None

    def _choices(self) -> tuple[syntax.Node, ...]:
        if self.take("("):
            members = self._members(")")
            if not members:
                raise syntax.unexpected(self._tokens[self._at - 1])
            return members
        node = self.sum()
        if isinstance(node, syntax.ListOf) and node.members:
            return node.members
        raise RequestRefused(
            "IN operator must have a left hand argument of type Variable Reference and right hand argument of type Seq"
            " with at least one member"
        )

    def _typed(self, left: syntax.Node, token: syntax.Token) -> syntax.Node:
        negates = self.take("NOT")
        test = syntax.Operation(f"IS {self._type_name()}", (left,), token.place)
        return syntax.Operation("NOT", (test,), token.place) if negates else test

    def _type_name(self) -> str:
        words = self.token().text.upper()
        if self.next_kind() in ("PRECISION", "VARYING"):
            words, self._at = f"{words} {self.next_kind()}", self._at + 1
        name = _TYPE_NAMES.get(words)
        if name is None:
            raise syntax.malformed("Expected type name")
        self._at += 1
        return name

    def sum(self) -> syntax.Node:
        """Read operands with + and - between them, or one operand."""
        node = self._operand()
        before = self._depth
        while self.kind() in ("+", "-"):
            token = self.token()
            self._at += 1
            self._deepen()
            self._expect_right_side()
            node = syntax.Operation(token.kind, (node, self._operand()), token.place)
        self._depth = before
        return node

    def _operand(self) -> syntax.Node:
        token = self.token()
        if token.kind in ("name", "@") and self._tokens[self._at + 1].kind != "(":
            return syntax.Reference(self.path(), token.place)
        self._deepen()
        node = self._inner(token)
        self._depth -= 1
        return node

    def _inner(self, token: syntax.Token) -> syntax.Node:
        self._at += 1
        match token.kind:
            case "string" | "number":
                return syntax.Constant("S" if token.kind == "string" else "N", token.text, token.place)
            case "TRUE" | "FALSE" | "NULL":
                return syntax.Constant("NULL" if token.kind == "NULL" else "BOOL", token.kind != "FALSE", token.place)
            case "MISSING":
                return syntax.Missing(token.place)
            case "?":
                self.parameters += 1
                return syntax.Parameter(self.parameters - 1, token.place)
            case "[" | "<<" | "{" | "(":
                return self._collection(token)
            case "-" | "+":
                return self._signed(token)
            case "ion":
                raise RequestRefused(f"Ion Literals are not supported at {token.place}")
            case "CASE" if self.kind() == "WHEN":
                raise RequestRefused(f"Unsupported token in expression: CASE at {token.place}")
            case "SELECT":
                raise RequestRefused(f"Unsupported token in expression: SELECT at {token.place}")
            case _:
                return self._call(token)

    def _collection(self, token: syntax.Token) -> syntax.Node:
        if token.kind == "[":
            return syntax.ListOf(self._members("]"), token.place)
        if token.kind == "<<":
            return syntax.ListOf(self._members(">>"), token.place, is_bag=True)
        return self._tuple(token) if token.kind == "{" else self._parenthesised(token)

    def _members(self, closing: str) -> tuple[syntax.Node, ...]:
        if self.take(closing):
            return ()
        members = self.separated(self.condition)
        self.expect(closing)
        return tuple(members)

    def _tuple(self, token: syntax.Token) -> syntax.TupleOf:
        if self.take("}"):
            return syntax.TupleOf((), token.place)
        members = self.separated(self._named_member)
        self.expect("}")
        return syntax.TupleOf(tuple(members), token.place)

    def _named_member(self) -> tuple[syntax.Node, syntax.Node]:
        name = self._operand()
        self.expect(":")
        return name, self.condition()

    def _parenthesised(self, token: syntax.Token) -> syntax.Node:
        members = self._members(")")
        if not members:
            raise syntax.unexpected(self._tokens[self._at - 1])
        return members[0] if len(members) == 1 else syntax.ListOf(members, token.place)

    def _signed(self, token: syntax.Token) -> syntax.Node:
        node = self._operand()
        if isinstance(node, syntax.Constant) and node.kind == "N":
            number = str(node.content)
            if token.kind == "-":
                number = number[1:] if number.startswith("-") else f"-{number}"
            return syntax.Constant("N", number, node.place)
        return syntax.Operation(token.kind, (node,), token.place)

    def _call(self, token: syntax.Token) -> syntax.Call:
        """Read a function. Some names are keywords (size, exists): a parenthesis after a word makes it a call."""
        is_word = token.kind == "name" or token.text.upper() == token.kind
        if not is_word or token.kind in syntax.OPERATORS or not self.take("("):
            raise syntax.no_operand(token)
        return syntax.Call(token.text.lower(), self._members(")"), token.place)

    def path(self) -> Path:
        """Read a path of names and indexes."""
        self.take("@")
        parts: list[str | int] = [self._filled(self.expect("name"))]
        while True:
            if self.kind() == "." and self.next_kind() != "*":
                self._at += 1
                parts.append(self.dotted_name())
            elif self.take("["):
                parts.append(self._step())
                self.expect("]")
            else:
                return tuple(parts)

    def dotted_name(self) -> str:
        """Read the name after a dot."""
        if self.kind() != "name":
            raise syntax.malformed("Invalid path dot component")
        return self._filled(self.expect("name"))

    def _filled(self, name: str) -> str:
        if not name:
            raise RequestRefused("Path component cannot be an empty string")
        return name

    def _step(self) -> str | int:
        is_negative = self.take("-")
        step = self.token()
        self._at += 1
        if step.kind in ("string", "name") and step.text and not is_negative:
            return step.text
        if step.kind == "*" and not is_negative:
            raise RequestRefused(f"Wildcard path component like a[*].b are not supported at {step.place}")
        if step.kind != "number" or not step.text.isdigit():
            raise RequestRefused(f"Unexpected path component at {step.place}")
        index = -int(step.text) if is_negative else int(step.text)
        if not 0 <= index <= MAX_INDEX:
            raise RequestRefused(f"List index is not within the allowable range; index: [{index}] at {step.place}")
        return index
