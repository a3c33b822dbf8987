"""Arithmetic that comes out the same every time."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

P = ParamSpec("P")
T = TypeVar("T")


def in_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function calculate in one thread: several would add numbers up in another order each time."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with threadpool_limits(1):
            return function(*args, **kwargs)

    return limited
