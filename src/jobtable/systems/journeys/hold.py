"""The right to run an execution, and what it means to have lost it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jobtable.errors import TransactionFailedError, ValueRefusedError
from jobtable.store.transactions import Transaction
from jobtable.systems.journeys.flow import Fence
from jobtable.systems.journeys.parts import LogLevel


def no_fence(tx: Transaction) -> None:
    """Whoever runs the stage runs it alone."""


@dataclass(frozen=True)
class Hold:
    """The right to run an execution, and whom to tell of it: what the job engine gives to the run."""

    fence: Fence = no_fence
    check: Callable[[], None] = lambda: None
    """Raises ExecutionLost if another worker has the execution; whoever has it now may lose it the next moment."""
    run: int | None = None
    """The number of this run of the execution, if it is not the first."""
    should_stop: Callable[[], bool] = lambda: False
    log: Callable[[LogLevel, str], None] = lambda level, message: None
    progress: Callable[[float, str | None], None] = lambda percent, message: None
    metric: Callable[[str, float], None] = lambda name, value: None
    may_retry: bool = False
    """Whether a run that ends with a retryable error is followed by another one of the same execution."""


class ExecutionLost(BaseException):
    """The execution was cancelled, or another worker runs it: nothing was written. No `except Exception` catches it."""


@contextmanager
def held() -> Iterator[None]:
    """Raise ExecutionLost where a write of the block is refused because the execution is not this run's any more."""
    try:
        yield
    except TransactionFailedError as error:
        raise meaning_of(error) from error


def meaning_of(error: TransactionFailedError) -> BaseException:
    """ExecutionLost where a condition did not hold; otherwise it is the fault of what was to be written."""
    if any(failure.code == "ConditionalCheckFailed" for failure in error.failures):
        return ExecutionLost(str(error))
    reasons = "; ".join(failure.message for failure in error.failures) or str(error)
    return ValueRefusedError(f"what the stage has found cannot be stored: {reasons}. Keep what is large in a file")
