"""Random expressions, with the names and values that they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.embedded.differential.tables import Index, Table
from tests.embedded.differential.vocabulary import Value, a_set, key_value, scalar, sloppy_value, usual_value, value

_NAMES = ("a", "b", "c", "d", "g1", "g2", "sk", "a", "b", "c", "d", "pk", "e", "g3")
_KEY_NAMES = ("pk", "sk", "g1", "g2", "g3")
_UPDATED_NAMES = ("a", "b", "c", "d", "e", "g1", "g2", "g3")
_RESERVED = ("name", "status", "Size", "order", "data")
_COMPARATORS = ("=", "<>", "<", "<=", ">", ">=")
_TYPES = ("S", "N", "B", "SS", "NS", "BS", "BOOL", "NULL", "L", "M", "X")


class ExpressionWriter:
    """Writes expressions of one request, and collects the placeholders that they use."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.names: dict[str, str] = {}
        self.values: dict[str, Value] = {}
        self._key_types: dict[str, str] = {}
        self._updated: set[str] = set()

    def into(self, request: dict[str, Any]) -> None:
        """Put the collected placeholders into the request; rarely one too many, or one too few."""
        for member, placeholders, extra in (
            ("ExpressionAttributeNames", self.names, ("#extra", "a")),
            ("ExpressionAttributeValues", self.values, (":extra", {"S": "a"})),
        ):
            chosen: dict[str, Any] = dict(placeholders)
            chance = self.rng.random()
            if chance < 0.01:
                chosen[extra[0]] = extra[1]
            elif chance < 0.02 and chosen:
                del chosen[self.rng.choice(sorted(chosen))]
            if chosen:
                request[member] = chosen

    def name(self, name: str) -> str:
        """A name as it is, or behind a placeholder."""
        if self.rng.random() < 0.6:
            return name
        placeholder = f"#{self.rng.choice(('n', 'm', '1', 'n_2'))}"
        if self.names.setdefault(placeholder, name) != name:
            placeholder = f"#x{len(self.names)}"
            self.names[placeholder] = name
        return placeholder

    def literal(self, content: Value) -> str:
        """The placeholder of a value; an equal value may share one."""
        for placeholder, known in self.values.items():
            if known == content and self.rng.random() < 0.5:
                return placeholder
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = content
        return placeholder

    def path(self) -> str:
        """A document path."""
        rng = self.rng
        if rng.random() < 0.01:
            return rng.choice(_RESERVED)
        root = rng.choice(_NAMES)
        return self.name(root) + self._below(root)

    def _below(self, root: str) -> str:
        """The rest of a path; key attributes are scalars, and have none, with rare exceptions."""
        rng = self.rng
        if root in _KEY_NAMES and rng.random() < 0.97:
            return ""
        rest = ""
        last = root
        for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2))):
            is_element = rng.random() < {"a": 0.1, "b": 0.9}.get(last, 0.5)
            last = "" if is_element else rng.choice("abc")
            rest += f"[{rng.choice((0, 0, 1, 2, 3))}]" if is_element else f".{self.name(last)}"
        return rest

    def operand(self) -> str:
        """A path, a value or a size."""
        rng = self.rng
        chance = rng.random()
        if chance < 0.4:
            return self.path()
        if chance < 0.5:
            return f"size({self.path()})"
        return self.literal(sloppy_value(rng))

    def condition(self, depth: int = 2) -> str:
        """A condition or filter."""
        rng = self.rng
        if depth and rng.random() < 0.35:
            form = rng.choice(("{} AND {}", "{} OR {}", "NOT {}", "({})", "{} and ({})", "NOT ({} or {})"))
            return form.format(*(self.condition(depth - 1) for _ in range(form.count("{}"))))
        writers: tuple[Callable[[], str], ...] = (
            lambda: f"{self.operand()} {rng.choice(_COMPARATORS)} {self.operand()}",
            lambda: f"{self.path()} {rng.choice(_COMPARATORS)} {self.literal(value(rng))}",
            lambda: f"size({self.path()}) {rng.choice(_COMPARATORS)} {self.literal(scalar(rng, 'N'))}",
            self._between,
            lambda: f"{self.operand()} IN ({', '.join(self.operand() for _ in range(rng.randint(1, 3)))})",
            lambda: f"attribute_exists({self.path()})",
            lambda: f"attribute_not_exists({self.path()})",
            lambda: f"attribute_type({self.path()}, {self.literal({'S': rng.choice(_TYPES)})})",
            lambda: f"begins_with({self.path()}, {self.literal(scalar(rng, rng.choice('SSSSBBN')))})",
            lambda: f"contains({self.path()}, {self.operand()})",
        )
        return rng.choice(writers)()

    def _between(self) -> str:
        if self.rng.random() < 0.5:
            return f"{self.operand()} BETWEEN {self.operand()} AND {self.operand()}"
        kind = self.rng.choice("NSB")
        low, high = (self.literal(scalar(self.rng, kind)) for _ in range(2))
        return f"{self.path()} BETWEEN {low} AND {high}"

    def projection(self) -> str:
        """A projection."""
        return ", ".join(self.path() for _ in range(self.rng.choice((1, 1, 2, 3))))

    def key_condition(self, table: Table, index: Index | None) -> str:
        """A key condition for a table or an index."""
        rng = self.rng
        partition: Sequence[tuple[str, str]] = (table.partition,) if index is None else index.partition
        sort: Sequence[tuple[str, str]] = table.key_parts[1:] if index is None else index.sort
        parts = [f"{self.name(name)} = {self.literal(key_value(rng, kind))}" for name, kind in partition]
        used = sort[: rng.randint(0, len(sort))]
        for name, kind in used[:-1]:
            parts.append(f"{self.name(name)} = {self.literal(key_value(rng, kind))}")
        for name, kind in used[-1:]:
            parts.append(self._sort_condition(name, kind))
        if rng.random() < 0.03:
            parts.append(self.condition(0))
        if rng.random() < 0.1:
            rng.shuffle(parts)
        if rng.random() < 0.1:
            parts = [f"({part})" for part in parts]
        return " AND ".join(parts)

    def _sort_condition(self, name: str, kind: str) -> str:
        rng = self.rng

        def operand() -> str:
            return self.literal(key_value(rng, kind))

        form = rng.choice(("compare", "compare", "between", "begins"))
        if form == "between":
            return f"{self.name(name)} BETWEEN {operand()} AND {operand()}"
        if form == "begins" and (kind != "N" or rng.random() < 0.1):
            return f"begins_with({self.name(name)}, {operand()})"
        return f"{self.name(name)} {rng.choice(('=', '<', '<=', '>', '>=', '=', '<>'))} {operand()}"

    def update(self, table: Table) -> str:
        """An update expression of one to three clauses."""
        rng = self.rng
        clauses = {"SET": self._set, "REMOVE": self._update_path, "ADD": self._add, "DELETE": self._delete}
        words = rng.sample(("SET", "SET", "REMOVE", "ADD", "DELETE"), rng.choice((1, 1, 1, 2, 2, 3)))
        if rng.random() < 0.9:
            words = list(dict.fromkeys(words))
        self._key_types = table.key_types
        self._updated.clear()
        written = (f"{word} {', '.join(clauses[word]() for _ in range(rng.choice((1, 1, 2))))}" for word in words)
        return " ".join(written)

    def _update_path(self) -> str:
        rng = self.rng
        if rng.random() < 0.03:
            return self.path()
        unused = [name for name in _UPDATED_NAMES if name not in self._updated] or list(_UPDATED_NAMES)
        root = rng.choice(unused if rng.random() < 0.93 else list(_UPDATED_NAMES))
        self._updated.add(root)
        return self.name(root) + self._below(root)

    def _set(self) -> str:
        rng = self.rng
        index_keys = [name for name in ("g1", "g2", "g3") if name in self._key_types]
        if index_keys and rng.random() < 0.2:
            name = rng.choice(index_keys)
            self._updated.add(name)
            return f"{self.name(name)} = {self.literal(key_value(rng, self._key_types[name]))}"
        return f"{self._update_path()} = {self._set_value()}"

    def _set_value(self) -> str:
        rng = self.rng
        form = rng.choice(("value", "value", "path", "arithmetic", "append", "if_not_exists"))
        if form == "value":
            return self.literal(usual_value(rng, rng.choice("abcd")))
        if form == "path":
            return self.path()
        if form == "arithmetic":
            return f"{self._set_operand('N')} {rng.choice('+-')} {self._set_operand('N')}"
        if form == "append":
            return f"list_append({self._set_operand('L')}, {self._set_operand('L')})"
        return f"if_not_exists({self.path()}, {self._set_operand('S')})"

    def _set_operand(self, kind: str) -> str:
        rng = self.rng
        chance = rng.random()
        if chance < 0.1:
            return self.path()
        if chance < 0.35:
            return self.name("b" if kind == "L" else "c")
        if chance < 0.45:
            return f"if_not_exists({self.path()}, {self._set_operand(kind)})"
        if chance < 0.48:
            return self.literal(sloppy_value(rng))
        if kind == "L":
            return self.literal({"L": [value(rng, 1) for _ in range(rng.randint(0, 2))]})
        return self.literal(scalar(rng, kind))

    def _add(self) -> str:
        chance = self.rng.random()
        content = scalar(self.rng, "N") if chance < 0.5 else a_set(self.rng) if chance < 0.9 else sloppy_value(self.rng)
        operand = self.literal(content)
        return f"{self._usual_path('c' if 'N' in content else 'd')} {operand}"

    def _delete(self) -> str:
        operand = a_set(self.rng) if self.rng.random() < 0.9 else sloppy_value(self.rng)
        return f"{self._usual_path('d')} {self.literal(operand)}"

    def _usual_path(self, name: str) -> str:
        """The attribute that mostly has the type that is needed, or any other."""
        if name in self._updated or self.rng.random() < 0.25:
            return self._update_path()
        self._updated.add(name)
        return self.name(name)
