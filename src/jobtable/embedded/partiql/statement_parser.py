"""Reads statements, by this grammar: from text to a tree, once per text.

select     = SELECT (* | path {, path}) FROM source [WHERE or] [ORDER BY or [ASC | DESC] {, ...}]
insert     = INSERT INTO source VALUE operand
update     = UPDATE source changes [WHERE or] [returning] | FROM source [WHERE or] changes [returning]
changes    = (SET path = or {, path = or} | REMOVE path) {...}
delete     = DELETE FROM source [WHERE or] [returning]
returning  = RETURNING (ALL | MODIFIED) (OLD | NEW) *
exists     = EXISTS ( select )
source     = name [. name]
path       = name {. name | [ index ] | [ 'name' ]}
or, and, not, comparison, sum and operand: see expression_parser.py
"""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn

from jobtable.embedded.expressions.paths import Path
from jobtable.embedded.expressions.placeholders import MOST_TREES, is_short
from jobtable.embedded.partiql.expression_parser import Expressions
from jobtable.embedded.partiql.syntax import (
    Assignment,
    DeleteStatement,
    ExistsStatement,
    InsertStatement,
    OrderKey,
    Parsed,
    Reference,
    Removal,
    Returned,
    SelectStatement,
    Statement,
    TableReference,
    UpdateStatement,
    malformed,
)
from jobtable.errors import RequestRefused

_RETURNED: dict[tuple[str, str], Returned] = {
    ("ALL", "OLD"): "ALL_OLD",
    ("ALL", "NEW"): "ALL_NEW",
    ("MODIFIED", "OLD"): "UPDATED_OLD",
    ("MODIFIED", "NEW"): "UPDATED_NEW",
}
_UNSUPPORTED = ("LET", "UNION", "EXCEPT", "INTERSECT")
_DEFINITIONS = {"CREATE": "CreateTable", "DROP": "DropTable"}


def parse(text: str) -> Parsed:
    return _known(text) if is_short((), text) else _parsed(text)


def _parsed(text: str) -> Parsed:
    parser = _Parser(text)
    statement = parser.statement()
    if parser.take(";") and parser.kind() != "end":
        raise malformed("Unexpected token after semicolon. (Only one query is allowed.)")
    if parser.kind() != "end":
        raise malformed("Unexpected token after expression")
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
        if self.take("FROM"):
            return self._update_from()
        if self.take("EXISTS"):
            self.expect("(")
            self.expect("SELECT")
            select = self._select()
            self.expect(")")
            return ExistsStatement(select)
        if self.kind() == "name" and self.next_kind() == "IS":
            self.condition()
            raise RequestRefused("Unsupported operation: IsType")
        if self.kind() in _DEFINITIONS and self.next_kind() == "TABLE":
            self._refuse_definition()
        raise malformed("Expected data manipulation")

    def _select(self) -> SelectStatement:
        fault, paths = (None, ()) if self.take("*") else self._projection()
        self.expect("FROM")
        source = self._source(is_expression=True)
        if self.kind() == ",":
            raise RequestRefused("Only select from a single table or index is supported.")
        where = self.condition() if self.take("WHERE") else None
        if self.kind() in _UNSUPPORTED:
            raise RequestRefused(f"Unsupported clause: {self.kind()} at {self.token().place}")
        groups = self._group()
        order = self._order()
        limit = self._clause("LIMIT")
        unsupported = groups or limit
        if unsupported is not None:
            self._expect_end()
            raise RequestRefused(f"Unsupported clause: {unsupported}")
        return SelectStatement(paths, source, where, order, fault)

    def _group(self) -> str | None:
        """Read the clauses of groups, which are not supported: return the name of the first one in messages."""
        is_grouped = self.take("GROUP")
        if is_grouped:
            self.expect("BY")
            self.sum()
            while self.take(","):
                self.sum()
        having = self._clause("HAVING")
        return "GROUP BY" if is_grouped else having

    def _clause(self, keyword: str) -> str | None:
        """Read a clause of one expression, and return its name and place."""
        return f"{keyword} at {self.condition().place}" if self.take(keyword) else None

    def _refuse_definition(self) -> NoReturn:
        operation = _DEFINITIONS[self.kind()]
        self.take(self.kind())
        self.expect("TABLE")
        self.expect("name")
        self._expect_end()
        raise RequestRefused(f"Unsupported operation: {operation}")

    def _expect_end(self) -> None:
        if self.kind() not in ("end", ";"):
            raise malformed("Unexpected token after expression")

    def _projection(self) -> tuple[str | None, tuple[Path, ...]]:
        """Read the fault of the projection, which is reported once the table is known, and the paths."""
        if self.kind() == "DISTINCT":
            raise RequestRefused("Unsupported token in expression: DISTINCT")
        if self.kind() in ("VALUE", "PIVOT"):
            raise RequestRefused("Select projection doesn't support value or pivot keywords")
        fault: str | None = None
        paths: list[Path] = []
        while True:
            place = self.token().place
            node = None if self.take_count() else self.sum()
            if isinstance(node, Reference):
                paths.append(node.path)
            else:
                fault = fault or f"Unexpected path component at {node.place if node else place}"
            if self.kind() == ".":
                raise RequestRefused("Changing item's hierarchy while reading isn't supported")
            self._refuse_alias()
            if not self.take(","):
                return fault, tuple(paths)

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

    def _insert(self) -> InsertStatement:
        self.expect("INTO")
        source = self._source(takes_alias=True)
        if not self.take("VALUE"):
            self.sum()
            self._expect_end()
            raise RequestRefused(
                "Unsupported operation: Inserting multiple items in a single statement is not supported, use"
                ' "INSERT INTO tableName VALUE item" instead'
            )
        item = self.sum()
        if self.kind() == "RETURNING":
            raise RequestRefused("RETURNING is not supported in INSERT")
        return InsertStatement(source, item)

    def _update(self) -> UpdateStatement:
        source = self._source()
        changes = self._changes()
        where = self.condition() if self.take("WHERE") else None
        return UpdateStatement(source, changes, where, self._returning())

    def _update_from(self) -> UpdateStatement:
        source = self._source(is_expression=True)
        where = self.condition() if self.take("WHERE") else None
        return UpdateStatement(source, self._changes(), where, self._returning())

    def _changes(self) -> tuple[Assignment | Removal, ...]:
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
        return tuple(changes)

    def _assignment(self) -> Assignment:
        path = self.path()
        self.expect("=")
        return Assignment(path, self.condition("Update"))

    def _delete(self) -> DeleteStatement:
        self.expect("FROM")
        source = self._source()
        where = self.condition() if self.take("WHERE") else None
        return DeleteStatement(source, where, self._returning())

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

    def _source(self, *, is_expression: bool = False, takes_alias: bool = False) -> TableReference:
        """Read a table or index. Where any expression is allowed, other ones have errors of their own."""
        if not is_expression and self.kind() != "name":
            raise malformed("Expected identifier for simple path")
        if self.kind() not in ("name", "("):
            self.sum()
            raise RequestRefused("Unexpected from source")
        opened = self.take("(")
        names = [self.expect("name")]
        while self.take("."):
            names.append(self.dotted_name())
        if opened:
            self.expect(")")
        if len(names) > 2:
            raise RequestRefused("A path may contain at most 2 components in the FROM clause")
        if "" in names:
            raise RequestRefused("Path component cannot be an empty string")
        if not takes_alias:
            self._refuse_alias()
        return TableReference(*names)

    def _refuse_alias(self) -> None:
        if self.kind() in ("AS", "AT", "BY", "name"):
            raise RequestRefused("Aliasing is not supported")
