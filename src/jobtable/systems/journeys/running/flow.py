"""The transitions of a journey: each is one transaction over the journey, its stage, its execution and the totals.
    pending -> running -> completed
               running -> paused -> running
               running -> failed -> running        (retry: a new execution)
               any but completed -> cancelled -> running

The journey's `updated_at` is its version: a transition decided on an older version is decided again. So every change
of a journey, here and elsewhere, sets a new one, or at least marks the journey (`creation`) while it lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from jobtable.clock import Clock
from jobtable.errors import ConflictError, NotFoundError, TransactionFailedError
from jobtable.model import Entity, Selection, Update, unchanged
from jobtable.store import Store
from jobtable.store.transactions import Transaction
from jobtable.systems.journeys.creation import incomplete
from jobtable.systems.journeys.entities import JobExecution, Journey, StageDefinition
from jobtable.systems.journeys.object_keys import DEFAULT_BUCKETS
from jobtable.systems.journeys.parts import (
    Aggregates,
    ExecutionConfiguration,
    JobExecutionStatus,
    JourneyStatus,
    LogCounts,
    StageStatus,
    StepRun,
    is_running,
)
from jobtable.systems.journeys.running import aggregates

Fence = Callable[[Transaction], None]
"""Adds the condition to a transaction under which its writer may write."""
P = ParamSpec("P")
T = TypeVar("T")
_MOST_EXECUTIONS = 999
"""The key of an execution has three digits for the number."""
_PASSED = (StageStatus.COMPLETED, StageStatus.SKIPPED)
_NOTHING_LOGGED = LogCounts()


@dataclass(frozen=True)
class JourneyState:
    """A journey and its stages in order, as read for one transition."""

    journey: Journey
    stages: Sequence[StageDefinition]

    def stage(self, stage_id: str) -> StageDefinition:
        """Return a stage, or raise NotFoundError."""
        for stage in self.stages:
            if stage.stage_id == stage_id:
                return stage
        raise NotFoundError(f"journey {self.journey.journey_id} has no stage {stage_id}")

    def next_stage(self, *, after: str | None = None) -> StageDefinition | None:
        """Return the first stage that is neither completed nor skipped, nor being completed now (`after`)."""
        return next((s for s in self.stages if s.status not in _PASSED and s.stage_id != after), None)

    def progress(self, *, completed: str | None = None, running_percent: float = 0) -> int:
        """Return the progress of the journey in percent: its passed stages and a part of the running one."""
        passed = sum(stage.status in _PASSED or stage.stage_id == completed for stage in self.stages)
        return int((100 * passed + running_percent) / max(len(self.stages), 1))


@dataclass(frozen=True)
class ExtraWrites:
    """What the end of a step or of an execution writes in addition to the transition."""

    updates: Sequence[Update] = ()
    """Changes of the execution."""
    logged: LogCounts = _NOTHING_LOGGED
    """What the step logged, for the totals of the journey."""
    entities: Sequence[Entity] = ()
    """Log entries and reports."""


def _transition(
    decide: Callable[Concatenate[JourneyFlow, JourneyState, P], T],
) -> Callable[Concatenate[JourneyFlow, str, P], T]:
    """Make a verb on the id of a journey of one on its state: both read and act again if it changes in between."""

    @wraps(decide)
    def run(flow: JourneyFlow, journey_id: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return flow.decide(journey_id, lambda state: decide(flow, state, *args, **kwargs))

    return run


class JourneyFlow:
    """The transitions of the journeys in one store."""

    def __init__(self, store: Store, clock: Clock, new_job_id: Callable[[], str]) -> None:
        self._store = store
        self._clock = clock
        self._new_job_id = new_job_id

    def read(self, journey_id: str) -> JourneyState:
        """Read a journey with its stages, or raise NotFoundError."""
        journey = self._store.get(Journey.key(journey_id=journey_id))
        return JourneyState(journey, list(self._store.query(StageDefinition.key(journey_id=journey_id))))

    def current_execution(self, state: JourneyState) -> JobExecution | None:
        """Return the latest execution of the current stage."""
        stage_id = state.journey.current_stage_id
        return None if stage_id is None else find_latest_execution(self._store, state.stage(stage_id))

    # --- for people

    @_transition
    def start(self, state: JourneyState, triggered_by: str) -> JobExecution | None:
        """Start a journey; return its current execution, or None if every stage is skipped."""
        _expect(state, "run", JourneyStatus.PENDING, JourneyStatus.RUNNING)
        execution = self.current_execution(state)
        if state.journey.status is JourneyStatus.RUNNING and execution and execution.status not in aggregates.ENDED:
            return execution
        return self._go_on(state, triggered_by)

    @_transition
    def pause(self, state: JourneyState) -> Journey:
        """Stop the running stage after its current step."""
        _expect(state, "pause", JourneyStatus.RUNNING)
        with self._store.transaction() as tx:
            self._change(tx, state, status=JourneyStatus.PAUSED)
        return state.journey.replace(status=JourneyStatus.PAUSED)

    @_transition
    def resume(self, state: JourneyState, triggered_by: str) -> JobExecution | None:
        """Continue a paused journey: its paused execution, or the next stage."""
        _expect(state, "resume", JourneyStatus.PAUSED)
        execution = self.current_execution(state)
        if execution is None or execution.status in aggregates.ENDED:
            return self._go_on(state, triggered_by)
        with self._store.transaction() as tx:
            self._change(tx, state, status=JourneyStatus.RUNNING)
        return execution

    @_transition
    def cancel(self, state: JourneyState) -> JobExecution | None:
        """Cancel a journey and its current execution; return that execution."""
        not_over = (JourneyStatus.PENDING, JourneyStatus.RUNNING, JourneyStatus.PAUSED, JourneyStatus.FAILED)
        _expect(state, "cancel", *not_over)
        execution = self.current_execution(state)
        with self._store.transaction() as tx:
            if execution is None or execution.status in aggregates.ENDED:
                self._change(tx, state, status=JourneyStatus.CANCELLED)
                return None
            ended = self._end(tx, execution, JobExecutionStatus.CANCELLED, ExtraWrites())
            self._change_stage(tx, state.stage(execution.stage_id), StageStatus.CANCELLED)
            sums = aggregates.with_ended_job(state.journey.aggregates, ended.status, ended.duration)
            self._change(tx, state, status=JourneyStatus.CANCELLED, aggregates=sums)
            return ended

    @_transition
    def retry(self, state: JourneyState, triggered_by: str) -> JobExecution | None:
        """Run the failed or cancelled stage again, as a new execution with the next number."""
        _expect(state, "retry", JourneyStatus.FAILED, JourneyStatus.CANCELLED)
        return self._go_on(state, triggered_by)

    @_transition
    def skip(self, state: JourneyState, stage_id: str) -> None:
        """Skip a stage that allows it and has not started."""
        stage, what = state.stage(stage_id), f"stage {stage_id} of journey {state.journey.journey_id}"
        if not stage.can_skip:
            raise ConflictError(f"{what} cannot be skipped")
        if stage.status in (StageStatus.RUNNING, StageStatus.COMPLETED):
            raise ConflictError(f"{what} is {stage.status} and cannot be skipped")
        if state.journey.status is JourneyStatus.RUNNING and state.journey.current_stage_id == stage_id:
            raise ConflictError(f"{what} is about to run; pause the journey first")
        with self._store.transaction() as tx:
            self._change_stage(tx, stage, StageStatus.SKIPPED)
            self._change(tx, state, overall_progress=state.progress(completed=stage_id))

    # --- for the stage that runs

    def begin(self, execution: JobExecution, steps: list[StepRun], fence: Fence) -> JobExecution | None:
        """Mark an execution as running; return None if its journey no longer runs."""
        now = self._clock.now()
        current = next((run.step_id for run in steps if run.status is JobExecutionStatus.RUNNING), None)
        begun = execution.replace(
            status=JobExecutionStatus.RUNNING,
            start_time=execution.start_time or now,
            current_step=current,
            steps=steps,
            updated_at=now,
        )

        def act(state: JourneyState) -> JobExecution | None:
            if state.journey.status is not JourneyStatus.RUNNING or state.journey.creation is not None:
                return None
            with self._store.transaction() as tx:
                fence(tx)
                tx.update(
                    execution,
                    JobExecution.status.set(begun.status),
                    JobExecution.start_time.set(begun.start_time),
                    JobExecution.current_step.set(current),
                    JobExecution.steps.set(steps),
                    JobExecution.updated_at.set(now),
                    when=JobExecution.status == JobExecutionStatus.PENDING,
                )
                self._change_stage(tx, state.stage(execution.stage_id), StageStatus.RUNNING)
                self._change(tx, state)
            return begun

        return self.decide(execution.journey_id, act)

    def complete(self, execution: JobExecution, written: ExtraWrites, fence: Fence) -> JobExecution | None:
        """Complete an execution and open the next stage's; return that, or None if the journey stops here."""

        def act(state: JourneyState) -> JobExecution | None:
            with self._store.transaction() as tx:
                fence(tx)
                ended = self._end(tx, execution, JobExecutionStatus.COMPLETED, written)
                self._change_stage(tx, state.stage(execution.stage_id), StageStatus.COMPLETED)
                sums = aggregates.with_logs(state.journey.aggregates, written.logged)
                sums = aggregates.with_ended_job(sums, ended.status, ended.duration)
                progress = state.progress(completed=execution.stage_id)
                following = state.next_stage(after=execution.stage_id)
                if following is None:
                    status = JourneyStatus.COMPLETED
                    self._change(tx, state, status=status, aggregates=sums, overall_progress=progress)
                    return None
                if state.journey.status is not JourneyStatus.RUNNING:  # paused: resuming opens the next one
                    self._change(tx, state, aggregates=sums, overall_progress=progress)
                    return None
                return self._open(tx, state, following, sums, execution.triggered_by, overall_progress=progress)

        return self.decide(execution.journey_id, act)

    def fail(self, execution: JobExecution, message: str, written: ExtraWrites, fence: Fence) -> JobExecution:
        """Fail an execution, its stage and, until someone retries it, its journey."""

        def act(state: JourneyState) -> JobExecution:
            with self._store.transaction() as tx:
                fence(tx)
                ended = self._end(tx, execution, JobExecutionStatus.FAILED, written, message)
                self._change_stage(tx, state.stage(execution.stage_id), StageStatus.FAILED)
                sums = aggregates.with_logs(state.journey.aggregates, written.logged)
                sums = aggregates.with_ended_job(sums, ended.status, ended.duration)
                self._change(tx, state, status=JourneyStatus.FAILED, aggregates=sums)
            return ended

        return self.decide(execution.journey_id, act)

    def set_aside(self, execution: JobExecution, written: ExtraWrites, fence: Fence) -> None:
        """Make an execution wait until its journey is resumed; what it has done stays."""
        now = self._clock.now()
        with self._store.transaction() as tx:
            fence(tx)
            tx.update(
                execution,
                JobExecution.status.set(JobExecutionStatus.PENDING),
                JobExecution.updated_at.set(now),
                *written.updates,
                when=is_running(JobExecution.status),
            )
            if counted := aggregates.log_increments(written.logged):
                tx.update(Journey.key(journey_id=execution.journey_id), Journey.updated_at.set(now), *counted)
            for entity in written.entities:
                tx.put(entity)

    # --- parts of transitions

    def decide(self, journey_id: str, act: Callable[[JourneyState], T]) -> T:
        """Read and act; do both again if the journey has changed in between."""
        return self._store.retrying(
            lambda: self.read(journey_id), act, f"change journey {journey_id}", retry_if=_is_about_the_journey
        )

    def _change(self, tx: Transaction, state: JourneyState, **values: Any) -> None:
        """Change the journey, provided that it has not changed since it was read."""
        journey = state.journey
        values["updated_at"] = self._clock.now()
        updates = [getattr(Journey, name).set(value) for name, value in values.items()]
        tx.update(journey, *updates, when=unchanged(journey, Journey.updated_at, Journey.creation))

    def _change_stage(self, tx: Transaction, stage: StageDefinition, status: StageStatus) -> None:
        tx.update(stage, StageDefinition.status.set(status), StageDefinition.updated_at.set(self._clock.now()))

    def _go_on(self, state: JourneyState, triggered_by: str) -> JobExecution | None:
        """Open an execution of the next stage, or complete the journey."""
        following = state.next_stage()
        with self._store.transaction() as tx:
            if following is None:
                self._change(tx, state, status=JourneyStatus.COMPLETED, overall_progress=100)
                return None
            return self._open(tx, state, following, state.journey.aggregates, triggered_by)

    def _open(
        self,
        tx: Transaction,
        state: JourneyState,
        stage: StageDefinition,
        sums: Aggregates,
        triggered_by: str,
        **values: Any,
    ) -> JobExecution:
        """Add the next execution of a stage, and make it the journey's current one."""
        journey = state.journey
        counts = journey.execution_counts or {}
        last = counts.get(stage.stage_id)
        if last is None:  # a journey from another program has no counters
            latest = find_latest_execution(self._store, stage)
            last = latest.execution_number if latest else 0
        number = checked_number(stage, last + 1)
        execution = self._new_execution(journey, stage, number, triggered_by)
        tx.add(execution)
        if stage.status is not StageStatus.PENDING:
            self._change_stage(tx, stage, StageStatus.PENDING)
        self._change(
            tx,
            state,
            status=JourneyStatus.RUNNING,
            current_stage_id=stage.stage_id,
            current_stage_index=[each.stage_id for each in state.stages].index(stage.stage_id),
            current_jobs={**journey.current_jobs, stage.stage_id: execution.job_id},
            execution_counts={**counts, stage.stage_id: number},
            aggregates=aggregates.with_new_job(sums),
            **values,
        )
        return execution

    def _new_execution(self, journey: Journey, stage: StageDefinition, number: int, triggered_by: str) -> JobExecution:
        now, given = self._clock.now(), journey.configuration
        return JobExecution(
            job_id=self._new_job_id(),
            journey_id=journey.journey_id,
            order=stage.order,
            stage_id=stage.stage_id,
            execution_number=number,
            triggered_by=triggered_by,
            configuration=ExecutionConfiguration(
                timeout=given.timeout,
                retry_attempts=given.retry_attempts,
                enable_detailed_logging=given.enable_detailed_logging,
            ),
            s3_config=DEFAULT_BUCKETS,
            created_at=now,
            updated_at=now,
        )

    def _end(
        self,
        tx: Transaction,
        execution: JobExecution,
        status: JobExecutionStatus,
        written: ExtraWrites,
        message: str | None = None,
    ) -> JobExecution:
        now = self._clock.now()
        ended = execution.replace(status=status, end_time=now, duration=seconds_between(execution.start_time, now))
        updates = [*written.updates] or _ended_steps(execution, status)
        if status is JobExecutionStatus.COMPLETED:
            updates.append(JobExecution.progress.set(100))
        tx.update(
            execution,
            JobExecution.status.set(status),
            JobExecution.end_time.set(now),
            JobExecution.duration.set(ended.duration),
            JobExecution.error_message.set(message),
            JobExecution.updated_at.set(now),
            *updates,
            when=(JobExecution.status == JobExecutionStatus.PENDING) | is_running(JobExecution.status),
        )
        for entity in written.entities:
            tx.add(entity)
        return ended


def _is_about_the_journey(error: Exception) -> bool:
    failures = error.failures if isinstance(error, TransactionFailedError) else ()
    return any(isinstance(failure.current, Journey) for failure in failures)


def _ended_steps(execution: JobExecution, status: JobExecutionStatus) -> list[Update]:
    """End the running step as its execution ends."""
    running = (n for n, run in enumerate(execution.steps) if run.status is JobExecutionStatus.RUNNING)
    return [JobExecution.steps[index]["status"].set(status) for index in running]


def _expect(state: JourneyState, verb: str, *statuses: JourneyStatus) -> None:
    journey = state.journey
    if journey.creation is not None:
        raise incomplete(journey.journey_id)
    if journey.status not in statuses:
        wanted = " or ".join(statuses)
        raise ConflictError(f"cannot {verb} journey {journey.journey_id}: it is {journey.status}, not {wanted}")


def executions_of(stage: StageDefinition) -> Selection[JobExecution]:
    """Select all executions of a stage, by number."""
    return JobExecution.key(journey_id=stage.journey_id, order=stage.order, stage_id=stage.stage_id)


def checked_number(stage: StageDefinition, number: int) -> int:
    """Return the number of a new execution, or raise ConflictError if it has too many digits."""
    if number > _MOST_EXECUTIONS:
        raise ConflictError(f"stage {stage.stage_id} of journey {stage.journey_id} ran {number - 1} times, the maximum")
    return number


def find_latest_execution(store: Store, stage: StageDefinition) -> JobExecution | None:
    """Return the execution of a stage with the highest number, or None if it has not run."""
    return store.query(executions_of(stage), newest_first=True, limit=1).first()


def seconds_between(start: datetime | None, end: datetime) -> float:
    """Return a duration in seconds, to the microsecond."""
    return 0.0 if start is None else round((end - start).total_seconds(), 6)
