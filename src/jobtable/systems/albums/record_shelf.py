"""What the functions of the workflow read and write: the records of their execution, and its image.

Each write requires that the execution is at the step of the function: a function that a worker runs too late, because
another one has done its work, changes nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from jobtable.clock import wall_time
from jobtable.errors import ConflictError, TransactionFailedError, kind_and_text
from jobtable.jobs.engine import Jobs
from jobtable.model import Update
from jobtable.store import Store
from jobtable.store.transactions import Transaction
from jobtable.systems.albums.entities import (
    Album,
    Execution,
    ExecutionStatus,
    ExecutionWatch,
    FunctionCall,
    Step,
    ValidationTask,
)
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.workflows.function_calls import jobs_of

LOOK_AGAIN = timedelta(seconds=2)
"""How often the watch checks on an execution that runs."""
_RAREST_LOOK = timedelta(hours=6)
"""How often it does so, at least, while the execution waits for a person."""
_MILLISECOND = timedelta(milliseconds=1)
_MOST_WRITES = 90
"""Of one transaction, with the check of the execution."""


class RecordShelf:
    """The records of one execution, for a function at one of its steps."""

    def __init__(self, jobs: Jobs, event: Mapping[str, Any], step: Step) -> None:
        self.clock = jobs.clock
        self.objects = jobs.objects
        # Of its own, so that it counts what this function consumes.
        self.store = Store(jobs.store.backend, prefix=jobs.store.prefix, clock=jobs.store.clock)
        self.records = AlbumWorkflows(self.store)
        self.step = step
        self.execution = self._entered(str(event["execution_id"]))

    def _entered(self, execution_id: str) -> Execution:
        """Return the execution at this step; ConflictError if it has ended, or is at a later one."""

        def enter(execution: Execution) -> Execution:
            at = Step(execution.current_step or Step.READ_IMAGE)
            is_active = execution.status in (ExecutionStatus.RUNNING, ExecutionStatus.WAITING)
            if not is_active or execution.deleted_at is not None or at.number > self.step.number:
                raise ConflictError(f"execution {execution_id} is {execution.status} at {at}, no longer at {self.step}")
            if at is self.step:
                return execution
            return self.store.update(
                Execution.key(execution_id=execution_id),
                Execution.current_step.set(self.step),
                Execution.updated_at.set(self.clock.now()),
                when=(Execution.status == execution.status)
                & (Execution.current_step == execution.current_step)
                & Execution.deleted_at.missing(),
            )

        get = lambda: self.records.get_execution(execution_id)  # noqa: E731 - one expression
        return self.store.retrying(get, enter, f"move execution {execution_id} to {self.step}")

    @classmethod
    @contextmanager
    def open(cls, context: Any, event: Mapping[str, Any], step: Step) -> Iterator[RecordShelf]:
        """Open the store of the worker that calls, or on Lambda what JOBTABLE_STORE and JOBTABLE_OBJECTS name.

        What the function took in the block is recorded.
        """
        jobs = jobs_of(context)
        started_at, began = jobs.clock.now(), jobs.clock.monotonic()
        shelf = cls(jobs, event, step)
        problem: str | None = None
        try:
            yield shelf
        except Exception as error:
            problem = kind_and_text(error)[:500]
            raise
        finally:
            took = timedelta(seconds=jobs.clock.monotonic() - began)
            shelf._record(context, started_at, started_at + took, problem)

    def _record(self, context: Any, started_at: datetime, ended_at: datetime, problem: str | None) -> None:
        call = FunctionCall(
            execution_id=self.execution.execution_id,
            function=getattr(context, "function_name", None) or self.step,
            step=self.step,
            job_id=getattr(context, "log_stream_name", None) or None,
            started_at=started_at,
            ended_at=ended_at,
            memory_mb=int(getattr(context, "memory_limit_in_mb", 0) or 0),
            write_units=self.store.capacity.total().write,
            problem=problem,
        )
        # Of an execution that is deleted nothing is left.
        with contextlib.suppress(TransactionFailedError), self.store.transaction() as tx:
            tx.check(Execution.key(execution_id=call.execution_id), Execution.deleted_at.missing())
            tx.put(call)

    def albums(self) -> list[Album]:
        """Return the albums of the execution."""
        return self.records.list_albums(self.execution.execution_id)

    def write(self, put: Sequence[Album], deleted: Sequence[Album] = ()) -> None:
        """Store and delete albums; ConflictError if the execution is no longer at this step."""
        acts: list[Callable[[Transaction], object]] = [
            *(lambda tx, each=each: tx.put(each) for each in put),
            *(lambda tx, each=each: tx.delete(each) for each in deleted),
        ]
        for start in range(0, len(acts), _MOST_WRITES):
            with self.moving() as tx:
                tx.check(
                    Execution.key(execution_id=self.execution.execution_id),
                    (Execution.status == self.execution.status)
                    & (Execution.current_step == self.step)
                    & Execution.deleted_at.missing(),
                )
                for act in acts[start : start + _MOST_WRITES]:
                    act(tx)

    def moving(self) -> _Moving:
        """Return a transaction that fails with ConflictError if the execution has moved."""
        return _Moving(self.store.transaction(), self.execution)

    def finish(self) -> Execution:
        """Complete the execution. A second call changes nothing."""
        execution = self.execution
        with self.moving() as tx:
            add_end(tx, execution, ExecutionStatus.COMPLETED, self.clock.now(), wall_time(self.clock))
        return self.records.get_execution(execution.execution_id)


class _Moving:
    """A transaction on an execution, whose failure is a conflict that names it."""

    def __init__(self, tx: Transaction, execution: Execution) -> None:
        self._tx = tx
        self._execution = execution

    def __enter__(self) -> Transaction:
        return self._tx.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self._tx.__exit__(kind, error, trace)
        except TransactionFailedError as failed:
            raise moved_on(self._execution, failed) from failed


def moved_on(execution: Execution, error: Exception) -> ConflictError:
    """Return the error of a change to an execution that has moved meanwhile."""
    at = f"{execution.status} at step {execution.current_step}"
    return ConflictError(f"execution {execution.execution_id} is no longer {at}: {error}")


def update_seen(tx: Transaction, execution: Execution, now: datetime, *updates: Update) -> None:
    """Add an update of an execution that holds if nothing of it has moved since it was read."""
    here = (Execution.status == execution.status) & (Execution.current_step == execution.current_step)
    here &= Execution.attempt.missing() if execution.attempt is None else Execution.attempt == execution.attempt
    here &= Execution.deleted_at.missing()
    tx.update(Execution.key(execution_id=execution.execution_id), *updates, Execution.updated_at.set(now), when=here)


def add_end(
    tx: Transaction, execution: Execution, status: ExecutionStatus, now: datetime, wall: datetime, *updates: Update
) -> None:
    """Add the end of an execution: its duration does not count the time that people took."""
    started = execution.attempt_started_at or execution.start_time
    took = max(0, (now - started) // _MILLISECOND - (execution.waited_ms or 0))
    ends = (
        Execution.status.set(status),
        Execution.end_time.set(now),
        Execution.duration_ms.set((execution.earlier_ms or 0) + took),
    )
    update_seen(tx, execution, now, *ends, *updates)
    # The watch measures it as soon as the workflow has ended, too.
    tx.update(ExecutionWatch.key(execution_id=execution.execution_id), ExecutionWatch.due_at.set(wall))


def next_look(task: ValidationTask, now: datetime) -> datetime:
    """Return when the watch looks whether the workflow behind a question still runs: ever more rarely."""
    waited = max(LOOK_AGAIN, min(now - task.created_at, _RAREST_LOOK))
    return min(task.expires_at, now + waited)


def milliseconds(begin: datetime, end: datetime) -> int:
    """Return how long something took."""
    return max(0, (end - begin) // _MILLISECOND)
