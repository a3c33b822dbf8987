"""Reads what a field of a JSONPath state names: a path or an intrinsic function."""

from __future__ import annotations

from typing import Any

from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.query_languages.expression_errors import (
    INTRINSIC_FAILURE,
    REFERENCE_PATH_CONFLICT,
    RUNTIME,
    ExpressionSyntaxError,
    to_text,
)
from jobtable.workflows.asl.query_languages.intrinsic_functions import IntrinsicError, invoke
from jobtable.workflows.asl.query_languages.intrinsic_syntax import (
    PREFIX,
    Argument,
    Constant,
    Invocation,
    Text,
    parse_intrinsic,
)
from jobtable.workflows.asl.query_languages.path_parser import parse_path
from jobtable.workflows.asl.query_languages.path_reading import PathBudgetError, PathMismatchError, PathReader
from jobtable.workflows.asl.query_languages.path_syntax import CONTEXT, ROOT, Path
from jobtable.workflows.asl.query_languages.scope import Scope

_SELECTORS = frozenset({"", "InputPath", "OutputPath"})
_REFERENCES = frozenset({"ItemsPath"})


def read_path(path: str, scope: Scope, *, field: str = "") -> Any:
    """Return the value of a path (`$...`, `$$...`, `$variable...`) or of an intrinsic function.

    A path with a wildcard, a slice or a filter has a list. `field` is the member that holds the path, for the cause:
    `InputPath`, `ErrorPath`, or `address.$` of a template.

    Raises StateFault: "States.Runtime" if a path that names one value finds none (for ItemsPath
    "States.ReferencePathConflict", as AWS does), and "States.IntrinsicFailure" for the arguments of a function.
    """
    try:
        return _read(path, scope, field)
    except RecursionError:
        raise StateFault(RUNTIME, f"Invalid path '{path}': the data is nested too deeply") from None


def is_present(path: str, scope: Scope) -> bool:
    """Return whether a path finds a value, as IsPresent of a Choice rule asks. A null is a value."""
    try:
        parsed = parse_path(path)
        value = PathReader(scope).read(parsed)
    except (PathMismatchError, ExpressionSyntaxError, PathBudgetError):
        return False
    return parsed.is_definite or bool(value)


def _read(path: str, scope: Scope, field: str) -> Any:
    try:
        if path.startswith(PREFIX):
            return _evaluate(path, scope)
        return PathReader(scope).read(parse_path(path), leaf_is_null=field not in _REFERENCES)
    except PathMismatchError as mismatch:
        raise _mismatch(path, scope, field, mismatch) from None
    except (ExpressionSyntaxError, PathBudgetError) as error:
        raise StateFault(RUNTIME, f"Invalid path '{path}': {error}") from None


def _mismatch(path: str, scope: Scope, field: str, mismatch: PathMismatchError) -> StateFault:
    root = parse_path(path).root
    if root not in {ROOT, CONTEXT} and root not in scope.variables:
        return StateFault(RUNTIME, f"Invalid path '{path}': The variable '{root}' is not assigned")
    searched = to_text(scope.context if root == CONTEXT else scope.input)
    if field in _SELECTORS:
        return StateFault(RUNTIME, f"Invalid path '{path}' : {mismatch}")
    if field in _REFERENCES:
        cause = f'Unable to apply step "{mismatch.step}" to input {searched}'
        return StateFault(REFERENCE_PATH_CONFLICT, cause)
    cause = f"The JSONPath '{path}' specified for the field '{field}' could not be found in the input '{searched}'"
    return StateFault(RUNTIME, cause)


def _evaluate(text: str, scope: Scope) -> Any:
    try:
        return _Evaluation(scope).value_of(parse_intrinsic(text))
    except _ArgumentError as error:
        raise StateFault(error.error, f"The function '{text}' had the following error: {error}") from None


class _ArgumentError(Exception):
    def __init__(self, error: str, cause: str) -> None:
        super().__init__(cause)
        self.error = error


class _Evaluation:
    """One intrinsic function with those inside it."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._reader = PathReader(scope)

    def value_of(self, invocation: Invocation) -> Any:
        arguments = [
            each.template
            if isinstance(each, Text) and invocation.name == "Format" and number == 0
            else self._argument(each)
            for number, each in enumerate(invocation.arguments)
        ]
        try:
            return invoke(invocation.name, arguments, self._scope.random)
        except IntrinsicError as error:
            cause = f"Invalid arguments in {PREFIX}{invocation.name}: {error}"
            raise _ArgumentError(INTRINSIC_FAILURE, cause) from None

    def _argument(self, argument: Argument) -> Any:
        match argument:
            case Text(value) | Constant(value):
                return value
            case Invocation():
                return self.value_of(argument)
            case Path():
                return self._read(argument)

    def _read(self, path: Path) -> Any:
        try:
            return self._reader.read(path)
        except PathMismatchError as mismatch:
            if path.root not in {ROOT, CONTEXT}:
                raise _ArgumentError(RUNTIME, f"{mismatch} for the field '{path.text}'") from None
            # AWS names the path below the context object, and quotes the input that it did not search.
            text = ROOT + path.text.removeprefix(path.root)
            searched = to_text(self._scope.input)
            cause = f"The JsonPath argument for the field '{text}' could not be found in the input '{searched}'"
            raise _ArgumentError(RUNTIME, cause) from None
