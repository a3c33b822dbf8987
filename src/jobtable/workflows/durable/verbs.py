"""The verbs of durable executions: what people and pages do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from jobtable.clock import Clock
from jobtable.errors import ConflictError
from jobtable.store.queries import Query
from jobtable.workflows.durable.entities import DurableExecution, DurableOperation, DurableStatus

LONGEST_INVOKE_SECONDS = 900.0
_FIRST_LOOK_SECONDS = 0.005
_LONGEST_LOOK_SECONDS = 0.25


@dataclass(frozen=True)
class Invoked:
    """What a function answered: JSON as text, or Lambda's JSON about its error."""

    payload: str | None
    job_id: str
    is_error: bool = False
    is_late: bool = False
    """Whether it had not answered in time, and goes on."""
    execution: DurableExecution | None = None
    """None for a function that is not durable."""


@dataclass(frozen=True)
class Called:
    """A call of a function that was started, as a job."""

    job_id: str
    execution: DurableExecution | None = None
    """None for a function that is not durable."""


class DurableVerbs(Protocol):
    """Executions of durable functions. Names are unique in a function; (function, name) is an execution's id.

    Errors: NotFoundError for an unknown execution, function or callback, AlreadyExistsError for a name that was used
    with another payload, TokenRefusedError for a callback id that this store did not make, TaskClosedError for a
    callback that was answered or has timed out, ValueRefusedError for a value that cannot be used.
    """

    def start(
        self, function: str, payload: Any = None, *, name: str | None = None, user: str = "local"
    ) -> DurableExecution:
        """Start an execution with a JSON value; durable before this returns.

        A second start with the same name and payload returns the first one's execution.
        """
        ...

    def get(self, function: str, name: str) -> DurableExecution:
        """Return an execution."""
        ...

    def list(
        self, function: str, *, status: DurableStatus | None = None, newest_first: bool = True
    ) -> Query[DurableExecution]:
        """The executions of a function, the newest first."""
        ...

    def operations(self, function: str, name: str) -> Query[DurableOperation]:
        """The operations of an execution, in the order in which they were started."""
        ...

    def get_operation(self, function: str, name: str, number: int) -> DurableOperation:
        """Return an operation of an execution."""
        ...

    def history(
        self, function: str, name: str, *, newest_first: bool = False, after: int = 0
    ) -> Iterator[dict[str, Any]]:
        """The events of an execution, in Lambda's form, from the one after the event with the id `after`."""
        ...

    def input_of(self, execution: DurableExecution) -> str | None:
        """Return the JSON text with which an execution was started."""
        ...

    def output_of(self, execution: DurableExecution) -> str | None:
        """Return the JSON text that an execution returned, or None."""
        ...

    def callback_id(self, operation: DurableOperation) -> str:
        """Return the id by which a callback is answered."""
        ...

    def stop(self, function: str, name: str, *, error: Mapping[str, Any] | None = None) -> DurableExecution:
        """End an execution as STOPPED; one that has ended stays as it is. A handler that runs may record no more."""
        ...

    def delete(self, function: str, name: str) -> int:
        """Delete an ended execution with all its items and objects; return the number of items."""
        ...

    def succeed_callback(self, callback_id: str, result: str | None = None) -> None:
        """Answer a callback with a text, as a rule JSON. A callback is answered once."""
        ...

    def fail_callback(self, callback_id: str, error: Mapping[str, Any] | None = None) -> None:
        """Answer a callback with an error in Lambda's form (`ErrorMessage`, `ErrorType`)."""
        ...

    def beat_callback(self, callback_id: str) -> None:
        """Report that the holder of a callback id still works on it."""
        ...

    def invoke(
        self, function: str, payload: str = "null", *, name: str | None = None, wait_seconds: float | None = None
    ) -> Invoked:
        """Run a function, durable or not, and return its answer; ConflictError if that takes longer than allowed."""
        ...

    def call(self, function: str, payload: str = "null", *, name: str | None = None, user: str = "local") -> Called:
        """Start a call of a function, durable or not, with JSON as text; durable before this returns."""
        ...

    def find_answer(self, function: str, job_id: str) -> Invoked | None:
        """Return what a call answered; None while it runs."""
        ...


def wait_for(look: Callable[[], Invoked | None], seconds: float, clock: Clock) -> Invoked | None:
    """Look until there is an answer; None if that takes longer than so many seconds."""
    until, pause = clock.monotonic() + seconds, _FIRST_LOOK_SECONDS
    while (found := look()) is None:
        if clock.monotonic() >= until:
            return None
        clock.sleep(pause)
        pause = min(pause * 2, _LONGEST_LOOK_SECONDS)
    return found


def refuse_late(called: Called, function: str, seconds: float) -> NoReturn:
    """Raise ConflictError for a call that has not ended in time."""
    what = f"job {called.job_id}" if called.execution is None else f"{function}/{called.execution.name}"
    raise ConflictError(f"{what} has not ended after {seconds:g} s", hint="look at it later")
