"""What a JSONata expression refers to: names of the context that Step Functions does not have, and variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobtable.workflows.asl.query_languages import jsonata_library as library

ROOT = "$$"
ERROR_OUTPUT = "$states.errorOutput"
STATES = "states"


def find_references(expression: str) -> list[str]:
    """Return the names that an expression reads from its context, `$`, `$$` and `$states.errorOutput`, each once.

    Step Functions evaluates without a context: a path must start with `$states` or a variable. Raises JsonataError for
    a syntax error.
    """
    return list(dict.fromkeys(_context_names(library.tree_of(library.parse(expression)))))


def find_variables(expression: str) -> set[str]:
    """Return the variables that an expression reads and does not assign itself."""
    known = library.function_names() | {STATES, "", "$"}
    return set(_free_variables(library.tree_of(library.parse(expression)), known))


def _context_names(node: Any) -> Iterator[str]:
    """Yield what is read from the context. Later steps, filters, order and groups read from what precedes them."""
    if node is None:
        return
    kind = node.type
    if kind == "path":
        yield from _path_names(node)
    elif kind == "name":
        yield str(node.value)
    elif kind == "variable":
        yield from {"": ["$"], "$": [ROOT]}.get(node.value, [])
    elif kind == "transform":
        return
    else:
        for child in _children(node):
            yield from _context_names(child)


def _path_names(node: Any) -> Iterator[str]:
    first, *rest = node.steps
    is_states = first.type == "variable" and first.value == STATES
    if is_states and rest and rest[0].type == "name" and rest[0].value == "errorOutput":
        yield ERROR_OUTPUT
    else:
        yield from _context_names(first)


def _children(node: Any) -> Iterator[Any]:
    """Yield the nodes that are evaluated in the same context, in writing order."""
    yield from (each for each in (node.procedure, node.condition, node.then, node._else, node.lhs) if each is not None)
    for pair in node.lhs_object or ():
        yield from pair
    yield from (each for each in (node.rhs, node.expression, node.body) if _is_node(each))
    yield from node.expressions or ()
    if node.type != "lambda":
        yield from node.arguments or ()


def _is_node(value: Any) -> bool:
    return value is not None and hasattr(value, "type")


def _free_variables(node: Any, known: set[str]) -> Iterator[str]:
    if node.type == "variable":
        if node.value not in known:
            yield str(node.value)
    elif node.type == "block":
        inner = set(known)
        for each in node.expressions or ():
            yield from _free_variables(each, inner)
    elif node.type == "bind":
        # A function may call itself.
        known.add(str(node.lhs.value))
        yield from _free_variables(node.rhs, known)
    elif node.type == "lambda":
        yield from _free_variables(node.body, known | {str(each.value) for each in node.arguments or ()})
    else:
        inner = known | _focus_names(node)
        for child in [*_children(node), *_inner_nodes(node)]:
            yield from _free_variables(child, inner)


def _focus_names(node: Any) -> set[str]:
    """The variables that `@$a` and `#$i` bind for the steps of a path."""
    names = {str(name) for step in node.steps or () for name in (step.focus, step.index) if isinstance(name, str)}
    stages = [stage for step in node.steps or () for stage in step.stages or ()]
    return names | {str(stage.value) for stage in stages if stage.type == "index"}


def _inner_nodes(node: Any) -> Iterator[Any]:
    """Yield the nodes that are evaluated in a context of their own."""
    yield from node.steps or ()
    for each in [*(node.predicate or ()), *(node.stages or ())]:
        if _is_node(each.expr):
            yield each.expr
    yield from (term.expression for term in node.terms or ())
    if node.group is not None:
        for pair in node.group.lhs_object or ():
            yield from pair
    yield from (each for each in (node.pattern, node.update, node.delete) if each is not None)
