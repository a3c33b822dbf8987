"""Reads values by JSONPath."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobtable.workflows.asl.query_languages.bounded_patterns import PatternTimeoutError
from jobtable.workflows.asl.query_languages.expression_errors import to_text
from jobtable.workflows.asl.query_languages.path_filters import MISSING, holds
from jobtable.workflows.asl.query_languages.path_functions import call
from jobtable.workflows.asl.query_languages.path_syntax import (
    CONTEXT,
    CURRENT,
    ROOT,
    Condition,
    Filter,
    Indexes,
    Names,
    Path,
    Slice,
    Step,
    Wildcard,
    names_one,
)
from jobtable.workflows.asl.query_languages.scope import Scope

_MOST_STEPS = 1_000_000


class PathMismatchError(Exception):
    """A path names no value. Its text says why, as Jayway does; `step` is the step that failed."""

    def __init__(self, reason: str, step: str = "") -> None:
        super().__init__(reason)
        self.step = step


class PathBudgetError(Exception):
    """A path takes too many steps."""


class PathReader:
    """Evaluates paths over one scope, within one budget."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._steps = 0

    def read(self, path: Path, *, current: Any = None, leaf_is_null: bool = False) -> Any:
        """Return the value of a path, or raise PathMismatchError.

        With `leaf_is_null` an index past the end of a list reads as null, as it does in payload templates.
        """
        start = self._start(path.root, current)
        found = self._walk(path, start)
        if not path.is_definite:
            value: Any = found
        elif found:
            value = found[0]
        elif leaf_is_null and isinstance(path.steps[-1], Indexes):
            value = None
        else:
            raise PathMismatchError(f"No results for path: {_canonical(path.steps)}", _label(path.steps[-1]))
        if path.call is None:
            return value
        arguments = [
            self.read(each, current=current) if isinstance(each, Path) else each for each in path.call.arguments
        ]
        result = call(path.call.name, value, arguments)
        if result is MISSING:
            raise PathMismatchError(f"Aggregation function attempted to calculate value using empty array: {path.text}")
        return result

    def _start(self, root: str, current: Any) -> Any:
        if root == ROOT:
            return self._scope.input
        if root == CONTEXT:
            return self._scope.context
        if root == CURRENT:
            return current
        if root not in self._scope.variables:
            raise PathMismatchError(f"The variable '{root}' is not assigned")
        return self._scope.variables[root]

    def _walk(self, path: Path, start: Any) -> list[Any]:
        found = [start]
        for number in range(len(path.steps)):
            if not found:
                break
            place = _Place(path.steps[: number + 1], is_last=number == len(path.steps) - 1)
            found = [value for each in found for value in self._take(place, each)]
        return found

    def _take(self, place: _Place, value: Any) -> Iterator[Any]:
        if place.step.deep:
            for each in self._descend(value):
                yield from self._apply(place, each)
        else:
            yield from self._apply(place, value)

    def _descend(self, value: Any) -> Iterator[Any]:
        todo = [value]
        while todo:
            each = todo.pop()
            yield each
            self._spend()
            if isinstance(each, dict):
                todo += [member for member in reversed(each.values()) if isinstance(member, dict | list)]
            elif isinstance(each, list):
                todo += [element for element in reversed(each) if isinstance(element, dict | list)]

    def _apply(self, place: _Place, value: Any) -> Iterator[Any]:
        self._spend()
        match place.step:
            case Names(names):
                yield from _members(place, names, value)
            case Wildcard():
                members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
                self._spend(len(members))
                yield from members
            case Filter(condition):
                yield from self._select(place, condition, value)
            case Indexes() | Slice():
                yield from _elements(place, value)

    def _select(self, place: _Place, condition: Condition, value: Any) -> Iterator[Any]:
        if not isinstance(value, dict | list):
            place.refuse("a filter can not be applied to primitives")
            return
        for each in [value] if isinstance(value, dict) else value:
            self._spend()
            if self._holds(condition, each):
                yield each

    def _holds(self, condition: Condition, current: Any) -> bool:
        def value_of(path: Path) -> Any:
            self._spend()
            try:
                value = self.read(path, current=current)
            except PathMismatchError:
                return MISSING
            return value if path.is_definite or value else MISSING

        try:
            return holds(condition, value_of)
        except PatternTimeoutError as error:
            raise PathBudgetError(str(error)) from None

    def _spend(self, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise PathBudgetError(f"its evaluation takes more than {_MOST_STEPS} steps")


class _Place:
    """A step and the steps in front of it."""

    def __init__(self, steps: tuple[Step, ...], *, is_last: bool) -> None:
        self.steps = steps
        self.step = steps[-1]
        self.is_last = is_last
        self.is_definite = not self.step.deep and all(names_one(each) for each in steps[:-1])

    def refuse(self, reason: str) -> None:
        """Raise if the path can lead here in one way only; otherwise that way finds nothing."""
        if self.is_definite:
            raise PathMismatchError(reason, _label(self.step))


def _members(place: _Place, names: tuple[str, ...], value: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        before = _canonical(place.steps[:-1])
        place.refuse(f"Expected to find an object with property ['{names[0]}'] in path {before}")
        return
    if len(names) > 1 and place.is_last:
        yield {name: value[name] for name in names if name in value}
        return
    for name in names:
        if name in value:
            yield value[name]
        elif not place.is_last and len(names) == 1:
            place.refuse(f"Missing property in path {_canonical(place.steps)}")


def _elements(place: _Place, value: Any) -> Iterator[Any]:
    step = place.step
    if not isinstance(value, list):
        place.refuse(f"Filter: {_bracket(step)} can only be applied to arrays. Current context is: {to_text(value)}")
    elif isinstance(step, Slice):
        yield from value[step.start : step.stop]
    elif isinstance(step, Indexes):
        yield from (value[index] for index in step.indexes if -len(value) <= index < len(value))


def _label(step: Step) -> str:
    if isinstance(step, Names):
        return step.names[0]
    return _bracket(step)


def _bracket(step: Step) -> str:
    match step:
        case Names(names):
            return "[" + ",".join(f"'{name}'" for name in names) + "]"
        case Indexes(indexes):
            return "[" + ",".join(str(index) for index in indexes) + "]"
        case Slice(start, stop):
            return f"[{'' if start is None else start}:{'' if stop is None else stop}]"
        case Wildcard():
            return "[*]"
        case Filter():
            return "[?]"


def _canonical(steps: tuple[Step, ...]) -> str:
    return "$" + "".join((".." if step.deep else "") + _bracket(step) for step in steps)
