"""The verbs of executions on the store of a job engine."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

from jobtable.errors import missing
from jobtable.jobs.engine import Jobs
from jobtable.store.queries import Query
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import ActivityTask, Execution, ExecutionEvent, ExecutionStatus, MapRun
from jobtable.workflows.asl.verbs import ExecutionVerbs, RunnableMachine, SyncResult

_KNOWN: weakref.WeakKeyDictionary[Jobs, Executions] = weakref.WeakKeyDictionary()


class Executions(ExecutionVerbs):
    """`ExecutionVerbs` on the store of a job engine. Any thread may use it."""

    def __init__(self, jobs: Jobs) -> None:
        self._store = jobs.store

    def start(
        self, machine: RunnableMachine, payload: str, name: str | None = None, *, arns: Arns, trace: str | None = None
    ) -> Execution:
        raise NotImplementedError

    def run_express(self, machine: RunnableMachine, payload: str, name: str | None = None, *, arns: Arns) -> SyncResult:
        raise NotImplementedError

    def get(self, machine: str, name: str) -> Execution:
        found = self._store.find(Execution.key(machine=machine, name=name))
        if found is None:
            raise missing("execution", f"{machine}/{name}")
        return found

    def list(self, machine: str, *, status: ExecutionStatus | None = None) -> Query[Execution]:
        if status is None:
            return self._store.query(Execution.by_machine(machine=machine), newest_first=True)
        return self._store.query(Execution.by_status(machine=machine, status=status), newest_first=True)

    def history(self, machine: str, name: str, *, newest_first: bool = False) -> Query[ExecutionEvent]:
        return self._store.query(ExecutionEvent.key(machine=machine, name=name), newest_first=newest_first)

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

    def get_map_run(self, map_run_id: str) -> MapRun:
        found = self._store.find(MapRun.key(map_run_id=map_run_id))
        if found is None:
            raise missing("map run", map_run_id)
        return found

    def list_map_runs(self, machine: str, name: str) -> Query[MapRun]:
        return self._store.query(MapRun.by_execution(machine=machine, name=name))

    def change_map_run(
        self,
        map_run_id: str,
        *,
        max_concurrency: int | None = None,
        tolerated_failure_count: int | None = None,
        tolerated_failure_percentage: float | None = None,
    ) -> MapRun:
        raise NotImplementedError

    def children(self, machine: str, map_run_id: str) -> Iterator[Execution]:
        run = self.get_map_run(map_run_id)
        for each in self.list(f"{machine}/{run.label}"):
            if each.map_run_id == map_run_id:
                yield each


def executions_of(jobs: Jobs) -> Executions:
    """Return the executions of an engine: one object for all jobs of a process, so that they share what they know."""
    found = _KNOWN.get(jobs)
    if found is None:
        found = _KNOWN[jobs] = Executions(jobs)
    return found
