"""The grammar of statements: from text to a tree, once per text.

select     = SELECT (* | path {, path}) FROM source [WHERE or] [ORDER BY or [ASC | DESC] {, ...}]
insert     = INSERT INTO source VALUE operand
update     = UPDATE source (SET path = sum {, path = sum} | REMOVE path) {...} [WHERE or] [returning]
delete     = DELETE FROM source [WHERE or] [returning]
returning  = RETURNING (ALL | MODIFIED) (OLD | NEW) *
exists     = EXISTS ( select )
source     = name [. name]
path       = name {. name | [ index ] | [ 'name' ]}
or, and, not, comparison, sum and operand: see expressions.py
"""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn

from jobtable.embedded.expressions.memory import MOST_TREES, is_short
from jobtable.embedded.expressions.paths import Path
from jobtable.embedded.partiql.expressions import Expressions
from jobtable.embedded.partiql.syntax import (
    Assignment,
    Delete,
    Exists,
    Insert,
    Node,
    OrderKey,
    Parsed,
    Reference,
    Removal,
    Returned,
    Select,
    Source,
    Statement,
    Update,
)
from jobtable.embedded.partiql.tokens import malformed
from jobtable.errors import RequestRefused

_RETURNED: dict[tuple[str, str], Returned] = {
    ("ALL", "OLD"): "ALL_OLD",
    ("ALL", "NEW"): "ALL_NEW",
    ("MODIFIED", "OLD"): "UPDATED_OLD",
    ("MODIFIED", "NEW"): "UPDATED_NEW",
}
_UNSUPPORTED = ("GROUP", "HAVING", "LIMIT", "LET", "UNION", "EXCEPT", "INTERSECT")


def parse(text: str) -> Parsed:
    """The tree of a statement, or RequestRefused."""
    return _known(text) if is_short((), text) else _parsed(text)


def _parsed(text: str) -> Parsed:
    parser = _Parser(text)
    statement = parser.statement()
    parser.take(";")
    parser.expect("end")
    return Parsed(statement, parser.parameters)


_known = lru_cache(maxsize=MOST_TREES)(_parsed)


class _Parser(Expressions):
    def statement(self) -> Statement:
        if self.take("SELECT"):
            return self._select()
        if self.take("INSERT"):
            return self._insert()
        if self.take("UPDATE"):
            return self._update()
        if self.take("DELETE"):
            return self._delete()
        if self.take("EXISTS"):
            self.expect("(")
            self.expect("SELECT")
            select = self._select()
            self.expect(")")
            return Exists(select)
        raise malformed("Expected data manipulation")

    def _select(self) -> Select:
        paths = () if self.take("*") else self._projection()
        self.expect("FROM")
        source = self._source()
        if self.kind() == ",":
            raise RequestRefused("Only select from a single table or index is supported.")
        where = self.condition() if self.take("WHERE") else None
        if self.kind() in _UNSUPPORTED:
            raise RequestRefused(f"Unsupported clause: {self.kind()} at {self.token().place}")
        return Select(paths, source, where, self._order())

    def _projection(self) -> tuple[Path, ...]:
        if self.kind() == "DISTINCT":
            raise RequestRefused("Unsupported token in expression: DISTINCT")
        if self.kind() in ("VALUE", "PIVOT"):
            raise RequestRefused("Select projection doesn't support value or pivot keywords")
        paths: list[Path] = []
        while not paths or self.take(","):
            node = self.sum()
            if not isinstance(node, Reference):
                raise RequestRefused(f"Unexpected path component at {node.place}")
            if self.kind() == ".":
                raise RequestRefused("Changing item's hierarchy while reading isn't supported")
            self._refuse_alias()
            paths.append(node.path)
        return tuple(paths)

    def _order(self) -> tuple[OrderKey, ...]:
        if not self.take("ORDER"):
            return ()
        self.expect("BY")
        keys: list[OrderKey] = []
        while not keys or self.take(","):
            node = self.sum()
            is_descending = self.take("DESC")
            if not is_descending:
                self.take("ASC")
            keys.append(OrderKey(node, is_descending))
        return tuple(keys)

    def _insert(self) -> Insert:
        self.expect("INTO")
        source = self._source()
        if self.kind() == "<<":
            raise RequestRefused("An INSERT of several items is not supported: use INSERT INTO table VALUE {...}")
        self.expect("VALUE")
        item = self.sum()
        if self.kind() == "RETURNING":
            raise RequestRefused("RETURNING is not supported in INSERT")
        return Insert(source, item)

    def _update(self) -> Update:
        source = self._source()
        changes: list[Assignment | Removal] = []
        while True:
            if self.take("SET"):
                changes.append(self._assignment())
                while self.take(","):
                    changes.append(self._assignment())
            elif self.take("REMOVE"):
                changes.append(Removal(self.path()))
            else:
                break
        if not changes:
            raise malformed("Expected data manipulation")
        where = self.condition() if self.take("WHERE") else None
        return Update(source, tuple(changes), where, self._returning())

    def _assignment(self) -> Assignment:
        path = self.path()
        self.expect("=")
        value = self.sum()
        if self.kind() in ("*", "/", "%", "||"):
            raise RequestRefused(f"Unsupported operator in Update Expression. Operator: {self.kind()}")
        return Assignment(path, value)

    def _delete(self) -> Delete:
        self.expect("FROM")
        source = self._source()
        where = self.condition() if self.take("WHERE") else None
        return Delete(source, where, self._returning())

    def _returning(self) -> Returned | None:
        if not self.take("RETURNING"):
            return None
        which = "ALL" if self.take("ALL") else self.expect("MODIFIED")
        when = "OLD" if self.take("OLD") else self.expect("NEW")
        if self.kind() == "name":
            raise RequestRefused("Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause")
        self.expect("*")
        if self.kind() == ",":
            raise RequestRefused("Invalid syntax with multiple returning elements in RETURNING clause")
        return _RETURNED[which.upper(), when.upper()]

    def _source(self) -> Source:
        if self.kind() not in ("name", "("):
            self._refuse_source(self.sum())
        opened = self.take("(")
        names = [self.expect("name")]
        while self.take("."):
            names.append(self.expect("name"))
        if opened:
            self.expect(")")
        if len(names) > 2:
            raise RequestRefused("A path may contain at most 2 components in the FROM clause")
        if "" in names:
            raise RequestRefused("Path component cannot be an empty string")
        self._refuse_alias()
        return Source(*names)

    def _refuse_source(self, node: Node) -> NoReturn:
        raise RequestRefused(f"Unexpected from source at {node.place}")

    def _refuse_alias(self) -> None:
        if self.kind() in ("AS", "AT", "BY", "name"):
            raise RequestRefused("Aliasing is not supported")
