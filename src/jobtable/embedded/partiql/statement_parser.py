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
from jobtable.embedded.partiql import syntax
from jobtable.embedded.partiql.expression_parser import Expressions
from jobtable.errors import RequestRefused

_RETURNED: dict[tuple[str, str], syntax.Returned] = {
    ("ALL", "OLD"): "ALL_OLD",
    ("ALL", "NEW"): "ALL_NEW",
    ("MODIFIED", "OLD"): "UPDATED_OLD",
    ("MODIFIED", "NEW"): "UPDATED_NEW",
}
_UNSUPPORTED = ("LET", "UNION", "EXCEPT", "INTERSECT")
_DEFINITIONS = {"CREATE": "CreateTable", "DROP": "DropTable"}


def parse(text: str) -> syntax.Parsed:
    return _known(text) if is_short((), text) else _parsed(text)


def _parsed(text: str) -> syntax.Parsed:
    parser = _Parser(text)
    statement = parser.statement()
    if parser.take(";") and parser.kind() != "end":
        raise syntax.malformed("Unexpected token after semicolon. (Only one query is allowed.)")
    if parser.kind() != "end":
        raise syntax.malformed("Unexpected token after expression")
    return syntax.Parsed(statement, parser.parameters)


_known = lru_cache(maxsize=MOST_TREES)(_parsed)


class _Parser(Expressions):
    def statement(self) -> syntax.Statement:
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
            return syntax.ExistsStatement(select)
        if self.kind() == "name" and self.next_kind() == "IS":
            self.condition()
            raise RequestRefused("Unsupported operation: IsType")
        if self.kind() in _DEFINITIONS and self.next_kind() == "TABLE":
            self._refuse_definition()
        raise syntax.malformed("Expected data manipulation")

    def _select(self) -> syntax.SelectStatement:
        fault, paths = (None, ()) if self.take("*") else self._projection()
        self.expect("FROM")
        source = self._source(is_expression=True)
        if self.kind() == ",":
            raise RequestRefused("Only select from a single table or index is supported.")
        where = self._where()
        if self.kind() in _UNSUPPORTED:
            raise RequestRefused(f"Unsupported clause: {self.kind()} at {self.token().place}")
        groups = self._group()
        order = self._order()
        limit = self._clause("LIMIT")
        unsupported = groups or limit
        if unsupported is not None:
            self._expect_end()
            raise RequestRefused(f"Unsupported clause: {unsupported}")
        return syntax.SelectStatement(paths, source, where, order, fault)

    def _group(self) -> str | None:
        """Read the clauses of groups, which are not supported: return the name of the first one in messages."""
        is_grouped = self.take("GROUP")
        if is_grouped:
            self.expect("BY")
            self.separated(self.sum)
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
            raise syntax.malformed("Unexpected token after expression")

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
            if isinstance(node, syntax.Reference):
                paths.append(node.path)
            else:
                fault = fault or f"Unexpected path component at {node.place if node else place}"
            if self.kind() == ".":
                raise RequestRefused("Changing item's hierarchy while reading isn't supported")
            self._refuse_alias()
            if not self.take(","):
                return fault, tuple(paths)

    def _order(self) -> tuple[tuple[syntax.Node, bool], ...]:
        if not self.take("ORDER"):
            return ()
        self.expect("BY")
        return tuple(self.separated(self._order_key))

    def _order_key(self) -> tuple[syntax.Node, bool]:
        node = self.sum()
        is_descending = self.take("DESC")
        if not is_descending:
            self.take("ASC")
        return node, is_descending

    def _insert(self) -> syntax.InsertStatement:
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
        return syntax.InsertStatement(source, item)

    def _update(self) -> syntax.UpdateStatement:
        source, changes = self._source(), self._changes()
        return syntax.UpdateStatement(source, changes, self._where(), self._returning())

    def _update_from(self) -> syntax.UpdateStatement:
        source, where = self._source(is_expression=True), self._where()
        return syntax.UpdateStatement(source, self._changes(), where, self._returning())

    def _where(self) -> syntax.Node | None:
        return self.condition() if self.take("WHERE") else None

    def _changes(self) -> tuple[syntax.Change, ...]:
        changes: list[syntax.Change] = []
        while self.kind() in ("SET", "REMOVE"):
            if self.take("REMOVE"):
                changes.append(syntax.Change(self.path()))
            elif self.take("SET"):
                changes += self.separated(self._assignment)
        if not changes:
            raise syntax.malformed("Expected data manipulation")
        return tuple(changes)

    def _assignment(self) -> syntax.Change:
        path = self.path()
        self.expect("=")
        return syntax.Change(path, self.condition("Update"))

    def _delete(self) -> syntax.DeleteStatement:
        self.expect("FROM")
        return syntax.DeleteStatement(self._source(), self._where(), self._returning())

    def _returning(self) -> syntax.Returned | None:
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

    def _source(self, *, is_expression: bool = False, takes_alias: bool = False) -> syntax.TableReference:
        """Read a table or index. Where any expression is allowed, other ones have errors of their own."""
        if not is_expression and self.kind() != "name":
            raise syntax.malformed("Expected identifier for simple path")
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
        return syntax.TableReference(*names)

    def _refuse_alias(self) -> None:
        if self.kind() in ("AS", "AT", "BY", "name"):
            raise RequestRefused("Aliasing is not supported")
