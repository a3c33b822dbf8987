"""Journeys on the job engine: each execution of a stage has a stage job, and an end job that waits for its end.

The records of the journey are the truth. The engine runs a job that died again, which continues after the last
finished step. The next stage's job is submitted before the last one's ends. If a stage job ends in a way that its stage
could not record (a timeout, a cancelled job, too many lost workers), the end job records it.

Stored jobs name the tasks here by their path.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

from jobtable.errors import ConflictError, DefinitionError, JobStateError, LeaseLostError, NotFoundError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import check_lease
from jobtable.jobs.lifecycle.owners import submit_for
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import CLAIMABLE, Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob
from jobtable.jobs.tasks import FailTask, StopTask, task
from jobtable.systems.journeys.entities import JobExecution, Journey
from jobtable.systems.journeys.journey_template import stage_class_of
from jobtable.systems.journeys.parts import JobExecutionStatus, JourneyStatus, LogEntryLevel, Priority
from jobtable.systems.journeys.running.aggregates import ENDED
from jobtable.systems.journeys.running.flow import ExtraWrites, JourneyFlow, JourneyState
from jobtable.systems.journeys.running.stage_jobs import (
    CONCLUDE_STAGE,
    END_JOB,
    RUN_STAGE,
    STAGE_JOB,
    JourneyJobs,
    end_job_id,
    list_end_jobs,
)
from jobtable.systems.journeys.running.stage_run import ExecutionLost, Hold, RunEnd, StageRun, no_fence

QUEUE = "journeys"
_PAUSED = {"reason": "paused"}
"""The result of a job that stopped because its journey was paused."""
_PAUSED_MESSAGE = "the journey is paused"
_MOST_INTERRUPTIONS = 10
"""Finished steps stay finished, so a stage may lose more workers than other jobs before it fails."""
_PRIORITIES = {Priority.CRITICAL: 900, Priority.HIGH: 700, Priority.MEDIUM: 500, Priority.LOW: 300}


class JourneyRunner:
    """Runs journeys: the verbs for people, and the work of the jobs."""

    def __init__(self, jobs: Jobs, *, queue: str = QUEUE) -> None:
        self.jobs = jobs
        self.flow = JourneyFlow(jobs.store, jobs.clock, lambda: f"JOB-{uuid.uuid4().hex[:16].upper()}")
        self._queue = queue

    def run(self, journey_id: str, *, by: str = "user") -> Journey:
        """Start a journey; the same call again ensures that the current stage has a job."""
        if self.flow.start(journey_id, by) is not None:
            self.settle(journey_id)
        return self.flow.read(journey_id).journey

    def pause(self, journey_id: str) -> Journey:
        """Stop the running stage after its current step, or where that step saves its position."""
        return self.flow.pause(journey_id)

    def resume(self, journey_id: str, *, by: str = "user") -> Journey:
        """Continue a paused journey after the last finished step.

        ConflictError if it runs; a stage without a job then gets one all the same.
        """
        with self._settled_if_refused(journey_id):
            execution = self.flow.resume(journey_id, by)
        if execution is not None:
            self._open_tree(execution)
            self._go_on_with(execution)
        return self.flow.read(journey_id).journey

    def cancel(self, journey_id: str, *, by: str = "user") -> Journey:
        """Cancel a journey at once; what its stage still does is not recorded.

        ConflictError if it was already cancelled; its job is then cancelled all the same.
        """
        try:
            execution = self.flow.cancel(journey_id)
        except ConflictError:  # an earlier call may have died between the records and the job
            state = self.flow.read(journey_id)
            if state.journey.status is JourneyStatus.CANCELLED:
                self._cancel_job(self.flow.current_execution(state), by)
            raise
        self._cancel_job(execution, by)
        return self.flow.read(journey_id).journey

    def _cancel_job(self, execution: JobExecution | None, by: str) -> None:
        if execution is not None:
            with contextlib.suppress(JobStateError, NotFoundError):  # it has just ended, or was never submitted
                self.jobs.cancel(execution.job_id, by=by)

    def retry(self, journey_id: str, *, by: str = "user") -> Journey:
        """Run the failed or cancelled stage again, as a new execution with the next number.

        ConflictError if the journey runs; a stage without a job then gets one all the same.
        """
        with self._settled_if_refused(journey_id):
            execution = self.flow.retry(journey_id, by)
        if execution is not None:
            self._open_tree(execution)
            self.settle(journey_id)
        return self.flow.read(journey_id).journey

    def skip(self, journey_id: str, stage_id: str) -> None:
        """Skip a stage that allows it and has not started; otherwise raise ConflictError."""
        self.flow.skip(journey_id, stage_id)

    # --- keeping records and jobs together

    @contextlib.contextmanager
    def _settled_if_refused(self, journey_id: str) -> Iterator[None]:
        """Settle the journey on a conflict: an earlier call may have died between the records and the job."""
        try:
            yield
        except ConflictError:
            self.settle(journey_id)
            raise

    def settle(self, journey_id: str) -> Journey:
        """Ensure that a running journey has a stage job, or record how that job ended."""
        state = self.flow.read(journey_id)
        execution = self.flow.current_execution(state)
        if state.journey.status is not JourneyStatus.RUNNING or execution is None or execution.status in ENDED:
            return state.journey
        job = self.jobs.store.find(Job.key(job_id=execution.job_id))
        if job is None or _has_paused(job):
            # It was never submitted, or the journey was resumed before the pause reached the job.
            self._go_on_with(execution)
        elif job.is_final:
            reason = job.message or f"the job was {job.status} before the stage ended"
            self._record_end(execution, job.status, reason)
        else:
            self._watch_over(state, execution)
        return self.flow.read(journey_id).journey

    def _go_on_with(self, execution: JobExecution) -> None:
        """Submit the stage job of an execution, or restart the stopped one, with an end job.

        If someone ended the tree of the journey's jobs, record that instead.
        """
        job = self.jobs.store.find(Job.key(job_id=execution.job_id))
        if job is not None and not (job.is_final and job.status is not Status.COMPLETED):
            return
        stage_job = self._stage_job(self.flow.read(execution.journey_id), execution)
        ends_before = 0
        if job is not None:
            # The last end job may just be finding the stage job ended, so the new run gets its own.
            ends_before = len(list_end_jobs(self.jobs.store, execution.job_id))
            self.jobs.retry(execution.job_id)
        try:
            self._submit(execution.journey_id, stage_job, self._end_job(stage_job, execution, ends_before))
        except JobStateError:
            root = self._find_root(execution)
            if root is None or root.tree_status is None:
                raise
            self._record_end(execution, root.tree_status, f"job {root.job_id} was {root.tree_status} with its tree")

    def _open_tree(self, execution: JobExecution) -> None:
        root = self._find_root(execution)
        if root is not None and root.tree_status is not None:
            self.jobs.open_for_system(root.job_id)

    def _submit(self, journey_id: str, *new: NewJob) -> None:
        """Submit jobs of a journey; ConflictError if a concurrent deletion of the journey removed them."""
        submit_for(
            self.jobs,
            new,
            f"journey {journey_id}",
            is_going=lambda: self._is_going(journey_id),
            delete=lambda submitted: JourneyJobs(self.jobs).delete(reversed(submitted)),
        )

    def _is_going(self, journey_id: str) -> bool:
        """Return whether a journey is deleted, or being deleted."""
        journey = self.jobs.store.find(Journey.key(journey_id=journey_id))
        return journey is None or journey.creation is not None

    def _watch_over(self, state: JourneyState, execution: JobExecution) -> None:
        """Ensure that a stage job has an end job: its submission may have been interrupted."""
        ends = list_end_jobs(self.jobs.store, execution.job_id)
        if not ends or ends[-1].status not in CLAIMABLE:
            self._submit(execution.journey_id, self._end_job(self._stage_job(state, execution), execution, len(ends)))

    def _end_job(self, stage_job: NewJob, execution: JobExecution, number: int) -> NewJob:
        return NewJob(
            name=f"{stage_job.name}: end",
            task=CONCLUDE_STAGE,
            params=stage_job.params,
            queue=self._queue,
            user=stage_job.user,
            job_id=end_job_id(execution.job_id, number),
            job_type=END_JOB,
            priority=stage_job.priority,
            tags=stage_job.tags,
            max_attempts=10,
            most_interruptions=_MOST_INTERRUPTIONS,
            depends_on=(DependsOn(execution.job_id, condition=EdgeCondition.FINISHED),),
        )

    def _stage_job(self, state: JourneyState, execution: JobExecution) -> NewJob:
        journey = state.journey
        return NewJob(
            name=f"{journey.name}: {state.stage(execution.stage_id).name}",
            task=RUN_STAGE,
            params={"journey_id": journey.journey_id},
            queue=self._queue,
            user=journey.created_by,
            job_id=execution.job_id,
            description=f"execution {execution.execution_number} of {execution.stage_id} of {journey.journey_id}",
            job_type=STAGE_JOB,
            job_stage=execution.stage_id,
            parent_job_id=None if (root := self._find_root(execution)) is None else root.job_id,
            priority=_PRIORITIES[journey.priority],
            tags=frozenset({f"journey:{journey.journey_id}"}),
            max_attempts=1 + execution.configuration.retry_attempts,
            timeout_seconds=execution.configuration.timeout,
            most_interruptions=_MOST_INTERRUPTIONS,
        )

    def _find_root(self, execution: JobExecution) -> Job | None:
        """Return the job of the journey's first execution, the root of the others; None for that one or if missing."""
        first = self.jobs.store.query(JobExecution.key(journey_id=execution.journey_id), limit=1).first()
        if first is None or first.job_id == execution.job_id:
            return None
        return self.jobs.store.find(Job.key(job_id=first.job_id))

    def _record_end(self, execution: JobExecution, status: Status, reason: str) -> None:
        """Record the end of a stage job that its stage could not record; ConflictError if that is impossible now."""
        try:
            if status is Status.CANCELLED:
                self.flow.cancel(execution.journey_id)
            elif status is Status.STOPPED:
                self.flow.pause(execution.journey_id)
                if execution.status is JobExecutionStatus.RUNNING:
                    self.flow.set_aside(execution, ExtraWrites(), no_fence)
            else:
                self.flow.fail(execution, reason, ExtraWrites(), no_fence)
        except ConflictError:
            if self._is_under_way(execution):  # otherwise it has just been recorded
                raise

    def _is_under_way(self, execution: JobExecution) -> bool:
        """Return whether, by its records, a journey runs this execution."""
        state = self.flow.read(execution.journey_id)
        current = self.flow.current_execution(state)
        is_here = current is not None and current.job_id == execution.job_id and current.status not in ENDED
        return is_here and state.journey.status is JourneyStatus.RUNNING

    def execute(self, context: JobContext, journey_id: str) -> dict[str, Any]:
        """Run the execution of a stage job."""
        state = self.flow.read(journey_id)
        execution = self.flow.current_execution(state)
        if execution is None or execution.job_id != context.job_id or execution.status in ENDED:
            return self._already_ended(journey_id, context, execution)
        if state.journey.status is not JourneyStatus.RUNNING:
            raise StopTask(_PAUSED_MESSAGE, _PAUSED)
        self._watch_over(state, execution)
        hold = _hold(context)
        try:
            stage_class = stage_class_of(state.stage(execution.stage_id))
        except DefinitionError as error:
            self.flow.fail(execution, str(error), ExtraWrites(), hold.fence)
            raise FailTask(str(error)) from error
        run = StageRun(
            stage_class,
            state,
            execution,
            self.flow,
            store=self.jobs.store,
            objects=self.jobs.objects,
            clock=self.jobs.clock,
            hold=hold,
        )
        try:
            return self._concluded(journey_id, run.run(), run.execution)
        except ExecutionLost as lost:
            raise self._stopped(journey_id, f"the execution was lost: {lost}") from lost

    def _concluded(self, journey_id: str, ended: RunEnd, execution: JobExecution) -> dict[str, Any]:
        if ended.how == "failed":
            raise FailTask(ended.message or "the stage failed")
        if ended.how == "stopped":
            raise self._stopped(journey_id, ended.message or "stopped")
        if ended.following is not None:
            self.settle(journey_id)
        return {"journey": journey_id, "stage": execution.stage_id, "execution": execution.execution_number}

    def _stopped(self, journey_id: str, otherwise: str) -> StopTask:
        journey = self.jobs.store.find(Journey.key(journey_id=journey_id))
        is_paused = journey is not None and journey.status is JourneyStatus.PAUSED
        return StopTask(_PAUSED_MESSAGE, _PAUSED) if is_paused else StopTask(otherwise)

    def _already_ended(self, journey_id: str, context: JobContext, execution: JobExecution | None) -> dict[str, Any]:
        """End a stage job whose process died after the end of its stage."""
        if execution is not None and execution.job_id == context.job_id:
            if execution.status is JobExecutionStatus.FAILED:
                raise FailTask(execution.error_message or "the stage failed")
            if execution.status is JobExecutionStatus.CANCELLED:
                raise StopTask("the journey was cancelled")
        self.settle(journey_id)
        return {"journey": journey_id}


@task
def run_stage(job: JobContext, journey_id: str) -> dict[str, Any]:
    """Run the current stage of a journey."""
    return JourneyRunner(job.jobs, queue=_queue_of(job)).execute(job, journey_id)


@task(inline=True)
def conclude_stage(job: JobContext, journey_id: str) -> str:
    """Settle a journey after the end of its stage job; return the journey's status."""
    return JourneyRunner(job.jobs, queue=_queue_of(job)).settle(journey_id).status.value


def _queue_of(context: JobContext) -> str:
    return context.lease.job.queue_name or QUEUE


def _has_paused(job: Job) -> bool:
    """Return whether a job stopped because its journey was paused; older ones say so only in their message."""
    is_older = job.result is None and job.message == _PAUSED_MESSAGE
    return job.status is Status.STOPPED and (job.result == _PAUSED or is_older)


def _hold(context: JobContext) -> Hold:
    """Return what the run of a stage may do through its job."""
    job = context.lease.job

    def check() -> None:
        try:
            context.work.refresh(context.lease)
        except LeaseLostError as error:
            raise ExecutionLost(str(error)) from error

    def log(level: LogEntryLevel, message: str) -> None:
        context.log(message, level.name)

    return Hold(
        fence=partial(check_lease, lease=context.lease),
        check=check,
        run=context.epoch if context.epoch > 1 else None,
        should_stop=context.should_stop,
        log=log,
        progress=context.progress,
        metric=context.metric,
        may_retry=context.attempt < job.max_attempts,
    )
