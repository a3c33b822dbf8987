"""SET and REMOVE: changes as the tree of an update."""

from __future__ import annotations

from jobtable.embedded.expressions import Update
from jobtable.embedded.expressions.grammar import Action, Function, Operand, Sum, UpdateNode
from jobtable.embedded.expressions.static_checks import check_update
from jobtable.embedded.expressions.tokens import InvalidExpression
from jobtable.embedded.expressions.updates import UpdateProgram, program_of_update
from jobtable.embedded.partiql.conditions import FUNCTIONS, unrecognised
from jobtable.embedded.partiql.syntax import Assignment, Call, Missing, Node, Operation, Reference, Removal
from jobtable.embedded.partiql.terms import Terms
from jobtable.errors import RequestRefused

_CHANGES_OF_SETS = frozenset({"set_add", "set_delete"})
_SETS = frozenset({"SS", "NS", "BS"})


def update_program(changes: tuple[Assignment | Removal, ...], terms: Terms) -> tuple[UpdateProgram, Update]:
    """What the changes do to an item, or RequestRefused."""
    # Here DynamoDB goes through the changes from the first to the last, in UpdateExpression the other way round.
    node = UpdateNode(tuple(_action(change, terms) for change in changes)[::-1], None)
    try:
        check_update(node)
        program = program_of_update(node, terms.names)
        program.checks.run(terms.values)
    except InvalidExpression as error:
        raise RequestRefused(str(error)) from error
    return program, Update(program, terms.values)


def _action(change: Assignment | Removal, terms: Terms) -> Action:
    path = terms.path(change.path)
    if isinstance(change, Removal):
        return Action("REMOVE", path, None)
    value = change.value
    if isinstance(value, Call) and value.name in _CHANGES_OF_SETS:
        return _change_of_set(change, value, terms)
    return Action("SET", path, _sum(value, terms))


def _change_of_set(change: Assignment, call: Call, terms: Terms) -> Action:
    shown = call.name.upper()
    if len(call.arguments) != 2:
        raise RequestRefused(f"{shown} must have exactly two arguments at {call.place}")
    first, second = call.arguments
    if not isinstance(first, Reference) or first.path != change.path:
        raise RequestRefused(f"The first argument to {shown} must equal the assignment value at {call.place}")
    operand = None if isinstance(second, (Reference, Call, Operation)) else terms.operand(second)
    if operand is None or _SETS.isdisjoint(terms.values[operand.name]):
        raise RequestRefused(f"The second argument to {shown} must be a value with type SET at {first.place}")
    return Action("ADD" if call.name == "set_add" else "DELETE", terms.path(change.path), operand)


def _sum(node: Node, terms: Terms) -> Operand | Sum:
    if not isinstance(node, Operation):
        return _operand(node, terms)
    if node.operator not in ("+", "-"):
        raise _unsupported(node.operator)
    if len(node.operands) != 2:
        raise RequestRefused(
            "Incorrect number of operands for operator or function; operator or function:"
            f" {node.operator}, number of operands: 1"
        )
    left, right = node.operands
    return Sum(node.operator, (_sum(left, terms), _sum(right, terms)))


def _operand(node: Node, terms: Terms) -> Operand:
    match node:
        case Reference(path):
            return terms.reference(path)
        case Call(name, arguments):
            if name not in FUNCTIONS:
                raise unrecognised(node)
            return Function(name, tuple(_operand(argument, terms) for argument in arguments))
        case Missing():
            raise RequestRefused("MISSING must be compared using IS operator")
        case Operation(operator) if operator not in ("+", "-"):
            raise _unsupported(operator)
        case Operation(operator):
            raise RequestRefused(f"An operator cannot stand in a function of an update. Operator: {operator}")
        case _:
            return terms.operand(node)


def _unsupported(operator: str) -> RequestRefused:
    if operator.startswith("IS "):
        return RequestRefused("IS operator is not supported in update expressions")
    return RequestRefused(f"Unsupported operator in Update Expression. Operator: {operator.lower()}")
