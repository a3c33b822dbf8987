"""INSERT, UPDATE, DELETE and EXISTS: each is one write of one item, whose key the statement gives by equality."""

from __future__ import annotations

from jobtable.embedded.expressions import Condition, Update, checks, grammar
from jobtable.embedded.expressions.paths import InvalidExpression
from jobtable.embedded.expressions.updates import UpdateProgram, program_of_update
from jobtable.embedded.key_checks import SchemaMismatch, key_position, refuse_nested_keys
from jobtable.embedded.partiql import syntax
from jobtable.embedded.partiql import where_clauses as where
from jobtable.embedded.partiql.terms import Terms
from jobtable.embedded.request_checks import Tables, find_table
from jobtable.embedded.request_model import name_faults
from jobtable.embedded.storage import NO_ITEM
from jobtable.embedded.table_schema import TableSchema
from jobtable.embedded.writes import Kind, Write, put_of, refuse_unfit_update, returns_item, valid_item
from jobtable.errors import DuplicateItem, RequestRefused
from jobtable.store.backend import Item, Request

_CHANGES_OF_SETS = frozenset({"set_add", "set_delete"})
_SETS = frozenset({"SS", "NS", "BS"})


def _update_program(changes: tuple[syntax.Change, ...], terms: Terms) -> tuple[UpdateProgram, Update]:
    """Return the update that the changes make, or raise RequestRefused."""
    # Here DynamoDB reads the changes from first to last, in UpdateExpression from last to first.
    node = grammar.UpdateNode(tuple(_action(change, terms) for change in changes)[::-1], None)
    try:
        checks.check_update(node)
        program = program_of_update(node, terms.names)
        program.checks.run(terms.values)
    except InvalidExpression as error:
        raise RequestRefused(str(error)) from error
    return program, Update(program, terms.values)


def _action(change: syntax.Change, terms: Terms) -> grammar.Action:
    path = terms.path(change.path)
    value = change.value
    if value is None:
        return grammar.Action("REMOVE", path, None)
    if isinstance(value, syntax.Call) and value.name in _CHANGES_OF_SETS:
        return _change_of_set(change, value, terms)
    return grammar.Action("SET", path, _sum(value, terms))


def _change_of_set(change: syntax.Change, call: syntax.Call, terms: Terms) -> grammar.Action:
    shown = call.name.upper()
    if len(call.arguments) != 2:
        raise RequestRefused(f"{shown} must have exactly two arguments at {call.place}")
    first, second = call.arguments
    if not isinstance(first, syntax.Reference) or first.path != change.path:
        raise RequestRefused(f"The first argument to {shown} must equal the assignment value at {call.place}")
    operand = None if isinstance(second, (syntax.Reference, syntax.Call, syntax.Operation)) else terms.operand(second)
    if operand is None or _SETS.isdisjoint(terms.values[operand.name]):
        raise RequestRefused(f"The second argument to {shown} must be a value with type SET at {first.place}")
    return grammar.Action("ADD" if call.name == "set_add" else "DELETE", terms.path(change.path), operand)


def _sum(node: syntax.Node, terms: Terms) -> grammar.Operand | grammar.Sum:
    if not isinstance(node, syntax.Operation):
        return where.operand_of(node, terms, _unsupported)
    if node.operator not in ("+", "-"):
        raise _unsupported(node)
    if len(node.operands) != 2:
        raise RequestRefused(
            "Incorrect number of operands for operator or function; operator or function:"
            f" {node.operator}, number of operands: 1"
        )
    left, right = node.operands
    return grammar.Sum(node.operator, (_sum(left, terms), _sum(right, terms)))


def _unsupported(operation: syntax.Operation) -> RequestRefused:
    operator = operation.operator
    if operator.startswith("IS "):
        return RequestRefused("IS operator is not supported in update expressions")
    if operator in ("+", "-"):
        return RequestRefused(f"An operator cannot stand in a function of an update. Operator: {operator}")
    return RequestRefused(f"Unsupported operator in Update Expression. Operator: {operator.lower()}")


_NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"


def duplicate_key() -> DuplicateItem:
    """Return the error for an INSERT that found an item with its key."""
    return DuplicateItem("Duplicate primary key exists in table")


def returned_by(statement: syntax.Statement) -> syntax.Returned | None:
    """Return what a statement wants back."""
    return statement.returned if isinstance(statement, (syntax.UpdateStatement, syntax.DeleteStatement)) else None


def table_of(tables: Tables, source: syntax.TableReference) -> TableSchema:
    """Return the table of a statement; RequestRefused for an invalid name, TableNotFound for a missing table."""
    if name_faults(source.table):
        raise RequestRefused(
            "Table name should be within the length [3, 255] and only contain 'a-z', 'A-Z', '0-9', '-', '_', '.'."
        )
    return find_table(tables, source.table)


def prepare_write(
    tables: Tables,
    statement: syntax.InsertStatement | syntax.UpdateStatement | syntax.DeleteStatement | syntax.ExistsStatement,
    terms: Terms,
    request: Request,
) -> Write:
    """Return the write of a statement, or raise RequestRefused. `request` says if a failure returns the item."""
    match statement:
        case syntax.InsertStatement():
            return _insert(tables, statement, terms, request)
        case syntax.UpdateStatement():
            return _update(tables, statement, terms, request)
        case syntax.DeleteStatement():
            return _delete(tables, statement, terms, request)
        case syntax.ExistsStatement(select):
            return _check(tables, select, terms, request)


def _insert(tables: Tables, statement: syntax.InsertStatement, terms: Terms, request: Request) -> Write:
    if statement.source.index is not None:
        raise RequestRefused("FROM clause may only contain a single table name in data manipulation statements")
    item, size = valid_item(terms.item(statement.item))
    table = table_of(tables, statement.source)
    for attribute in table.key:
        if attribute.name not in item:
            raise SchemaMismatch(f"Key attribute should be present in the item: Key {attribute.name}")
    _check_key_types(table, item)
    condition = where.compiled(grammar.Function("attribute_not_exists", (_partition(table, terms),)), terms, table)
    return put_of(table, item, size, condition, is_item_returned=returns_item(request))


def _update(tables: Tables, statement: syntax.UpdateStatement, terms: Terms, request: Request) -> Write:
    _refuse_index(statement.source)
    program, update = _update_program(statement.changes, terms)
    tree = None if statement.where is None else where.condition_tree(statement.where, terms)
    table = table_of(tables, statement.source)
    key, rest = _single_key(table, tree, terms)
    position = key_position(table, key)
    refuse_unfit_update(table, key, update)
    refuse_nested_keys(table, program.nested_names)
    exists = grammar.Function("attribute_exists", (_partition(table, terms),))
    condition = where.compiled(where.conjunction(exists, rest) or exists, terms, table)
    return Write("update", table, position, key, NO_ITEM, terms.values_size, condition, update, returns_item(request))


def _delete(tables: Tables, statement: syntax.DeleteStatement, terms: Terms, request: Request) -> Write:
    """A false condition refuses the deletion of an item, but not that of a missing one."""
    if statement.returned not in (None, "ALL_OLD"):
        which, when = statement.returned.replace("UPDATED", "MODIFIED").split("_")
        raise RequestRefused(
            f"Invalid returning clause: RETURNING {which} {when} *. Only RETURNING ALL OLD * is allowed in DELETE"
            " statements."
        )
    _refuse_index(statement.source)
    tree = None if statement.where is None else where.condition_tree(statement.where, terms)
    table = table_of(tables, statement.source)
    key, rest = _single_key(table, tree, terms)
    condition = None
    if rest is not None:
        is_gone = grammar.Function("attribute_not_exists", (_partition(table, terms),))
        condition = where.compiled(grammar.Junction("OR", (is_gone, rest)), terms, table)
    return _keyed("delete", table, key, terms, condition, request)


def _check(tables: Tables, select: syntax.SelectStatement, terms: Terms, request: Request) -> Write:
    table = table_of(tables, select.source)
    found = None if select.source.index else find_single_key(table, select.where, terms)
    if found is None or found[1] is None:
        raise RequestRefused("EXISTS() must contain a single item read with additional condition")
    key, rest = found
    exists = grammar.Function("attribute_exists", (_partition(table, terms),))
    condition = where.compiled(where.conjunction(exists, rest) or exists, terms, table)
    return _keyed("check", table, key, terms, condition, request)


def _keyed(
    kind: Kind, table: TableSchema, key: Item, terms: Terms, condition: Condition | None, request: Request
) -> Write:
    position = key_position(table, key)
    return Write(kind, table, position, key, NO_ITEM, terms.values_size, condition, None, returns_item(request))


def _partition(table: TableSchema, terms: Terms) -> grammar.Operand:
    """Return the attribute that every item of the table has."""
    partition: grammar.PathOperand = terms.reference((table.partition.name,))
    return partition


def _refuse_index(source: syntax.TableReference) -> None:
    if source.index is not None:
        raise RequestRefused("This operation is not supported on an index")


def find_single_key(
    table: TableSchema, clause: syntax.Node | None, terms: Terms
) -> tuple[Item, grammar.ConditionNode | None] | None:
    """Return the key that a SELECT gives by equality, and its other conditions; None without one whole key."""
    if clause is None:
        return None
    key, rest, others = _equalities(table, where.condition_tree(clause, terms), terms)
    if others or len(key) < len(table.key):
        return None
    _check_key_types(table, key)
    return key, where.conjunction(*rest)


def _single_key(
    table: TableSchema, tree: grammar.ConditionNode | None, terms: Terms
) -> tuple[Item, grammar.ConditionNode | None]:
    """Return the same for the condition of a write; RequestRefused without one whole key."""
    key, rest, others = ({}, [], []) if tree is None else _equalities(table, tree, terms)
    if others:
        raise RequestRefused(
            f"Multiple conditions on same key {others[0]}. Only single item Update/Insert/Delete are supported"
        )
    if len(key) < len(table.key):
        raise SchemaMismatch(_NO_KEY)
    for name, value in key.items():
        [kind] = value
        if kind not in ("S", "N", "B"):
            raise RequestRefused(f"Key value must be of type S, N, or B. Key name: {name}, Key type: {kind}")
    _check_key_types(table, key)
    return key, where.conjunction(*rest)


def _equalities(
    table: TableSchema, tree: grammar.ConditionNode, terms: Terms
) -> tuple[Item, list[grammar.ConditionNode], list[str]]:
    """Return the key attributes given by equality, the other conditions, and the attributes with a second value."""
    found: Item = {}
    rest: list[grammar.ConditionNode] = []
    others: list[str] = []
    names = [attribute.name for attribute in table.key]
    for part in where.conjuncts(tree):
        equal = where.equality(part, terms)
        if equal is None or equal[0] not in names:
            rest.append(part)
        elif found.setdefault(*equal) != equal[1]:
            others.append(equal[0])
    return {name: found[name] for name in names if name in found}, rest, others


def _check_key_types(table: TableSchema, key: Item) -> None:
    for attribute in table.key:
        if attribute.type not in key[attribute.name]:
            raise key_type_mismatch(attribute.name)


def key_type_mismatch(name: str) -> SchemaMismatch:
    """Return the error for a key attribute with a value of another type."""
    return SchemaMismatch(f"Key attribute's data type should match its data type in table's schema: Key {name}")
