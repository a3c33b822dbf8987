"""Evaluates JSONata expressions within limits of depth, time and memory, and fills templates of them."""

from __future__ import annotations

import time
from typing import Any

from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.query_languages import jsonata_library as library
from jobtable.workflows.asl.query_languages.bounded_patterns import PatternTimeoutError
from jobtable.workflows.asl.query_languages.expression_errors import QUERY_EVALUATION_ERROR
from jobtable.workflows.asl.query_languages.jsonata_functions import functions_of, text_of
from jobtable.workflows.asl.query_languages.jsonata_values import (
    MemoryExceededError,
    Sizes,
    UnsupportedValueError,
    from_json,
    to_plain,
)
from jobtable.workflows.asl.query_languages.scope import Scope

_OPENING, _CLOSING = "{%", "%}"
_MOST_NESTED = 100
_MOST_SECONDS = 5.0
_MOST_QUOTED = 10_000


class _LimitError(Exception):
    """An evaluation exceeds its limits."""


_TOO_DEEP = "Stack overflow error: Check for non-terminating recursive function. Consider rewriting as tail-recursive"
_TOO_LONG = "Expression evaluation timeout: Check for infinite loop"


def find_expression(text: str) -> str | None:
    """Return the expression of a string `{% ... %}`, or None if it is a plain string."""
    if len(text) >= len(_OPENING + _CLOSING) and text.startswith(_OPENING) and text.endswith(_CLOSING):
        return text[len(_OPENING) : -len(_CLOSING)].strip()
    return None


def fill_jsonata(template: Any, scope: Scope, field: str) -> Any:
    """Return a template with the value of each string that is an expression."""
    return _Template(scope).fill(template, field)


class _Template:
    """Fills one template; the values that its expressions read are converted once."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._bindings: dict[str, Any] | None = None

    def fill(self, template: Any, field: str) -> Any:
        if isinstance(template, str):
            expression = find_expression(template)
            return template if expression is None else self._evaluate(expression, field)
        if isinstance(template, dict):
            return {name: self.fill(member, f"{field}/{name}") for name, member in template.items()}
        if isinstance(template, list):
            return [self.fill(element, f"{field}[{index}]") for index, element in enumerate(template)]
        return template

    def _evaluate(self, expression: str, field: str) -> Any:
        quoted = expression if len(expression) <= _MOST_QUOTED else expression[:_MOST_QUOTED] + "..."
        opening = f"The JSONata expression '{quoted}' specified for the field '{field}'"

        def fault(rest: str) -> StateFault:
            return StateFault(QUERY_EVALUATION_ERROR, f"{opening} {rest}", field)

        try:
            if self._bindings is None:
                self._bindings = _bindings_of(self._scope)
            value = evaluate(expression, self._bindings)
            if value is None:
                raise fault("returned nothing (undefined).")
            return to_plain(value)
        except library.JsonataError as error:
            raise fault(f"threw an error during evaluation. {error}") from None
        except (MemoryExceededError, library.MissingLibraryError) as error:
            raise fault(f"threw an error during evaluation: {error}") from None
        except _LimitError as error:
            raise fault(f"threw an error during evaluation: {error}") from None
        except UnsupportedValueError:
            raise fault("returned an unsupported result type.") from None
        except RecursionError:
            raise fault(f"threw an error during evaluation: {_TOO_DEEP}") from None


def _bindings_of(scope: Scope) -> dict[str, Any]:
    states = {"input": scope.input, "context": dict(scope.context), "result": scope.result}
    if scope.error_output is not None:
        states["errorOutput"] = scope.error_output
    try:
        variables = {name: from_json(value) for name, value in scope.variables.items()}
        return {**functions_of(scope), **variables, "states": from_json(states)}
    except ValueError as error:
        raise library.JsonataError(f"D1001: {error}") from None


def evaluate(expression: str, bindings: dict[str, Any]) -> Any:
    """Return the library's value of an expression: None if it is undefined.

    Raises JsonataError, and what says that a limit was exceeded.
    """
    parsed = library.parse(expression)
    limits = _Limits()
    try:
        return library.evaluate(parsed, bindings, on_entry=limits.enter, on_exit=limits.leave, text_of=text_of)
    except PatternTimeoutError:
        raise _LimitError(_TOO_LONG) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, RecursionError):
            raise
        # The library lets errors of Python through where an argument is of the wrong type.
        raise library.JsonataError(str(error)) from None


class _Limits:
    """Counts the depth and the time of one evaluation, and measures what it builds."""

    def __init__(self) -> None:
        self._depth = 0
        self._deadline = time.monotonic() + _MOST_SECONDS
        self._sizes = Sizes()

    def enter(self) -> None:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise _LimitError(_TOO_DEEP)
        if time.monotonic() > self._deadline:
            raise _LimitError(_TOO_LONG)

    def leave(self, value: Any) -> None:
        self._depth -= 1
        self._sizes.check(value)
