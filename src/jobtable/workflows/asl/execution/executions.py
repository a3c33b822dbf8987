"""The verbs of executions on the store of a job engine."""

from __future__ import annotations

import weakref

from jobtable.jobs.engine import Jobs
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import ActivityTask, Execution, MapRun
from jobtable.workflows.asl.execution.execution_reads import ExecutionReads
from jobtable.workflows.asl.verbs import ExecutionVerbs, RunnableMachine, SyncResult

_KNOWN: weakref.WeakKeyDictionary[Jobs, Executions] = weakref.WeakKeyDictionary()


class Executions(ExecutionReads, ExecutionVerbs):
    """`ExecutionVerbs` on the store of a job engine. Any thread may use it."""

    def __init__(self, jobs: Jobs) -> None:
        super().__init__(jobs.store)

    def start(
        self, machine: RunnableMachine, payload: str, name: str | None = None, *, arns: Arns, trace: str | None = None
    ) -> Execution:
        raise NotImplementedError

    def run_express(self, machine: RunnableMachine, payload: str, name: str | None = None, *, arns: Arns) -> SyncResult:
        raise NotImplementedError

    def stop(self, machine: str, name: str, *, error: str | None = None, cause: str | None = None) -> Execution:
        raise NotImplementedError

    def redrive(self, machine: str, name: str) -> Execution:
        raise NotImplementedError

    def delete(self, machine: str, name: str) -> int:
        raise NotImplementedError

    def succeed(self, token: str, output: str) -> None:
        raise NotImplementedError

    def fail(self, token: str, error: str, cause: str) -> None:
        raise NotImplementedError

    def beat(self, token: str) -> None:
        raise NotImplementedError

    def poll(self, activity: str, worker: str, *, wait_seconds: float = 60.0) -> ActivityTask | None:
        raise NotImplementedError

    def change_map_run(
        self,
        map_run_id: str,
        *,
        max_concurrency: int | None = None,
        tolerated_failure_count: int | None = None,
        tolerated_failure_percentage: float | None = None,
    ) -> MapRun:
        raise NotImplementedError


def executions_of(jobs: Jobs) -> Executions:
    """Return the executions of an engine: one object for all jobs of a process, so that they share what they know."""
    found = _KNOWN.get(jobs)
    if found is None:
        found = _KNOWN[jobs] = Executions(jobs)
    return found
