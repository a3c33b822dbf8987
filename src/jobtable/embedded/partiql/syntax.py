"""The tree of a statement. It is immutable, and one tree serves every request with the same text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from jobtable.embedded.expressions.paths import Path
from jobtable.embedded.partiql.tokens import Place

Returned: TypeAlias = Literal["ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"]
"""What RETURNING asks for, under the names that ReturnValues has for it."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A text, number, flag or null."""

    kind: Literal["S", "N", "BOOL", "NULL"]
    content: str | bool
    place: Place


@dataclass(frozen=True, slots=True)
class Missing:
    """MISSING, which only IS can ask for."""

    place: Place


@dataclass(frozen=True, slots=True)
class Parameter:
    """The question mark with this number, from 0."""

    number: int
    place: Place


@dataclass(frozen=True, slots=True)
class Reference:
    """What stands at a path of the item."""

    path: Path
    place: Place


@dataclass(frozen=True, slots=True)
class ListOf:
    """[a, b] or (a, b)."""

    members: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class BagOf:
    """<<a, b>>, which is a set."""

    members: tuple[Node, ...]
    place: Place


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
    """An operator with its operands: AND and OR have two or more of them, NOT has one, the others as they are written.

    IN has what is looked for and then the choices. "IS STRING" and the like have one operand.
    """

    operator: str
    operands: tuple[Node, ...]
    place: Place


Node: TypeAlias = Constant | Missing | Parameter | Reference | ListOf | BagOf | TupleOf | Call | Operation


@dataclass(frozen=True, slots=True)
class Source:
    """The table, and perhaps an index, by their names."""

    table: str
    index: str | None = None


@dataclass(frozen=True, slots=True)
class OrderKey:
    """What ORDER BY names, and in which direction."""

    node: Node
    is_descending: bool


@dataclass(frozen=True, slots=True)
class Select:
    """SELECT; no paths mean all attributes."""

    paths: tuple[Path, ...]
    source: Source
    where: Node | None
    order: tuple[OrderKey, ...]
    fault: str | None
    """What is wrong with what is wanted, which is told once the table is known."""


@dataclass(frozen=True, slots=True)
class Exists:
    """EXISTS(SELECT ...), which a transaction of writes can check."""

    select: Select


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO ... VALUE {...}."""

    source: Source
    item: Node


@dataclass(frozen=True, slots=True)
class Assignment:
    """SET path = value."""

    path: Path
    value: Node


@dataclass(frozen=True, slots=True)
class Removal:
    """REMOVE path."""

    path: Path


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE."""

    source: Source
    changes: tuple[Assignment | Removal, ...]
    where: Node | None
    returned: Returned | None


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE."""

    source: Source
    where: Node | None
    returned: Returned | None


Statement: TypeAlias = Select | Exists | Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement, and how many question marks it has."""

    statement: Statement
    parameters: int


def shown(node: Node) -> str:
    """What messages call a node that cannot stand where it stands."""
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
            return "LIST"
        case BagOf():
            return "BAG"
        case TupleOf():
            return "STRUCT"
        case _:
            return "PARAMETER"
