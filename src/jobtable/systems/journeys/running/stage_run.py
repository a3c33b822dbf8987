"""One run of one execution of a stage: step after step, each durable before the next one starts."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, BinaryIO, Literal

from pydantic_core import to_jsonable_python

from jobtable.clock import Clock
from jobtable.errors import NotFoundError, TransactionFailedError, ValueRefusedError, kind_and_text
from jobtable.model import Entity, Update
from jobtable.objects import ObjectInfo, ObjectStore, Source, key_parts
from jobtable.store import Store
from jobtable.store.transactions import Transaction
from jobtable.systems.journeys.entities import JobExecution, Journey, LogEntry, SecondBrainRule
from jobtable.systems.journeys.object_keys import ExecutionFolder
from jobtable.systems.journeys.parts import (
    JobExecutionStatus,
    JourneyStatus,
    LogCounts,
    LogEntryLevel,
    RuleType,
    StepLogFile,
    StepRun,
    is_running,
)
from jobtable.systems.journeys.rules import applicable
from jobtable.systems.journeys.running import aggregates, step_reports
from jobtable.systems.journeys.running.flow import (
    ExtraWrites,
    Fence,
    JourneyFlow,
    JourneyState,
    find_latest_execution,
    seconds_between,
)
from jobtable.systems.journeys.running.step_log import StepLog
from jobtable.systems.journeys.running.step_reports import ENGINE_REPORTS, ReportContent, ReportDraft
from jobtable.systems.journeys.stage import Stage, StageStopped

PROGRESS_SECONDS = 1.0
"""The shortest time between two writes of the progress within a step."""
_ENTITIES_AT_ONCE = 80
"""The log entries and reports that are written together with the end of their step; the others are written before."""
_JOB_LINES_PER_SECOND = 50
"""The lines that also go to the log of the job, which people can follow while the step runs."""
_EXECUTION_RUNS, _JOURNEY_RUNS = is_running(JobExecution.status), is_running(Journey.status)
Ending = Literal["completed", "failed", "stopped"]


@dataclass(frozen=True)
class RunEnd:
    """How a run ended."""

    how: Ending
    following: JobExecution | None = None
    """The execution of the next stage, which runs next."""
    message: str | None = None


def no_fence(tx: Transaction) -> None:
    """Add no condition: nobody else can run the stage."""


@dataclass(frozen=True)
class Hold:
    """The right to run an execution, and where its run reports to: what the job engine hands to a run."""

    fence: Fence = no_fence
    check: Callable[[], None] = lambda: None
    """Raises ExecutionLost if another worker has the execution."""
    run: int | None = None
    """The number of this run of the execution, if it is not the first."""
    should_stop: Callable[[], bool] = lambda: False
    log: Callable[[LogEntryLevel, str], None] = lambda level, message: None
    progress: Callable[[float, str | None], None] = lambda percent, message: None
    metric: Callable[[str, float], None] = lambda name, value: None
    may_retry: bool = False
    """Whether another run of the same execution follows a retryable error."""


class ExecutionLost(BaseException):
    """The execution was cancelled, or another worker runs it; nothing was written. No `except Exception` catches it."""


@contextmanager
def held() -> Iterator[None]:
    """Raise ExecutionLost if a write of the block is refused because the run no longer has the execution."""
    try:
        yield
    except TransactionFailedError as error:
        raise meaning_of(error) from error


def meaning_of(error: TransactionFailedError) -> BaseException:
    """Return ExecutionLost if a condition was broken; otherwise the values themselves were rejected."""
    if any(failure.code == "ConditionalCheckFailed" for failure in error.failures):
        return ExecutionLost(str(error))
    reasons = "; ".join(failure.message for failure in error.failures) or str(error)
    return ValueRefusedError(f"cannot store the results of the stage: {reasons}; keep large values in a file")


class StageRun:
    """Runs the unfinished steps of an execution."""

    def __init__(
        self,
        stage_class: type[Stage],
        state: JourneyState,
        execution: JobExecution,
        flow: JourneyFlow,
        *,
        store: Store,
        objects: ObjectStore,
        clock: Clock,
        hold: Hold | None = None,
    ) -> None:
        self.journey = state.journey
        self.definition = state.stage(execution.stage_id)
        self.execution = execution
        self.clock = clock
        self.position: Any = None
        self._state = state
        self._flow = flow
        self._store = store
        self._objects = objects
        self._hold = hold or Hold()
        self._folder = ExecutionFolder(execution.journey_id, execution.stage_id, execution.job_id)
        self._stage_class = stage_class
        self._index = 0
        self._log = StepLog(execution.job_id, "")
        self._drafts: list[ReportDraft] = []
        self._counted = LogCounts()
        self._written_at = clock.monotonic()
        self._second = self._lines_in_second = 0
        self._is_stopping = False

    def run(self) -> RunEnd:
        """Run the rest of the execution, to its end or until it must stop."""
        self._begin()
        try:
            self._stage_class.check(self.definition)
            stage = self._stage_class(self)
        except Exception as error:
            with self._new_log():
                return self._fail(error)
        while self._index < len(self.execution.steps):
            if self.should_stop():
                return self._set_aside(self._step, ExtraWrites())
            with self._new_log():
                ended = self._run_step(stage)
            if ended is not None:
                return ended
        return self._complete()

    # --- for the stage

    def log(self, level: LogEntryLevel, message: str, details: Mapping[str, Any]) -> None:
        """Add a line to the log of the step and, below the rate limit, to that of the job."""
        if level is LogEntryLevel.DEBUG and not self.execution.configuration.enable_detailed_logging:
            return
        self._log.write(level, message, self.clock.now(), source=self._stage_class.__name__, details=details)
        if level is not LogEntryLevel.DEBUG:
            second = int(self.clock.monotonic())
            self._lines_in_second = self._lines_in_second + 1 if second == self._second else 1
            self._second = second
            if self._lines_in_second <= _JOB_LINES_PER_SECOND:
                self._hold.log(level, message)

    def report(self, content: ReportContent) -> None:
        """Add a report of the step."""
        name = self._step.step_id
        before = (self._step.reports or 0) + len(self._drafts)
        if before:
            name += f"-{before + 1}"
        self._drafts.append(ReportDraft(name, f"{self.execution.job_id}_{name}", content, self.clock))

    def progress(self, percent: float, message: str | None) -> None:
        """Write the progress of the step, the stage and the journey, unless it was written a moment ago."""
        if self.clock.monotonic() - self._written_at >= PROGRESS_SECONDS:
            self._write_progress(percent, message, ExtraWrites())

    def save(self, position: Any, percent: float | None) -> None:
        """Write the position of the step with its log and reports so far."""
        step = JobExecution.steps[self._index]
        run, written = self._written(self._step.replace(position=position), is_over=False)
        updates: list[Update] = [step["position"].set(position)]
        if run.log != self._step.log:
            updates += [step["log"].set(run.log), self._metrics_with(written.logged)]
        if run.reports != self._step.reports:
            updates.append(step["reports"].set(run.reports))
        reached = self._step.progress or 0 if percent is None else percent
        self._write_progress(reached, None, ExtraWrites(updates, written.logged, written.entities))
        self._replace_step(run.replace(progress=self._step.progress))
        self._counted = self._log.counts()
        self.execution = self.execution.replace(metrics=self.execution.metrics + written.logged)
        self._discard_drafts()
        self.position = position
        if self.should_stop():
            raise StageStopped

    def should_stop(self) -> bool:
        """Return whether the journey was paused or cancelled, or the worker must end."""
        return self._is_stopping or self._hold.should_stop()

    def rules(self, rule_type: RuleType | None) -> list[SecondBrainRule]:
        """Return the active rules that apply to the stage."""
        if not self.journey.configuration.second_brain_enabled:
            return []
        rules = self._store.query(SecondBrainRule.key(journey_id=self.journey.journey_id))
        return applicable(rules, self.definition, rule_type)

    def earlier(self, stage_id: str) -> JobExecution:
        """Return the latest execution of a stage, or raise NotFoundError."""
        stage = self._state.stage(stage_id)
        found = find_latest_execution(self._store, stage)
        if found is None:
            raise NotFoundError(f"stage {stage_id} of journey {stage.journey_id} has not run")
        return found

    def write_file(self, name: Sequence[str], source: Source) -> ObjectInfo:
        """Store a file of the current step."""
        self._hold.check()
        return self._objects.put(self._folder.file(self._step.step_id, *name), source)

    def open_file(self, stage_id: str | None, step_id: str, name: Sequence[str]) -> BinaryIO:
        """Open a file of a step."""
        return self._objects.open(self._folder_of(stage_id).file(step_id, *name))

    def list_files(self, stage_id: str | None, step_id: str) -> Iterator[tuple[str, ...]]:
        """Yield the names of a step's files, in order."""
        prefix = self._folder_of(stage_id).file(step_id)
        depth = len(key_parts(prefix))
        return iter(sorted(key_parts(found.key)[depth:] for found in self._objects.list(prefix)))

    def _folder_of(self, stage_id: str | None) -> ExecutionFolder:
        if stage_id is None or stage_id == self._folder.stage_id:
            return self._folder
        return ExecutionFolder(self._folder.journey_id, stage_id, self.earlier(stage_id).job_id)

    # --- starting
    @property
    def _step(self) -> StepRun:
        return self.execution.steps[self._index]

    def _replace_step(self, run: StepRun) -> None:
        steps = list(self.execution.steps)
        steps[self._index] = run
        self.execution = self.execution.replace(steps=steps)

    def _begin(self) -> None:
        """Find the first unfinished step, and mark the execution as running."""
        runs = {run.step_id: run for run in self.execution.steps}
        steps = [runs.get(step.step_id) or StepRun(step_id=step.step_id) for step in self.definition.steps]
        left = (n for n, run in enumerate(steps) if run.status is not JobExecutionStatus.COMPLETED)
        self._index = next(left, len(steps))
        is_resumed = self.execution.status is JobExecutionStatus.RUNNING
        if self._index < len(steps):
            steps[self._index] = _started(steps[self._index], self.clock.now())
        if is_resumed:
            self.execution = self.execution.replace(steps=steps)
        else:
            with held():
                begun = self._flow.begin(self.execution, steps, self._hold.fence)
            if begun is None:
                raise ExecutionLost("its journey no longer runs")
            self.execution = begun
        if self._index < len(steps):
            self.position = self._step.position
            if is_resumed or self._step.log is not None:
                self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        """Delete the log entries of an interrupted step: its end stores those that follow from its whole log."""
        of_step = LogEntry.key(journey_id=self._folder.journey_id, job_id=self._folder.job_id, step=self._step.step_id)
        leftovers = iter(self._store.query(of_step))
        while some := list(islice(leftovers, _ENTITIES_AT_ONCE)):
            with held(), self._store.transaction() as tx:
                self._hold.fence(tx)
                for entry in some:
                    tx.delete(entry)

    def _new_log(self) -> StepLog:
        step_id = self._step.step_id if self._index < len(self.execution.steps) else ""
        self._log = StepLog(self.execution.job_id, step_id)
        if step_id and self._step.log is not None:
            self._log.take_over(self._objects, self._folder.log(step_id, self._step.log.run), self._step.log.lines)
        self._counted = self._log.counts()
        return self._log

    # --- one step

    def _run_step(self, stage: Stage) -> RunEnd | None:
        """Run a step; return how the run ended with it, or None if it continues."""
        self.position = self._step.position
        try:
            getattr(stage, self._step.step_id)()
            self._commit(stage)
        except StageStopped:
            if self._step.position is None:
                self._discard_drafts()  # the step starts over, and makes them again
            return self._set_aside(*self._written(self._step))
        except Exception as error:
            if self._hold.may_retry and getattr(error, "retryable", False):
                raise
            return self._fail(error)
        finally:
            self._discard_drafts()
        return None

    def _commit(self, stage: Stage) -> None:
        """Make the step durable, and the next one the current one: one transaction."""
        run, written = self._written(_finished(self._step, JobExecutionStatus.COMPLETED, self.clock.now()))
        following = self._index + 1
        steps = list(self.execution.steps)
        steps[self._index] = run
        if following < len(steps):
            steps[following] = _started(steps[following], run.end_time or self.clock.now())
        measured = {n: v for n, v in stage.metrics.items() if v != (self.execution.measurements or {}).get(n)}
        percent = 100 * following / len(steps)
        after = self.execution.replace(
            steps=steps,
            current_step=steps[min(following, len(steps) - 1)].step_id,
            progress=int(percent),
            metrics=self.execution.metrics + written.logged,
            # A copy, so that later changes by the stage do not count as stored.
            results=to_jsonable_python(stage.results),
            measurements=dict(stage.metrics) or None,
        )
        changes = _changes(self.execution, after, range(self._index, min(following + 1, len(steps))))
        self._write(ExtraWrites(changes, written.logged, written.entities), percent)
        self.execution = after
        self._index = following
        self._hold.progress(percent, run.step_id)
        for name, value in measured.items():
            self._hold.metric(name, value)

    def _written(self, run: StepRun, *, is_over: bool = True) -> tuple[StepRun, ExtraWrites]:
        """Store the log and the reports of a step as objects; return the step and the records that name them.

        The log entries follow at the end of the step: only then are its last lines known.
        """
        logged = self._log.counts() - self._counted
        entries: list[Entity] = []
        key = self._folder.log(run.step_id, self._hold.run)
        # An earlier run's worker that is presumed dead may still replace the log of that run.
        if logged.total_logs or (run.log is not None and run.log.run != self._hold.run):
            info = self._log.store(self._objects, key)
            stored = StepLogFile(lines=len(self._log), size=info.size, sha256=info.sha256, run=self._hold.run)
            run = run.replace(log=stored)
        if is_over and len(self._log):
            entries += self._log.entries(self.execution, key)
        if self._drafts:
            about = step_reports.step_summary(self.execution.job_id, run)
            entries += [draft.store(self._objects, self.execution, about, self._hold.run) for draft in self._drafts]
            if run.status not in aggregates.ENDED:
                run = run.replace(reports=(run.reports or 0) + len(self._drafts))
        self._write_ahead(entries[:-_ENTITIES_AT_ONCE])
        return run, ExtraWrites((), logged, entries[-_ENTITIES_AT_ONCE:])

    def _metrics_with(self, logged: LogCounts) -> Update:
        return JobExecution.metrics.set(self.execution.metrics + logged)

    def _write_ahead(self, entries: Sequence[Entity]) -> None:
        for start in range(0, len(entries), _ENTITIES_AT_ONCE):
            with held(), self._store.transaction() as tx:
                self._hold.fence(tx)
                for entry in entries[start : start + _ENTITIES_AT_ONCE]:
                    tx.put(entry)

    def _write(self, written: ExtraWrites, percent: float) -> None:
        """Write the end of a step, and notice that the journey was paused."""
        try:
            self._send(written, percent, has_to_run=True)
        except TransactionFailedError as error:
            current = next((f.current for f in error.failures if isinstance(f.current, Journey)), None)
            if current is None or current.status is not JourneyStatus.PAUSED or len(error.failures) > 1:
                raise meaning_of(error) from error
            self._is_stopping = True
            with held():
                self._send(written, percent, has_to_run=False)

    def _send(self, written: ExtraWrites, percent: float, *, has_to_run: bool) -> None:
        now = self.clock.now()
        with self._store.transaction() as tx:
            self._hold.fence(tx)
            tx.update(self.execution, *written.updates, JobExecution.updated_at.set(now), when=_EXECUTION_RUNS)
            tx.update(
                Journey.key(journey_id=self._folder.journey_id),
                Journey.overall_progress.set(self._state.progress(running_percent=percent)),
                Journey.updated_at.set(now),
                *aggregates.log_increments(written.logged),
                when=_JOURNEY_RUNS if has_to_run else None,
            )
            for entity in written.entities:
                tx.put(entity)

    def _write_progress(self, percent: float, message: str | None, more: ExtraWrites) -> None:
        self._written_at = self.clock.monotonic()
        percent = min(max(percent, 0.0), 100.0)
        of_stage = (100 * self._index + percent) / len(self.execution.steps)
        step = JobExecution.steps[self._index]["progress"].set(int(percent))
        updates = [*more.updates, step, JobExecution.progress.set(int(of_stage))]
        self._write(ExtraWrites(updates, more.logged, more.entities), of_stage)
        self._replace_step(self._step.replace(progress=int(percent)))
        self._hold.progress(of_stage, message or self._step.step_id)

    # --- ending

    def _complete(self) -> RunEnd:
        about = step_reports.execution_summary(self.execution)
        made = [
            self._engine_draft(content).store(self._objects, self.execution, about, self._hold.run)
            for content in step_reports.engine_reports(self.execution)
        ]
        with held():
            following = self._flow.complete(self.execution, ExtraWrites(entities=made), self._hold.fence)
        return RunEnd("completed", following)

    def _engine_draft(self, content: ReportContent) -> ReportDraft:
        name = ENGINE_REPORTS[content.type]
        return ReportDraft(name, f"{self.execution.job_id}_{name}", content, self.clock)

    def _fail(self, error: Exception) -> RunEnd:
        message = kind_and_text(error)[:2000]
        trace = "".join(traceback.format_exception(error))
        if self._index >= len(self.execution.steps):
            with held():
                self._flow.fail(self.execution, message, ExtraWrites(), self._hold.fence)
            return RunEnd("failed", message=message)
        self.log(LogEntryLevel.ERROR, f"the step failed: {message}", {"trace": trace})
        run, written = self._written(_finished(self._step, JobExecutionStatus.FAILED, self.clock.now()))
        draft = self._engine_draft(step_reports.error_analysis(self.execution, run.step_id, error, trace))
        about = step_reports.execution_summary(self.execution)
        report = draft.store(self._objects, self.execution, about, self._hold.run)
        updates = [JobExecution.steps[self._index].set(run), self._metrics_with(written.logged)]
        ended = ExtraWrites(updates, written.logged, [*written.entities, report])
        with held():
            self._flow.fail(self.execution, f"{run.step_id}: {message}", ended, self._hold.fence)
        return RunEnd("failed", message=f"{run.step_id}: {message}")

    def _set_aside(self, run: StepRun, written: ExtraWrites) -> RunEnd:
        """Make the execution wait after its last finished step, or at the position that the current one saved."""
        run = run.replace(status=JobExecutionStatus.PENDING)
        updates = [JobExecution.steps[self._index].set(run), self._metrics_with(written.logged)]
        with held():
            self._flow.set_aside(
                self.execution, ExtraWrites(updates, written.logged, written.entities), self._hold.fence
            )
        return RunEnd("stopped", message=f"stopped before the end of {run.step_id}")

    def _discard_drafts(self) -> None:
        for draft in self._drafts:
            draft.discard()
        self._drafts = []


def _started(run: StepRun, now: datetime) -> StepRun:
    return run.replace(status=JobExecutionStatus.RUNNING, start_time=run.start_time or now)


def _finished(run: StepRun, status: JobExecutionStatus, now: datetime) -> StepRun:
    duration = seconds_between(run.start_time, now)
    return run.replace(status=status, end_time=now, duration=duration, progress=None, position=None, reports=None)


def _changes(before: JobExecution, after: JobExecution, steps: Iterable[int]) -> list[Update]:
    """Return what the end of a step changes in an execution: some of its steps, and all else that differs."""
    changes: list[Update] = [JobExecution.steps[index].set(after.steps[index]) for index in steps]
    changes += [JobExecution.current_step.set(after.current_step), JobExecution.progress.set(after.progress)]
    for name in ("metrics", "results", "measurements"):
        if getattr(after, name) != getattr(before, name):
            changes.append(getattr(JobExecution, name).set(getattr(after, name)))
    return changes
