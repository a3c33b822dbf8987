"""The watch over executions: unanswered tasks time out, and executions that have stalled go on or fail."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from jobtable.clock import wall_time
from jobtable.errors import ConditionFailedError, ConflictError, JobtableError, NotFoundError, kind_and_text
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.fields import Status
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.definitions import load_definition
from jobtable.systems.albums.entities import Execution, ExecutionStatus, ExecutionWatch, TaskStatus, WorkflowType
from jobtable.systems.albums.executions import Executions, is_step_job, step_job_id
from jobtable.systems.albums.moves import LOOK_AGAIN

_LOG = logging.getLogger(__name__)
TICK_SECONDS = 0.5
"""Twice a second, so that what is due is done within one."""


@dataclass
class Sweep:
    """What one look at everything that was due has done."""

    looked_at: int = 0
    timed_out: int = 0
    failed: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    """Executions that could not be looked at, and why; they are due again later."""


class Watch:
    """Looks after executions. Any number of processes may do so at once; what is not due costs nothing."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._store = jobs.store
        self._executions = Executions(jobs)
        self._answers = Answers(jobs)

    def expire_due(self) -> Sweep:
        """Time out the tasks whose time is over, and look at executions that should have moved by now."""
        sweep = Sweep()
        now = wall_time(self._jobs.clock)
        for workflow_type in WorkflowType:
            due = ExecutionWatch.by_due(workflow_type=workflow_type, status="due")
            for listed in self._store.query(due, before=now):
                # What an index lists may be older than the item, and the two may be moved on at this moment.
                watch, execution = self._store.get_together(
                    ExecutionWatch.key(execution_id=listed.execution_id),
                    Execution.key(execution_id=listed.execution_id),
                )
                if watch is None or execution is None or watch.due_at >= now:
                    continue
                sweep.looked_at += 1
                try:
                    self._look_at(watch, execution, sweep)
                except Exception as error:  # one execution must not end the watch over the others
                    if isinstance(error, (ConflictError, NotFoundError)) and self._has_moved_on(watch, execution):
                        continue  # the next look tells
                    _LOG.debug("execution %s", watch.execution_id, exc_info=True)
                    sweep.problems[watch.execution_id] = _told(error)
                    self._look_again(watch)
        return sweep

    def keep(self, is_over_within: Callable[[float], bool], on_problem: Callable[[str], None]) -> None:
        """Look after executions until it is over, for which it waits so many seconds: what servers run in a thread.

        A problem that lasts, as a table that is missing does, is told once.
        """
        lasting: str | None = None
        while not is_over_within(TICK_SECONDS):
            before, lasting = lasting, None
            try:
                for execution_id, problem in self.expire_due().problems.items():
                    on_problem(f"execution {execution_id}: {problem}")
            except Exception as error:  # the next look may go well; without a watch nothing would time out any more
                _LOG.debug("the watch over executions", exc_info=True)
                lasting = _told(error)
                if lasting != before:
                    on_problem(lasting)

    def _look_at(self, watch: ExecutionWatch, execution: Execution, sweep: Sweep) -> None:
        if execution.status is ExecutionStatus.WAITING and watch.task_id is not None:
            task = self._executions.records.get_task(watch.task_id)
            if task.status is not TaskStatus.PENDING:
                return
            if wall_time(self._jobs.clock) >= task.expires_at:
                self._answers.time_out(task)
                sweep.timed_out += 1
            else:
                self._executions.deliver_again(execution, task, watch)
        elif execution.status is ExecutionStatus.RUNNING:
            self._look_at_job(execution, watch, sweep)

    def _look_at_job(self, execution: Execution, watch: ExecutionWatch, sweep: Sweep) -> None:
        declared = load_definition(watch.definition)
        job_id = step_job_id(declared, execution, declared.step(watch.job_step))
        job = self._store.find(Job.key(job_id=job_id))
        if job is not None and not is_step_job(job):
            self._executions.fail(execution, f"job {job_id} is somebody else's: start it again with another id")
            sweep.failed += 1
            return
        if job is not None and job.is_final:
            reason = "did not move it on" if job.status is Status.COMPLETED else f"is {job.status}: {job.message}"
            self._executions.fail(execution, f"the job of step {execution.current_step} {reason}")
            sweep.failed += 1
            return
        if job is None or self._executions.lacks_root(declared, execution):
            execution = self._executions.submit_step(execution, watch.definition)
        if execution.status is ExecutionStatus.FAILED:
            sweep.failed += 1
        else:
            self._look_again(watch)

    def _has_moved_on(self, watch: ExecutionWatch, execution: Execution) -> bool:
        """Whether an execution, or the watch over it, is not as it was read any more."""
        now = self._store.get_together(
            ExecutionWatch.key(execution_id=watch.execution_id), Execution.key(execution_id=watch.execution_id)
        )
        return now != (watch, execution)

    def _look_again(self, watch: ExecutionWatch) -> None:
        """Let the execution be due again later, unless it moved meanwhile, which has set its own time."""
        try:
            self._store.update(
                ExecutionWatch.key(execution_id=watch.execution_id),
                ExecutionWatch.due_at.set(wall_time(self._jobs.clock) + LOOK_AGAIN),
                when=ExecutionWatch.due_at == watch.due_at,
            )
        except (ConditionFailedError, NotFoundError):
            return


def _told(error: Exception) -> str:
    """What happened; of errors that are not ours the kind is told too, as their text alone may say little."""
    return str(error) if isinstance(error, JobtableError) else kind_and_text(error)
