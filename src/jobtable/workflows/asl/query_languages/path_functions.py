"""The functions at the end of JSONPaths: `$.prices.sum()`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jobtable.workflows.asl.query_languages.path_filters import MISSING, is_number


def call(name: str, value: Any, arguments: list[Any]) -> Any:
    """Apply a function to the value of its path; return MISSING if it has no result for it."""
    if name in _AGGREGATES:
        numbers = [each for each in [*(value if isinstance(value, list) else []), *_flat(arguments)] if is_number(each)]
        return _AGGREGATES[name](numbers) if numbers else MISSING
    return _FUNCTIONS[name](value, arguments)


def _flat(arguments: list[Any]) -> list[Any]:
    return [each for argument in arguments for each in (argument if isinstance(argument, list) else [argument])]


def _deviation(numbers: list[float]) -> float:
    mean = math.fsum(numbers) / len(numbers)
    return math.sqrt(math.fsum((each - mean) ** 2 for each in numbers) / len(numbers))


_AGGREGATES: dict[str, Callable[[list[Any]], float]] = {
    "min": lambda numbers: float(min(numbers)),
    "max": lambda numbers: float(max(numbers)),
    "sum": lambda numbers: float(sum(numbers)),
    "avg": lambda numbers: float(sum(numbers)) / len(numbers),
    "stddev": lambda numbers: _deviation([float(each) for each in numbers]),
}


def _length(value: Any, arguments: list[Any]) -> Any:
    value = arguments[0] if arguments else value
    return len(value) if isinstance(value, list | dict | str) else MISSING


def _keys(value: Any, _arguments: list[Any]) -> Any:
    return list(value) if isinstance(value, dict) else MISSING


def _concat(value: Any, arguments: list[Any]) -> str:
    texts = [*(value if isinstance(value, list) else []), *_flat(arguments)]
    return "".join(each for each in texts if isinstance(each, str))


def _append(value: Any, arguments: list[Any]) -> Any:
    return [*value, *arguments] if isinstance(value, list) else MISSING


def _element(value: Any, index: Any) -> Any:
    if not isinstance(value, list) or not isinstance(index, int) or not -len(value) <= index < len(value):
        return MISSING
    return value[index]


_FUNCTIONS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "length": _length,
    "size": _length,
    "keys": _keys,
    "concat": _concat,
    "append": _append,
    "first": lambda value, _arguments: _element(value, 0),
    "last": lambda value, _arguments: _element(value, -1),
    "index": lambda value, arguments: _element(value, arguments[0] if arguments else None),
}
