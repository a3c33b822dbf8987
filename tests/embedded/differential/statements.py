"""Random PartiQL statements: mostly valid, on purpose sometimes not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.embedded.differential.tables import TABLES, Index, Table
from tests.embedded.differential.vocabulary import Value, a_set, item, key, key_value, scalar, sloppy_value, usual_value

Request = dict[str, Any]

_NAMES = ("a", "b", "c", "d", "e", "a", "b", "c", "d", "g1", "g2")
_UPDATED = ("a", "b", "c", "d", "e", "g1", "g2")
_COMPARATORS = ("=", "<>", "!=", "<", "<=", ">", ">=")
_TYPES = ("MISSING", "NULL", "STRING", "NUMERIC", "LIST", "STRUCT", "BOOLEAN", "BOOL", "BLOB", "TUPLE")
_RETURNED = ("ALL OLD *", "ALL NEW *", "MODIFIED OLD *", "MODIFIED NEW *")


class StatementWriter:
    """Writes one statement, and collects its parameters."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.parameters: list[Value] = []

    def request(self, text: str) -> Request:
        """The statement with its parameters."""
        return {"Statement": text, "Parameters": self.parameters} if self.parameters else {"Statement": text}

    def name(self, name: str) -> str:
        """A name as it is, or quoted. LOCAL is a keyword."""
        return name if self.rng.random() < 0.7 and name != "Local" else f'"{name}"'

    def value(self, content: Value) -> str:
        """A value as a parameter, or written out where that is possible."""
        if self.rng.random() < 0.5:
            written = _literal(content)
            if written is not None:
                return written
        self.parameters.append(content)
        return "?"

    def path(self) -> str:
        """A document path."""
        rng = self.rng
        root = last = rng.choice(_NAMES)
        path = self.name(root)
        for _ in range(0 if root in ("g1", "g2") else rng.choice((0, 0, 0, 0, 1, 1, 2))):
            is_element = rng.random() < {"a": 0.1, "b": 0.9}.get(last, 0.5)
            last = "" if is_element else rng.choice("abc")
            path += f"[{rng.choice((0, 0, 1, 2))}]" if is_element else f".{self.name(last)}"
        return path

    def condition(self, depth: int = 2) -> str:
        """A condition on attributes that are in no key of a table."""
        rng = self.rng
        if depth and rng.random() < 0.35:
            form = rng.choice(("{} AND {}", "({} OR {})", "NOT {}", "({})", "{} and ({})", "NOT ({} or {})"))
            return form.format(*(self.condition(depth - 1) for _ in range(form.count("{}"))))
        writers: tuple[Callable[[], str], ...] = (
            lambda: f"{self.path()} {rng.choice(_COMPARATORS)} {self.value(sloppy_value(rng))}",
            lambda: f"{self.path()} {rng.choice(_COMPARATORS)} {self.value(scalar(rng, 'N'))}",
            lambda: f"{self.path()} {rng.choice(_COMPARATORS)} {self.path()}",
            lambda: f"size({self.path()}) {rng.choice(_COMPARATORS)} {self.value(scalar(rng, 'N'))}",
            self._between,
            self._choices,
            lambda: f"{self.path()} IS {rng.choice(('', 'NOT '))}{rng.choice(_TYPES)}",
            lambda: f"attribute_type({self.path()}, {self.value({'S': rng.choice(('S', 'N', 'L', 'M', 'X'))})})",
            lambda: f"begins_with({self.path()}, {self.value(scalar(rng, rng.choice('SSSBN')))})",
            lambda: f"Contains({self.path()}, {self.value(sloppy_value(rng))})",
            lambda: f"attribute_exists({self.path()}) {rng.choice(('=', '<>'))} {self.value({'BOOL': True})}",
        )
        return rng.choice(writers)()

    def _between(self) -> str:
        path, kind = self.path(), self.rng.choice("NSB")
        low = self.value(scalar(self.rng, kind))
        return f"{path} {self.rng.choice(('', 'NOT '))}BETWEEN {low} AND {self.value(scalar(self.rng, kind))}"

    def _choices(self) -> str:
        path = self.path()
        values = ", ".join(self.value(sloppy_value(self.rng)) for _ in range(self.rng.randint(1, 3)))
        written = self.rng.choice(("({})", "[{}]")).format(values)
        return f"{path} {self.rng.choice(('', 'NOT '))}IN {written}"

    def whole_key(self, table: Table, chosen: Request | None = None) -> str:
        """The primary key of an item, by equality."""
        parts = (chosen or key(self.rng, table)).items()
        return " AND ".join(f"{self.name(name)} = {self.value(content)}" for name, content in parts)

    def key_condition(self, table: Table, index: Index | None) -> str:
        """A condition on the key of a table or index, which may be about several partitions."""
        rng = self.rng
        partition = (table.partition,) if index is None else index.partition
        sort = table.key_parts[1:] if index is None else index.sort
        parts = []
        for name, kind in partition:
            if rng.random() < 0.3:
                values = ", ".join(self.value(key_value(rng, kind)) for _ in range(rng.randint(1, 3)))
                parts.append(f"{self.name(name)} IN [{values}]")
            else:
                parts.append(f"{self.name(name)} = {self.value(key_value(rng, kind))}")
        for name, kind in sort[: rng.randint(0, len(sort))]:
            parts.append(self._sort_condition(name, kind))
        return " AND ".join(parts)

    def _sort_condition(self, name: str, kind: str) -> str:
        rng = self.rng
        form = rng.choice(("compare", "compare", "compare", "between", "begins"))
        if form == "begins" and kind != "N":
            return f"begins_with({self.name(name)}, {self.value(key_value(rng, kind))})"
        if form == "between":
            low = f"{self.name(name)} BETWEEN {self.value(key_value(rng, kind))}"
            return f"{low} AND {self.value(key_value(rng, kind))}"
        return f"{self.name(name)} {rng.choice(_COMPARATORS)} {self.value(key_value(rng, kind))}"

    def select(self, table: Table, index: Index | None) -> str:
        """SELECT of a table or index."""
        rng = self.rng
        wanted = "*" if rng.random() < 0.5 else ", ".join(self.path() for _ in range(rng.choice((1, 1, 2, 3))))
        text = f"SELECT {wanted} FROM {self.name(table.name)}"
        if index is not None:
            text += f".{self.name(index.name)}"
        conditions = []
        if rng.random() < 0.75:
            conditions.append(self.key_condition(table, index))
        if rng.random() < 0.5:
            conditions.append(self.condition())
        return text + (f" WHERE {' AND '.join(conditions)}" if conditions else "")

    def insert(self, table: Table, chosen: Request | None = None) -> str:
        """INSERT of an item."""
        content = item(self.rng, table) | (chosen or {})
        members = ", ".join(f"'{name}': {self.value(value)}" for name, value in content.items())
        return f"INSERT INTO {self.name(table.name)} VALUE {{{members}}}"

    def update(self, table: Table, chosen: Request | None = None, *, returns: bool = True) -> str:
        """UPDATE of an item."""
        rng = self.rng
        if rng.random() < 0.2:
            text = f"FROM {self.name(table.name)} {self._where(table, chosen)} {self._changes(table)}"
        else:
            text = f"UPDATE {self.name(table.name)} {self._changes(table)} {self._where(table, chosen)}"
        return text + (f" RETURNING {rng.choice(_RETURNED)}" if returns and rng.random() < 0.5 else "")

    def _where(self, table: Table, chosen: Request | None) -> str:
        return f"WHERE {self.whole_key(table, chosen)}{self._besides()}"

    def _changes(self, table: Table) -> str:
        names = self.rng.sample(_UPDATED, self.rng.choice((1, 1, 2, 3)))
        return " ".join(self._change(name, table) for name in names)

    def _change(self, name: str, table: Table) -> str:
        rng = self.rng
        if name in table.key_types:
            return f"SET {self.name(name)} = {self.value(key_value(rng, table.key_types[name]))}"
        if rng.random() < 0.2:
            return f"REMOVE {self.name(name)}"
        if name == "d" and rng.random() < 0.7:
            return f"SET d = {rng.choice(('set_add', 'SET_DELETE'))}(d, {self.value(a_set(rng))})"
        if name == "b" and rng.random() < 0.5:
            return f"SET b = list_append(b, {self.value({'L': [scalar(rng, 'S')]})})"
        if name == "c" and rng.random() < 0.5:
            return f"SET c = c {rng.choice('+-')} {self.value(scalar(rng, 'N'))}"
        if name == "a" and rng.random() < 0.3:
            return f"SET a.b = {self.value(sloppy_value(rng))}"
        return f"SET {self.name(name)} = {self.value(usual_value(rng, name))}"

    def delete(self, table: Table, chosen: Request | None = None, *, returns: bool = True) -> str:
        """DELETE of an item."""
        text = f"DELETE FROM {self.name(table.name)} WHERE {self.whole_key(table, chosen)}{self._besides()}"
        return text + (" RETURNING ALL OLD *" if returns and self.rng.random() < 0.4 else "")

    def _besides(self) -> str:
        return f" AND {self.condition(1)}" if self.rng.random() < 0.4 else ""

    def write(self, table: Table, chosen: Request | None = None, *, returns: bool = True) -> str:
        """Any write."""
        kind = self.rng.choice(("insert", "insert", "update", "update", "delete"))
        if kind == "insert":
            return self.insert(table, chosen)
        write = self.update if kind == "update" else self.delete
        return write(table, chosen, returns=returns)


def _literal(content: Value) -> str | None:
    """A value as a statement writes it; None if it cannot be written so."""
    if not isinstance(content, dict) or len(content) != 1:
        return None
    [(kind, inside)] = content.items()
    if kind == "S":
        return "'" + str(inside).replace("'", "''") + "'"
    if kind == "N":
        return str(inside) if inside and set(inside) <= set("-0123456789.eE") else None
    if kind == "BOOL":
        return str(inside).lower()
    if kind == "NULL" and inside is True:
        return "null"
    if kind in ("SS", "NS") and inside:
        written = [_literal({kind[0]: member}) for member in inside]
        return None if None in written else f"<<{', '.join(map(str, written))}>>"
    if kind == "L":
        written = [_literal(member) for member in inside]
        return None if None in written else f"[{', '.join(map(str, written))}]"
    if kind == "M":
        members = {name: _literal(member) for name, member in inside.items()}
        written = [value and f"'{name}': {value}" for name, value in members.items()]
        return None if None in written else "{" + ", ".join(map(str, written)) + "}"
    return None


def execute_statement(rng: Random) -> Request:
    """ExecuteStatement."""
    table, writer = rng.choice(TABLES), StatementWriter(rng)
    if rng.random() < 0.5:
        index = rng.choice((None, None, *table.indexes))
        request = writer.request(writer.select(table, index))
        if rng.random() < 0.3:
            request["Limit"] = rng.choice((1, 2, 5))
        if rng.random() < 0.2:
            request["ConsistentRead"] = rng.choice((True, False))
        return request
    request = writer.request(writer.write(table))
    if rng.random() < 0.3:
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return request


def batch_execute_statement(rng: Random) -> Request:
    """BatchExecuteStatement."""
    return {"Statements": _several(rng, writes=rng.random() < 0.6, returns=True)}


def execute_transaction(rng: Random) -> Request:
    """ExecuteTransaction, sometimes with a token of few; the runner makes tokens its own by their first sign."""
    writes = rng.random() < 0.7
    request: Request = {"TransactStatements": _several(rng, writes=writes, returns=False)}
    if writes and rng.random() < 0.3:
        request["ClientRequestToken"] = rng.choice(("@3", "@4"))
    return request


def _several(rng: Random, *, writes: bool, returns: bool) -> list[Request]:
    """Statements about different tables: DynamoDB Local does some of those that it refuses for one item twice."""
    statements = []
    for table in rng.sample(TABLES, rng.choice((1, 2, 3))):
        writer = StatementWriter(rng)
        text = writer.write(table, returns=returns) if writes else _single_read(writer, table)
        statements.append(writer.request(text))
    return statements


def _single_read(writer: StatementWriter, table: Table) -> str:
    wanted = writer.rng.choice(("*", "a, c", "pk"))
    return f"SELECT {wanted} FROM {writer.name(table.name)} WHERE {writer.whole_key(table)}"
