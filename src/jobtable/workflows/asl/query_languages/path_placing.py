"""Puts a value at a reference path: ResultPath."""

from __future__ import annotations

from typing import Any

from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.query_languages.expression_errors import (
    RESULT_PATH_MATCH_FAILURE,
    ExpressionSyntaxError,
    to_text,
)
from jobtable.workflows.asl.query_languages.path_parser import parse_path
from jobtable.workflows.asl.query_languages.path_syntax import ROOT, Indexes, Names


def place(path: str, raw_input: Any, value: Any) -> Any:
    """Return the raw input with a value at a reference path; `$` is the value itself. Missing objects are created.

    The raw input stays as it is; the result shares what did not change. Raises
    StateFault("States.ResultPathMatchFailure") if the path leads through something that has no members.
    """
    try:
        parsed = parse_path(path)
    except ExpressionSyntaxError as error:
        raise _failure(f"Invalid path '{path}': {error}") from None
    if not parsed.is_reference or parsed.root != ROOT:
        raise _failure(f"Value is not a Reference Path: {path}")
    keys = [
        step.names[0] if isinstance(step, Names) else step.indexes[0]
        for step in parsed.steps
        if isinstance(step, Names | Indexes)
    ]
    if not keys:
        return value
    holders: list[Any] = []
    holder = raw_input
    for number, key in enumerate(keys):
        if holder is None and number > 0 and isinstance(key, str):
            holder = {}
        if not _can_hold(holder, key):
            raise _failure(f'Unable to apply step "{key}" to input {to_text(raw_input)}')
        holders.append(holder)
        holder = _member(holder, key)
    for holder, key in zip(reversed(holders), reversed(keys), strict=True):
        changed: Any = dict(holder) if isinstance(holder, dict) else list(holder)
        changed[key] = value
        value = changed
    return value


def _can_hold(holder: Any, key: str | int) -> bool:
    if isinstance(key, str):
        return isinstance(holder, dict)
    return isinstance(holder, list) and -len(holder) <= key < len(holder)


def _member(holder: Any, key: str | int) -> Any:
    return holder.get(key) if isinstance(holder, dict) else holder[key]


def _failure(cause: str) -> StateFault:
    return StateFault(RESULT_PATH_MATCH_FAILURE, cause)
