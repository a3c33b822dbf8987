"""The verbs of executions on the store of a job engine."""

from __future__ import annotations

from jobtable.jobs.engine import Jobs
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import ActivityTask, Execution, MapRun
from jobtable.workflows.asl.execution.answering import TaskAnswers
from jobtable.workflows.asl.execution.carrying_out import CarriesOut
from jobtable.workflows.asl.execution.ending import ExecutionEnds
from jobtable.workflows.asl.execution.execution_core import ExecutionCore
from jobtable.workflows.asl.execution.execution_reads import ExecutionReads
from jobtable.workflows.asl.execution.express_runs import run_express
from jobtable.workflows.asl.execution.map_changes import change_map_run
from jobtable.workflows.asl.execution.moving import Mover
from jobtable.workflows.asl.execution.redriving import ExecutionRedrives
from jobtable.workflows.asl.execution.starting import ExecutionStarts
from jobtable.workflows.asl.verbs import ExecutionVerbs, RunnableMachine, SyncResult


class Executions(ExecutionReads, ExecutionVerbs):
    """`ExecutionVerbs` on the store of a job engine. Any thread may use it."""

    def __init__(self, jobs: Jobs) -> None:
        super().__init__(jobs.store)
        self.core = ExecutionCore(jobs)
        self._starts = ExecutionStarts(self.core)
        self._redrives = ExecutionRedrives(self.core)
        self._ends = ExecutionEnds(self.core)
        self._answers = TaskAnswers(self.core)
        self._carrying_out = CarriesOut(self.core, self._starts, self._redrives, self._ends)
        self.mover = Mover(self.core, self._carrying_out, self._ends.delete_some_expired)

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
        return self._starts.start(machine, payload, name, arns=arns, trace=trace, user=user)

    def run_express(self, machine: RunnableMachine, payload: str, name: str | None = None, *, arns: Arns) -> SyncResult:
        return run_express(self.core, self._starts, self._carrying_out, machine, payload, name, arns)

    def stop(self, machine: str, name: str, *, error: str | None = None, cause: str | None = None) -> Execution:
        return self._ends.stop(machine, name, error=error, cause=cause)

    def redrive(self, machine: str, name: str) -> Execution:
        return self._redrives.redrive(machine, name)

    def delete(self, machine: str, name: str) -> int:
        return self._ends.delete(machine, name)

    def succeed(self, token: str, output: str) -> None:
        self._answers.succeed(token, output)

    def fail(self, token: str, error: str | None, cause: str | None) -> None:
        self._answers.fail(token, error, cause)

    def beat(self, token: str) -> None:
        self._answers.beat(token)

    def poll(self, activity: str, worker: str, *, wait_seconds: float = 60.0) -> ActivityTask | None:
        return self._answers.poll(activity, worker, wait_seconds)

    def change_map_run(
        self,
        map_run_id: str,
        *,
        max_concurrency: int | None = None,
        tolerated_failure_count: int | None = None,
        tolerated_failure_percentage: float | None = None,
    ) -> MapRun:
        limits = {
            "max_concurrency": max_concurrency,
            "tolerated_failure_count": tolerated_failure_count,
            "tolerated_failure_percentage": tolerated_failure_percentage,
        }
        return change_map_run(self.core, map_run_id, limits)


def executions_of(jobs: Jobs) -> Executions:
    """Return the executions of an engine: one object for all jobs of a process, so that they share what they know."""
    return jobs.shared(Executions)
