"""The names and values of one statement, as placeholders of expressions: none of its text goes any further.

Every name of a path becomes a #placeholder and every value a :placeholder, as if a request had sent them so.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobtable.embedded.decimals import canonical_number
from jobtable.embedded.expressions.grammar import PathOperand, ValueOperand
from jobtable.embedded.expressions.paths import Path
from jobtable.embedded.partiql.syntax import Constant, ListOf, Node, Parameter, Parsed, TupleOf, shown
from jobtable.embedded.values import (
    BECOMES_TOO_DEEP,
    MAX_CONTAINER_DEPTH,
    container_depth,
    measure_value,
    validate_value,
)
from jobtable.embedded.wordings import ValueRefused, invalid
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Item, Request

_NOT_IN_BAGS = "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags"

_NEGATIVE_ZERO = "Negative zero decimal is not supported"


def parameters_of(request: Request) -> list[AttributeValue]:
    """Return the valid parameters of a statement, which are checked before its text, or raise RequestRefused."""
    return [validate_value(one, may_be_deeper=True) for one in request.get("Parameters") or ()]


class Terms:
    """The names and values that the conditions and changes of one statement use."""

    def __init__(self, parsed: Parsed, parameters: Sequence[AttributeValue]) -> None:
        """Raise RequestRefused if there are fewer parameters than question marks."""
        self._parameters = parameters
        if len(parameters) < parsed.parameters:
            raise RequestRefused("Number of parameters in request and statement don't match.")
        self.names: dict[str, str] = {}
        self.values: dict[str, AttributeValue] = {}
        self._placeholders: dict[str, str] = {}
        self.values_size = 0

    def path(self, path: Path) -> Path:
        """Return a path with placeholders for its names."""
        return tuple(self._name(part) if isinstance(part, str) else part for part in path)

    def _name(self, name: str) -> str:
        placeholder = self._placeholders.get(name)
        if placeholder is None:
            placeholder = self._placeholders[name] = f"#{len(self.names)}"
            self.names[placeholder] = name
        return placeholder

    def reference(self, path: Path) -> PathOperand:
        return PathOperand(self.path(path))

    def operand(self, node: Node) -> ValueOperand:
        """Return a value as an operand, or raise RequestRefused if the node is not a value."""
        value, size = measure_value(self.value(node), may_be_deeper=True)
        self.values_size += size
        name = f":{len(self.values)}"
        self.values[name] = value
        return ValueOperand(name)

    def item(self, node: Node) -> Item:
        """Return the item that an INSERT writes, not yet validated."""
        if not isinstance(node, TupleOf):
            raise RequestRefused(
                "Unsupported format in item expression. Please use struct format {...} to express item values for"
                f" insert statement. at {node.place}"
            )
        return {name: self.value(value) for name, value in _named(node, "root", is_item=True).items()}

    def value(self, node: Node) -> AttributeValue:
        """Return the value of a node: a parameter, or a literal."""
        if isinstance(node, Parameter):
            return self._parameters[node.number]
        value = _written(node, "root")
        # An empty list or map that is too deep: it has no content to report.
        if container_depth(value) > MAX_CONTAINER_DEPTH:
            raise RequestRefused(BECOMES_TOO_DEEP)
        return value


def _written(node: Node, key: str, level: int = 0) -> AttributeValue:
    if level > MAX_CONTAINER_DEPTH:
        raise RequestRefused(f"{BECOMES_TOO_DEEP} under {key}")
    match node:
        case Constant("N", content) if _is_negative_zero(str(content)):
            raise RequestRefused(f"{_NEGATIVE_ZERO} under key {key} at {node.place}")
        case Constant(kind, content):
            return {kind: _number(str(content), key) if kind == "N" else content}
        case ListOf(members, is_bag=True):
            return _set(members, key)
        case ListOf(members):
            return {"L": [_written(member, f"{key}[{number}]", level + 1) for number, member in enumerate(members)]}
        case TupleOf():
            named = _named(node, key).items()
            return {"M": {name: _written(value, f"{key}.{name}", level + 1) for name, value in named}}
        case _:
            said = "Parameter" if isinstance(node, Parameter) else shown(node)
            raise RequestRefused(f"Unsupported data type: {said} under key {key} at {node.place}")


def _number(text: str, key: str) -> str:
    try:
        return canonical_number(text)
    except RequestRefused as fault:
        said = fault.older if isinstance(fault, ValueRefused) else fault.message
        raise RequestRefused(f"{said} under {key}") from fault


def _is_negative_zero(number: str) -> bool:
    """Whether a number is a zero with a sign; whole numbers lose it."""
    return number.startswith("-") and not number[1:].isdigit() and canonical_number(number) == "0"


def _named(node: TupleOf, key: str, *, is_item: bool = False) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for name, value in node.members:
        if not isinstance(name, Constant) or name.kind != "S":
            raise RequestRefused(
                f"Tuple keys must be of type String. Actual type: {_type(name)} under {key} at {name.place}"
            )
        text = str(name.content)
        if not text:
            raise RequestRefused("Path component cannot be an empty string")
        if text in found:
            # The fault of an item is placed at the name, that of a value inside of it at the whole value.
            place = name.place if is_item else node.place
            raise RequestRefused(f"Duplicate keys in tuple. Key: {text} under {key} at {place}")
        found[text] = value
    return found


def _type(node: Node) -> str:
    match node:
        case Constant("N", content):
            return "INT" if str(content).lstrip("-").isdigit() else "DECIMAL"
        case Constant(kind):
            return kind
        case ListOf():
            return "Seq"
        case TupleOf():
            return "Struct"
        case Parameter():
            return "Parameter"
        case _:
            return shown(node)


def _set(members: Sequence[Node], key: str) -> AttributeValue:
    if not members:
        raise RequestRefused("Empty bags are not supported")
    contents: list[str] = []
    kinds: set[str] = set()
    for member in members:
        if not isinstance(member, Constant) or member.kind not in ("S", "N"):
            raise RequestRefused(f"{_NOT_IN_BAGS} at {member.place}")
        if member.kind == "N" and _is_negative_zero(str(member.content)):
            raise RequestRefused(f"{_NEGATIVE_ZERO} under key {key} at {member.place}")
        kinds.add(member.kind)
        contents.append(str(member.content) if member.kind == "S" else _number(str(member.content), key))
    if len(kinds) > 1:
        raise RequestRefused(_NOT_IN_BAGS)
    kind = kinds.pop()
    if kind == "N" and len(set(contents)) < len(contents):
        written = ", ".join(str(member.content) for member in members if isinstance(member, Constant))
        raise invalid(f"Input collection [{written}] contains duplicates! under {key}")
    return {f"{kind}S": contents}
