"""The watch over executions: times out unanswered tasks, and continues or fails executions that have stalled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from jobtable.clock import wall_time
from jobtable.errors import ConditionFailedError, ConflictError, JobtableError, NotFoundError, kind_and_text
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.definitions import load_definition
from jobtable.systems.albums.entities import Execution, ExecutionStatus, ExecutionWatch, TaskStatus, WorkflowType
from jobtable.systems.albums.executions import Executions, is_step_job, step_job_id
from jobtable.systems.albums.moves import LOOK_AGAIN

_LOG = logging.getLogger(__name__)
TICK_SECONDS = 0.5
"""Twice a second, so that anything due is done within a second."""


@dataclass
class WatchReport:
    """The results of one check of all due executions."""

    looked_at: int = 0
    timed_out: int = 0
    failed: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    """Executions that could not be checked, and why; they are due again later."""


class Watch:
    """Checks on executions. Any number of processes may do so at once; executions that are not due cost nothing."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._store = jobs.store
        self._executions = Executions(jobs)
        self._answers = Answers(jobs)

    def expire_due(self) -> WatchReport:
        """Time out expired tasks, and check on executions that should have moved by now."""
        report = WatchReport()
        now = wall_time(self._jobs.clock)
        for workflow_type in WorkflowType:
            due = ExecutionWatch.by_due(workflow_type=workflow_type, status="due")
            for listed in self._store.query(due, before=now):
                # The index may be out of date, and the execution may move at this moment.
                watch, execution = self._store.get_together(
                    ExecutionWatch.key(execution_id=listed.execution_id),
                    Execution.key(execution_id=listed.execution_id),
                )
                if watch is None or execution is None or watch.due_at >= now:
                    continue
                report.looked_at += 1
                try:
                    self._look_at(watch, execution, report)
                except Exception as error:  # one execution must not stop the watch over the others
                    if isinstance(error, (ConflictError, NotFoundError)) and self._has_moved_on(watch, execution):
                        continue  # the next check sees its new state
                    _LOG.debug("execution %s", watch.execution_id, exc_info=True)
                    report.problems[watch.execution_id] = _described(error)
                    self._look_again(watch)
        return report

    def keep(self, is_over_within: Callable[[float], bool], on_problem: Callable[[str], None]) -> None:
        """Check on executions until `is_over_within(seconds)` returns true; servers run this in a thread.

        A lasting problem, such as a missing table, is reported once.
        """
        lasting: str | None = None
        while not is_over_within(TICK_SECONDS):
            before, lasting = lasting, None
            try:
                for execution_id, problem in self.expire_due().problems.items():
                    on_problem(f"execution {execution_id}: {problem}")
            except Exception as error:  # the next check may succeed; without a watch nothing would time out
                _LOG.debug("the watch over executions", exc_info=True)
                lasting = _described(error)
                if lasting != before:
                    on_problem(lasting)

    def _look_at(self, watch: ExecutionWatch, execution: Execution, report: WatchReport) -> None:
        if execution.status is ExecutionStatus.WAITING and watch.task_id is not None:
            task = self._executions.records.get_task(watch.task_id)
            if task.status is not TaskStatus.PENDING:
                return
            if wall_time(self._jobs.clock) >= task.expires_at:
                self._answers.time_out(task)
                report.timed_out += 1
            else:
                self._executions.deliver_again(execution, task, watch)
        elif execution.status is ExecutionStatus.RUNNING:
            self._look_at_job(execution, watch, report)

    def _look_at_job(self, execution: Execution, watch: ExecutionWatch, report: WatchReport) -> None:
        declared = load_definition(watch.definition)
        job_id = step_job_id(declared, execution, declared.step(watch.job_step))
        job = self._store.find(Job.key(job_id=job_id))
        if job is not None and not is_step_job(job):
            self._executions.fail(execution, f"job {job_id} is not of this execution; start again with another id")
            report.failed += 1
            return
        if job is not None and job.is_final:
            reason = (
                "completed but did not move on" if job.status is Status.COMPLETED else f"is {job.status}: {job.message}"
            )
            self._executions.fail(execution, f"the job of step {execution.current_step} {reason}")
            report.failed += 1
            return
        if job is None or self._executions.lacks_root(declared, execution):
            execution = self._executions.submit_step(execution, watch.definition)
        if execution.status is ExecutionStatus.FAILED:
            report.failed += 1
        else:
            self._look_again(watch)

    def _has_moved_on(self, watch: ExecutionWatch, execution: Execution) -> bool:
        """Return whether an execution or its watch has changed since it was read."""
        now = self._store.get_together(
            ExecutionWatch.key(execution_id=watch.execution_id), Execution.key(execution_id=watch.execution_id)
        )
        return now != (watch, execution)

    def _look_again(self, watch: ExecutionWatch) -> None:
        """Make the execution due again later, unless it moved meanwhile, which sets its own time."""
        try:
            self._store.update(
                ExecutionWatch.key(execution_id=watch.execution_id),
                ExecutionWatch.due_at.set(wall_time(self._jobs.clock) + LOOK_AGAIN),
                when=ExecutionWatch.due_at == watch.due_at,
            )
        except (ConditionFailedError, NotFoundError):
            return


def _described(error: Exception) -> str:
    """Describe an error; other libraries' errors with their kind, because their text alone may say little."""
    return str(error) if isinstance(error, JobtableError) else kind_and_text(error)
