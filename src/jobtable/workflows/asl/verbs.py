"""The verbs of executions: what people, pages and the Step Functions API do with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from jobtable.errors import ConflictError
from jobtable.store.queries import Paged, Query
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import (
    ActivityTask,
    Execution,
    ExecutionEvent,
    ExecutionStatus,
    MachineType,
    MapRun,
)
from jobtable.workflows.asl.run import CallService, Json


@dataclass(frozen=True)
class RunnableMachine:
    """What an execution runs: a machine as it is now, or one of its versions."""

    name: str
    definition: str
    type: MachineType = MachineType.STANDARD
    qualifier: str | None = None
    version: str | None = None
    role_arn: str | None = None


def refuse_standard(machine: RunnableMachine) -> None:
    """Raise ConflictError for a machine that cannot be run while its caller waits."""
    if machine.type is not MachineType.EXPRESS:
        raise ConflictError(f"state machine {machine.name} is not express", hint="start an execution of it")


@dataclass(frozen=True)
class SyncResult:
    """How an express execution that was awaited has ended."""

    execution: Execution
    billed_ms: int
    billed_mb: int = 64


class MachineSource(Protocol):
    """Where executions find the machines that they start: what `states:startExecution` names."""

    def runnable(self, arn: str) -> RunnableMachine:
        """Return what the ARN of a machine, version or alias names; NotFoundError if it does not exist."""
        ...


@dataclass(frozen=True)
class ChildExecution:
    """An execution of a distributed Map's run, with its whole input and output."""

    record: Execution
    input: str
    output: str | None


class ServiceVerbs(Protocol):
    """The services that Task states and distributed Maps ask: tables, objects, and the handlers of messages.

    Every verb raises StateFault with the error name that Step Functions reports. After a crash it may be called again.
    """

    def call(self, command: CallService, execution: str) -> Json:
        """Return the answer of a service.

        `execution` is the ARN of the execution that asks: with the command's frame and visit it identifies a message.
        """
        ...

    def read_items(self, reader: Json) -> Json:
        """Return the items that an evaluated ItemReader names: an array, or an object whose members are the items."""
        ...

    def write_results(self, writer: Json, results: list[Json], children: Iterable[ChildExecution]) -> Json:
        """Store the results of a distributed Map as an evaluated ResultWriter says; return what the Map returns.

        `results` are the outputs of those that succeeded, in the order of the items; `children` are all executions of
        the run, and are read only if the ResultWriter stores them.
        """
        ...


class ExecutionVerbs(Protocol):
    """Executions of state machines. Names are unique in a machine; (machine, name) is an execution's id.

    Errors: NotFoundError for an unknown execution, AlreadyExistsError for a taken name, ConflictError for a state that
    does not allow the act, ValueRefusedError for a value that cannot be used, TokenRefusedError for an unknown task
    token, TaskClosedError for one that was answered or whose execution no longer waits.
    """

    def start(
        self,
        machine: RunnableMachine,
        payload: str,
        name: str | None = None,
        *,
        arns: Arns,
        trace: str | None = None,
        user: str = "local",
    ) -> Execution:
        """Start an execution for a user. A second start of a running one with the same name and input returns it.

        A standard one is durable before this returns. An express one runs at most five minutes and keeps no history.
        """
        ...

    def run_express(self, machine: RunnableMachine, payload: str, name: str | None = None, *, arns: Arns) -> SyncResult:
        """Run an express machine in this process and return how it ended."""
        ...

    def get(self, machine: str, name: str) -> Execution:
        """Return an execution."""
        ...

    def list(self, machine: str, *, status: ExecutionStatus | None = None) -> Query[Execution]:
        """The executions of a machine, the newest first."""
        ...

    def history(self, machine: str, name: str, *, newest_first: bool = False) -> Paged[ExecutionEvent]:
        """The events of an execution."""
        ...

    def stop(self, machine: str, name: str, *, error: str | None = None, cause: str | None = None) -> Execution:
        """Abort an execution; its tasks are cancelled."""
        ...

    def redrive(self, machine: str, name: str) -> Execution:
        """Continue an execution that failed, timed out or was aborted, from the states that failed."""
        ...

    def delete(self, machine: str, name: str) -> int:
        """Delete an ended execution with all its items, objects and jobs; return the number of items."""
        ...

    def succeed(self, token: str, output: str) -> None:
        """Answer a task token with JSON text. A token is answered once."""
        ...

    def fail(self, token: str, error: str | None, cause: str | None) -> None:
        """Answer a task token with a failure."""
        ...

    def beat(self, token: str) -> None:
        """Report that the worker with a task token lives."""
        ...

    def poll(self, activity: str, worker: str, *, wait_seconds: float = 60.0) -> ActivityTask | None:
        """Take the oldest task of an activity; None if there is none within that time. No two pollers get the same."""
        ...

    def get_map_run(self, map_run_id: str) -> MapRun:
        """Return a run of a distributed Map."""
        ...

    def list_map_runs(self, machine: str, name: str) -> Query[MapRun]:
        """The runs of distributed Maps of an execution, the oldest first."""
        ...

    def change_map_run(
        self,
        map_run_id: str,
        *,
        max_concurrency: int | None = None,
        tolerated_failure_count: int | None = None,
        tolerated_failure_percentage: float | None = None,
    ) -> MapRun:
        """Change those limits of a running one that are not None."""
        ...

    def children(self, machine: str, map_run_id: str) -> Iterator[Execution]:
        """The child executions of a run of a distributed Map."""
        ...
