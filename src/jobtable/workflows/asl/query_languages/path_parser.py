"""Parses JSONPaths and the conditions of their filters."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from jobtable.workflows.asl.query_languages.bounded_patterns import Pattern, compile_pattern
from jobtable.workflows.asl.query_languages.expression_text import QUOTES, ExpressionText
from jobtable.workflows.asl.query_languages.path_syntax import (
    CONTEXT,
    CURRENT,
    ROOT,
    Call,
    Comparison,
    Condition,
    Every,
    Exists,
    Filter,
    Indexes,
    Names,
    Not,
    Path,
    Slice,
    Some,
    Step,
    Wildcard,
)

FUNCTIONS = frozenset(
    {"length", "size", "min", "max", "avg", "stddev", "sum", "concat", "keys", "append", "first", "last", "index"}
)
_MOST_NESTED = 50
_NAME = re.compile(r"[^\s.\[\]()'\",]+")
_VARIABLE = re.compile(r"[^\W\d]\w*")
_INTEGER = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?")
_OPERATOR = re.compile(
    r"===|!==|==|!=|<>|<=|>=|=~|<|>|(?:in|nin|subsetof|anyof|noneof|all|size|empty|contains)\b", re.IGNORECASE
)
_REGEX_FLAGS = re.compile(r"[a-zA-Z]*")
_CONSTANTS = {"true": True, "false": False, "null": None}
_CONSTANT = re.compile(r"(?:true|false|null)\b")


@lru_cache(maxsize=1024)
def parse_path(text: str) -> Path:
    """Return the parts of a whole path, or raise ExpressionSyntaxError."""
    reader = ExpressionText(text)
    path = read_path_at(reader)
    if not reader.is_at_end:
        raise reader.error("unexpected text")
    return path


def read_path_at(reader: ExpressionText) -> Path:
    """Read a path that starts with `$`, `$$`, `$name`, or `@` in a filter."""
    start = reader.at
    root = _read_root(reader)
    steps: list[Step] = []
    call = None
    while call is None and reader.next in {".", "["}:
        if reader.next == "[":
            steps.append(_read_bracket(reader, deep=False))
            continue
        step, call = _read_dotted(reader)
        if step is not None:
            steps.append(step)
    return Path(reader.text[start : reader.at], root, tuple(steps), call)


def _read_root(reader: ExpressionText) -> str:
    if reader.depth and reader.take(CURRENT):
        return CURRENT
    if reader.take(CONTEXT):
        return CONTEXT
    if not reader.take(ROOT):
        raise reader.error("a path starts with '$'")
    return reader.match(_VARIABLE) or ROOT


def _read_dotted(reader: ExpressionText) -> tuple[Step | None, Call | None]:
    deep = reader.take("..")
    if not deep:
        reader.expect(".")
    if reader.next == "[":
        return _read_bracket(reader, deep=deep), None
    if reader.take("*"):
        return Wildcard(deep), None
    name = reader.match(_NAME)
    if name is None:
        raise reader.error("expected a name")
    if reader.next != "(":
        return Names((name,), deep), None
    if name not in FUNCTIONS:
        raise reader.error(f"unknown function {name!r}")
    return (Wildcard(deep=True) if deep else None), Call(name, _read_arguments(reader))


def _read_arguments(reader: ExpressionText) -> tuple[Any, ...]:
    reader.expect("(")
    reader.skip_space()
    arguments: list[Any] = []
    while not reader.take(")"):
        if arguments:
            reader.expect(",")
            reader.skip_space()
        arguments.append(read_path_at(reader) if reader.next == ROOT else _read_value(reader))
        reader.skip_space()
    return tuple(arguments)


def _read_bracket(reader: ExpressionText, *, deep: bool) -> Step:
    reader.expect("[")
    reader.skip_space()
    step: Step
    if reader.take("*"):
        step = Wildcard(deep)
    elif reader.next in QUOTES:
        step = Names(_read_names(reader), deep)
    elif reader.take("?"):
        step = Filter(_read_condition(reader), deep)
    else:
        step = _read_positions(reader, deep=deep)
    reader.skip_space()
    reader.expect("]")
    return step


def _read_names(reader: ExpressionText) -> tuple[str, ...]:
    names: list[str] = []
    while not names or reader.take(","):
        reader.skip_space()
        if reader.next not in QUOTES:
            raise reader.error("expected a name in quotes")
        names.append(reader.quoted())
        reader.skip_space()
    return tuple(names)


def _read_positions(reader: ExpressionText, *, deep: bool) -> Step:
    first = _read_integer(reader)
    if reader.take(":"):
        stop = _read_integer(reader)
        if reader.take(":"):
            _read_integer(reader)  # Jayway reads a step, too, and ignores it.
        return Slice(first, stop, deep)
    if first is None:
        raise reader.error("expected an index, a name in quotes, '*' or '?'")
    indexes = [first]
    while reader.take(","):
        index = _read_integer(reader)
        if index is None:
            raise reader.error("expected an index")
        indexes.append(index)
    return Indexes(tuple(indexes), deep)


def _read_integer(reader: ExpressionText) -> int | None:
    reader.skip_space()
    found = reader.match(_INTEGER)
    reader.skip_space()
    return None if found is None else int(found)


# --- filters ----------------------------------------------------------------------------------------------------------


def _read_condition(reader: ExpressionText) -> Condition:
    reader.skip_space()
    reader.expect("(")
    condition = _read_some(reader)
    reader.expect(")")
    return condition


def _read_some(reader: ExpressionText) -> Condition:
    reader.enter(_MOST_NESTED)
    found = [_read_every(reader)]
    while reader.take("||"):
        found.append(_read_every(reader))
    reader.leave()
    return found[0] if len(found) == 1 else Some(tuple(found))


def _read_every(reader: ExpressionText) -> Condition:
    found = [_read_one(reader)]
    while reader.take("&&"):
        found.append(_read_one(reader))
    return found[0] if len(found) == 1 else Every(tuple(found))


def _read_one(reader: ExpressionText) -> Condition:
    is_negated = False
    reader.skip_space()
    while reader.take("!"):
        is_negated = not is_negated
        reader.skip_space()
    condition = _read_condition(reader) if reader.next == "(" else _read_comparison(reader)
    reader.skip_space()
    return Not(condition) if is_negated else condition


def _read_comparison(reader: ExpressionText) -> Condition:
    left = _read_operand(reader)
    reader.skip_space()
    operator = reader.match(_OPERATOR)
    if operator is not None:
        return Comparison(left, operator.lower(), _read_operand(reader))
    if isinstance(left, Path):
        return Exists(left)
    raise reader.error("expected an operator")


def _read_operand(reader: ExpressionText) -> Any:
    reader.skip_space()
    if reader.next in {ROOT, CURRENT}:
        return read_path_at(reader)
    if reader.take("/"):
        return _read_regex(reader)
    return _read_value(reader)


def _read_regex(reader: ExpressionText) -> Pattern:
    parts: list[str] = []
    while not reader.take("/"):
        if reader.is_at_end:
            raise reader.error("a regular expression is not closed")
        if reader.take("\\/"):
            parts.append("/")
            continue
        length = 2 if reader.next == "\\" else 1
        parts.append(reader.text[reader.at : reader.at + length])
        reader.at += length
    flags = reader.match(_REGEX_FLAGS) or ""
    try:
        return compile_pattern(
            "".join(parts), ignores_case="i" in flags, is_multiline="m" in flags, dot_is_all="s" in flags
        )
    except ValueError as error:
        raise reader.error(f"invalid regular expression, {error}") from None


def _read_value(reader: ExpressionText) -> Any:
    """Read a string, a number, `true`, `false`, `null` or a list of these."""
    reader.skip_space()
    if reader.next in QUOTES:
        return reader.quoted()
    if reader.take("["):
        return _read_list(reader)
    constant = reader.match(_CONSTANT)
    if constant is not None:
        return _CONSTANTS[constant]
    number = reader.match(_NUMBER)
    if number is None:
        raise reader.error("expected a value")
    return int(number) if number.lstrip("-").isdigit() and len(number) < 40 else float(number)


def _read_list(reader: ExpressionText) -> list[Any]:
    reader.enter(_MOST_NESTED)
    values: list[Any] = []
    reader.skip_space()
    while not reader.take("]"):
        if values:
            reader.expect(",")
        values.append(_read_value(reader))
        reader.skip_space()
    reader.leave()
    return values
