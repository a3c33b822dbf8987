"""What the steps of the analysis share: the types of their arrays, and arithmetic that is the same every time."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
P = ParamSpec("P")
T = TypeVar("T")


def in_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function calculate in one thread: several would add numbers in a different order each time."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with threadpool_limits(1):
            return function(*args, **kwargs)

    return limited
