"""The watch over executions: closes overdue tasks, resumes what a crash interrupted, records how workflows ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobtable.clock import wall_time
from jobtable.errors import ConditionFailedError, ConflictError, NotFoundError
from jobtable.inbox.watching import described, keep_looking
from jobtable.jobs.engine import Jobs
from jobtable.systems.albums.album_executions import FORMER, Executions, is_former
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import Execution, ExecutionStatus, ExecutionWatch, TaskStatus, WorkflowType
from jobtable.systems.albums.measures import measure
from jobtable.systems.albums.record_shelf import LOOK_AGAIN, next_look
from jobtable.systems.albums.workflow_runs import runs_of

_LOG = logging.getLogger(__name__)
_LOOK_AT_PROBLEMS_AGAIN = timedelta(seconds=10)
_LOOK_AT_FORMER_AGAIN = timedelta(days=1)
_ENDED = (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED)


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
        """Check on the executions that are due."""
        report = WatchReport()
        now = wall_time(self._jobs.clock)
        for workflow_type in WorkflowType:
            due = ExecutionWatch.by_due(workflow_type=workflow_type, status="due")
            for listed in self._store.query(due, before=now):
                self._check(listed.execution_id, now, report)
        return report

    def check(self, execution_id: str) -> Execution:
        """Check on one execution now, due or not, and return it."""
        self._check(execution_id, None, report := WatchReport())
        if problem := report.problems.get(execution_id):
            _LOG.warning("execution %s: %s", execution_id, problem)
        return self._executions.records.get_execution(execution_id)

    def _check(self, execution_id: str, due: datetime | None, report: WatchReport) -> None:
        # The index may be out of date, and the execution may move at this moment.
        watch, execution = self._store.get_together(
            ExecutionWatch.key(execution_id=execution_id), Execution.key(execution_id=execution_id)
        )
        if watch is None or execution is None or (due is not None and watch.due_at >= due):
            return
        report.looked_at += 1
        try:
            self._look_again(watch, self._look_at(watch, execution, report))
        except Exception as error:  # one execution must not stop the watch over the others
            if isinstance(error, (ConflictError, NotFoundError)) and self._has_moved_on(watch, execution):
                return  # the next check sees its new state
            _LOG.debug("execution %s", execution_id, exc_info=True)
            report.problems[execution_id] = described(error)
            self._look_again(watch, wall_time(self._jobs.clock) + _LOOK_AT_PROBLEMS_AGAIN)

    def keep(self, is_over_within: Callable[[float], bool], on_problem: Callable[[str], None]) -> None:
        """Check on executions until `is_over_within(seconds)` returns true; servers run this in a thread."""
        keep_looking(lambda: self.expire_due().problems, is_over_within, on_problem, "execution")

    def _look_at(self, watch: ExecutionWatch, execution: Execution, report: WatchReport) -> datetime | None:
        """Do what is due, and return when to look again; None if there is nothing left to watch over."""
        now = wall_time(self._jobs.clock)
        if is_former(watch):
            report.problems[watch.execution_id] = FORMER.format(id=watch.execution_id)
            return now + _LOOK_AT_FORMER_AGAIN
        if execution.status in _ENDED:
            return self._settle(execution)
        if execution.status is ExecutionStatus.WAITING and watch.task_id is not None:
            task = self._executions.records.get_task(watch.task_id)
            if task.status is TaskStatus.PENDING and now < task.expires_at and self._runs(execution):
                return next_look(task, now)
            if task.status is TaskStatus.PENDING and now >= task.expires_at:
                self._answers.time_out(task)
                report.timed_out += 1
                execution = self._executions.records.get_execution(watch.execution_id)
        self._catch_up(execution, report)
        return now + LOOK_AGAIN

    def _runs(self, execution: Execution) -> bool:
        state = runs_of(self._jobs, execution.workflow_type).look(execution)
        return state is not None and state.is_running

    def _catch_up(self, execution: Execution, report: WatchReport) -> None:
        """Resume a run that was interrupted; fail an execution whose run has ended without completing it."""
        runs = runs_of(self._jobs, execution.workflow_type)
        state, retried_at = runs.look(execution), execution.attempt_started_at
        ended_at = None if state is None else state.ended_at
        waits_for_retry = ended_at is not None and retried_at is not None and ended_at < retried_at
        if state is None or state.is_running or waits_for_retry:
            self._executions.resume(execution)
            return
        self._executions.fail(execution, runs.failure(execution))
        report.failed += 1

    def _settle(self, execution: Execution) -> datetime | None:
        """Measure an execution that has ended, as soon as its run has ended, too."""
        if self._runs(execution) and execution.status is ExecutionStatus.COMPLETED:
            return wall_time(self._jobs.clock) + LOOK_AGAIN
        figures = measure(self._jobs, execution)
        if figures is not None:
            here = (Execution.status == execution.status) & Execution.deleted_at.missing()
            cost = Execution.estimated_cost.set(figures.cost)
            stored = Execution.figures.set(figures.as_json())
            self._store.update(Execution.key(execution_id=execution.execution_id), cost, stored, when=here)
        return None

    def _has_moved_on(self, watch: ExecutionWatch, execution: Execution) -> bool:
        """Return whether an execution or its watch has changed since it was read."""
        now = self._store.get_together(
            ExecutionWatch.key(execution_id=watch.execution_id), Execution.key(execution_id=watch.execution_id)
        )
        return now != (watch, execution)

    def _look_again(self, watch: ExecutionWatch, at: datetime | None) -> None:
        """Make the execution due again, or end the watch, unless it moved meanwhile, which sets its own time."""
        try:
            if at is None:
                self._store.delete(watch, when=ExecutionWatch.due_at == watch.due_at)
            else:
                same = ExecutionWatch.due_at == watch.due_at
                self._store.update(
                    ExecutionWatch.key(execution_id=watch.execution_id), ExecutionWatch.due_at.set(at), when=same
                )
        except (ConditionFailedError, NotFoundError):
            return
