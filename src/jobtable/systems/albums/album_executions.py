"""Executions of the album workflow: started, retried and deleted here, and run by a workflow of either style.

The records are what people see; the run of the workflow moves them by its functions. If a process dies between a change
of the records and the call to the workflow that follows from it, the watch repeats the call.
"""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any, TypedDict, Unpack

from jobtable.clock import wall_time
from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    JobStateError,
    NotFoundError,
    TransactionFailedError,
    ValueRefusedError,
)
from jobtable.inbox.delivery import load_sender
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import await_workers
from jobtable.jobs.stored.entities import Job
from jobtable.objects import key_parts, object_key
from jobtable.store import TryAgain
from jobtable.systems.albums.entities import (
    Execution,
    ExecutionStatus,
    ExecutionWatch,
    FunctionCall,
    Step,
    ValidationTask,
    WorkflowType,
)
from jobtable.systems.albums.record_shelf import LOOK_AGAIN, add_end, moved_on, update_seen
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.workflow_runs import WorkflowRuns, runs_of

UPLOADS = "uploads"
"""The prefix of the objects of executions."""
LONGEST_WAIT = timedelta(days=366)
"""The longest time to wait for an answer, as of a task of a state machine."""
ANSWER_WITHIN = timedelta(hours=1)
FORMER_TASK = "albums.runner:run_steps"
"""The task of the jobs by which earlier versions ran executions."""
FORMER = (
    "was run by an earlier version of Jobtable, which can finish it; or delete it with "
    "`jobtable executions delete {id} --stop`, and start it again with its image"
)


class Question(TypedDict, total=False):
    """How the execution asks a person."""

    answer_within: timedelta
    """How long it waits for the answer; ANSWER_WITHIN by default."""
    on_timeout: str | None
    """What it does after that: "fail" or "continue"."""
    deliver: str | None
    """The function `module:NAME` that sends a task and its token."""


class Executions:
    """Executions on one job engine. Safe to use from any thread and process."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self.records = AlbumWorkflows(jobs.store)

    def _runs(self, execution: Execution) -> WorkflowRuns:
        return runs_of(self._jobs, execution.workflow_type)

    # --- starting ---------------------------------------------------------------------------------------------------

    def start(
        self,
        workflow_type: WorkflowType,
        image: bytes,
        name: str,
        *,
        execution_id: str | None = None,
        user: str = "local",
        **question: Unpack[Question],
    ) -> Execution:
        """Store the image and start the workflow.

        Repeating the call with the same execution_id finds the execution or completes an interrupted start;
        AlreadyExistsError if it was started with something else.
        """
        options = _options(**question)
        execution_id = execution_id or str(uuid.uuid4())
        existing = self._jobs.store.find(Execution.key(execution_id=execution_id))
        if existing is not None:
            self._refuse_another_start(existing, workflow_type, options, name, image)
            self._run(existing)
            return existing
        if self._jobs.store.find(ValidationTask.key(task_id=execution_id)) is not None:
            raise ConflictError(f"{execution_id} is already the id of a task; choose another id")
        # With the digest in its key, two concurrent starts with one id cannot overwrite each other's image.
        image_key = object_key(UPLOADS, execution_id, hashlib.sha256(image).hexdigest()[:16], name)
        now = self._jobs.clock.now()
        execution = Execution(
            execution_id=execution_id,
            workflow_type=workflow_type,
            image_s3_key=image_key,
            current_step=Step.READ_IMAGE,
            options=options,
            created_by=user,
            start_time=now,
            created_at=now,
            updated_at=now,
        )
        self._jobs.objects.put(image_key, image)
        try:
            with self._jobs.store.transaction() as tx:
                tx.add(execution)
                tx.add(self._new_watch(execution))
        except TransactionFailedError:  # a concurrent start with this id came first
            return self.start(workflow_type, image, name, execution_id=execution_id, user=user, **question)
        self._run(execution)
        return execution

    def _refuse_another_start(
        self, existing: Execution, workflow_type: WorkflowType, options: dict[str, Any], name: str, image: bytes
    ) -> None:
        _refuse_deleted(existing)
        started_with = (existing.workflow_type, existing.options, key_parts(existing.image_s3_key)[-1])
        if started_with != (workflow_type, options, name) or self._jobs.objects.get(existing.image_s3_key) != image:
            raise AlreadyExistsError(
                f"execution {existing.execution_id} was started with another image or other options; choose another id"
            )

    def _new_watch(self, execution: Execution) -> ExecutionWatch:
        return ExecutionWatch(
            execution_id=execution.execution_id,
            workflow_type=execution.workflow_type,
            due_at=wall_time(self._jobs.clock) + LOOK_AGAIN,
            definition=self._runs(execution).definition,
            job_step=execution.current_step or Step.READ_IMAGE,
            task_id=execution.task_ids[-1] if execution.task_ids else None,
        )

    def _run(self, execution: Execution) -> None:
        """Start the run of an active execution; if it is deleted meanwhile, stop and delete the run again."""
        if execution.status is not ExecutionStatus.RUNNING:
            return
        self._runs(execution).start(execution)
        now = self._jobs.store.find(Execution.key(execution_id=execution.execution_id))
        if now is None or now.deleted_at is not None:
            # The deletion may have looked for the run before it was started.
            self._delete_runs(execution, "the deletion of its execution")
            raise ConflictError(f"execution {execution.execution_id} was deleted meanwhile")

    # --- moving -----------------------------------------------------------------------------------------------------

    def retry(self, execution_id: str) -> Execution:
        """Continue a failed execution at the step that failed, as a new attempt; ConflictError if it has not failed.

        The results of earlier steps are kept. If nobody answered in time, the question is asked again.
        """
        execution = self.records.get_execution(execution_id)
        if execution.status is not ExecutionStatus.FAILED:
            raise ConflictError(f"execution {execution_id} is {execution.status}; only a failed one can be retried")
        _refuse_deleted(execution)
        if self._runs(execution).look(execution) is None:
            if self._has_former_job(execution_id):
                raise ConflictError(f"execution {execution_id} {FORMER.format(id=execution_id)}")
            raise NotFoundError(f"execution {execution_id} is not run by Jobtable")
        now = self._jobs.clock.now()
        updates = (
            Execution.status.set(ExecutionStatus.RUNNING),
            Execution.attempt.set((execution.attempt or 1) + 1),
            Execution.attempt_started_at.set(now),
            Execution.earlier_ms.set(execution.duration_ms or 0),
            Execution.waited_ms.set(None),
            Execution.end_time.set(None),
            Execution.duration_ms.set(None),
            Execution.failure.set(None),
        )
        try:
            with self._jobs.store.transaction() as tx:
                update_seen(tx, execution, now, *updates)
                tx.put(self._new_watch(execution))
        except TransactionFailedError as error:
            raise moved_on(execution, error) from error
        again = self.records.get_execution(execution_id)
        self._run(again)
        return again

    def fail(self, execution: Execution, reason: str) -> Execution:
        """Fail an execution; ConflictError if it has moved."""
        now = self._jobs.clock.now()
        try:
            with self._jobs.store.transaction() as tx:
                add_end(
                    tx,
                    execution,
                    ExecutionStatus.FAILED,
                    now,
                    wall_time(self._jobs.clock),
                    Execution.failure.set(reason[:2000]),
                )
        except TransactionFailedError as error:
            raise moved_on(execution, error) from error
        return self.records.get_execution(execution.execution_id)

    def resume(self, execution: Execution) -> None:
        """Start a run that was not started, or tell it an answer that it was not told; repeating it changes nothing."""
        self._run(execution)
        tasks = execution.task_ids or []
        if execution.current_step == Step.VALIDATE and tasks:
            task = self.records.get_task(tasks[-1])
            if task.validated_data is not None:
                self._runs(execution).answer(execution, task)

    # --- reading ----------------------------------------------------------------------------------------------------

    def find_watch(self, execution_id: str) -> ExecutionWatch | None:
        """Return the watch over an execution that has not ended and been measured."""
        return self._jobs.store.find(ExecutionWatch.key(execution_id=execution_id))

    def is_referenced(self, key: str) -> bool:
        """Return whether an object belongs to an existing execution; otherwise it is an orphan."""
        parts = key_parts(key)
        if len(parts) < 3 or parts[0] != UPLOADS:
            return False
        execution = self._jobs.store.find(Execution.key(execution_id=parts[1]))
        return execution is not None and execution.image_s3_key == key

    # --- deleting ---------------------------------------------------------------------------------------------------

    def delete(self, execution_id: str, *, stop: bool = False, by: str = "local") -> int:
        """Delete an execution with its albums, tasks, image, workflow and jobs, and return the number of items.

        ConflictError if it has not ended, unless `stop` is set. The execution itself is deleted last, so repeating the
        call completes an interrupted deletion.
        """
        execution = self._marked_deleted(execution_id, stop=stop, by=by)
        store = self._jobs.store
        removed = self._delete_runs(execution, by)
        removed += store.batch_delete(self._tasks_of(execution))
        removed += store.batch_delete(self.records.list_albums(execution_id))
        store.batch_delete(store.query(FunctionCall.key(execution_id=execution_id)))
        for found in list(self._jobs.objects.list(object_key(UPLOADS, execution_id))):
            self._jobs.objects.delete(found.key)
        removed += store.delete(ExecutionWatch.key(execution_id=execution_id))
        return removed + store.delete(Execution.key(execution_id=execution_id))

    def _marked_deleted(self, execution_id: str, *, stop: bool, by: str) -> Execution:
        """Mark an execution that has ended, or is stopped now, as deleted: nothing starts in it after that."""
        store = self._jobs.store

        def mark(execution: Execution) -> Execution:
            if execution.deleted_at is not None:
                return execution
            if execution.status not in (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED):
                if not stop:
                    raise ConflictError(
                        f"execution {execution_id} is {execution.status}; stop it or wait until it has ended"
                    )
                try:
                    execution = self.fail(execution, f"stopped by {by}")
                except ConflictError as error:  # it moved meanwhile
                    raise TryAgain from error
            return store.update(
                Execution.key(execution_id=execution_id),
                Execution.deleted_at.set(self._jobs.clock.now()),
                when=Execution.status == execution.status,
            )

        get = partial(self.records.get_execution, execution_id)
        return store.retrying(get, mark, f"delete execution {execution_id}")

    def _delete_runs(self, execution: Execution, by: str) -> int:
        """Stop what runs of an execution that has ended, wait for its workers, and delete it."""
        runs = self._runs(execution)
        runs.stop(execution, f"stopped by {by}")
        job_ids = runs.job_ids(execution)
        if self._has_former_job(execution.execution_id):
            job_ids.append(execution.execution_id)
        return sum(self._delete_job(job_id, execution, by) for job_id in job_ids) + runs.delete(execution)

    def _has_former_job(self, execution_id: str) -> bool:
        """Return whether an earlier version ran an execution: its first job had the same id."""
        job = self._jobs.store.find(Job.key(job_id=execution_id))
        return job is not None and str(job.definition.task).endswith(FORMER_TASK)

    def _delete_job(self, job_id: str, execution: Execution, by: str) -> int:
        if self._jobs.store.find(Job.key(job_id=job_id)) is None:
            return 0
        with contextlib.suppress(JobStateError, NotFoundError):  # it has already ended
            self._jobs.cancel(job_id, by=by)
        tree: Iterable[Job] = self._jobs.list_tree(job_id)
        await_workers(self._jobs, tree, f"delete execution {execution.execution_id}")
        return self._jobs.delete_for_system(job_id)

    def _tasks_of(self, execution: Execution) -> list[ValidationTask]:
        """Return the tasks of an execution: those that it names, and those that only an index lists."""
        named = self._jobs.store.batch_get(ValidationTask.key(task_id=each) for each in execution.task_ids or [])
        listed = self.records.list_execution_tasks(execution.workflow_type, execution.execution_id)
        return list({task.task_id: task for task in (*listed, *named) if task is not None}.values())


def _options(
    answer_within: timedelta = ANSWER_WITHIN, on_timeout: str | None = None, deliver: str | None = None
) -> dict[str, Any]:
    from jobtable.systems.albums.album_functions import CONTINUE, FAIL  # noqa: PLC0415 - pictures are slow

    if not timedelta(seconds=1) <= answer_within <= LONGEST_WAIT:
        raise ValueRefusedError(
            f"the time for an answer must be from a second to {LONGEST_WAIT.days} days, not {answer_within}"
        )
    if on_timeout not in (None, FAIL, CONTINUE):
        raise ValueRefusedError(f"on_timeout must be {FAIL!r} or {CONTINUE!r}, not {on_timeout!r}")
    if deliver is not None:
        load_sender(deliver)
    seconds = round(answer_within.total_seconds())
    return {"answer_within_seconds": seconds, "on_timeout": on_timeout or FAIL, "deliver": deliver}


def _refuse_deleted(execution: Execution) -> None:
    if execution.deleted_at is not None:
        raise ConflictError(f"execution {execution.execution_id} is being deleted; repeat the deletion to complete it")


def refuse_former(watch: ExecutionWatch | None) -> None:
    """Raise ConflictError for an execution that an earlier version started and only that can finish."""
    if watch is not None and is_former(watch):
        raise ConflictError(f"execution {watch.execution_id} {FORMER.format(id=watch.execution_id)}")


def is_former(watch: ExecutionWatch | None) -> bool:
    """Return whether an execution is under way that an earlier version started: its watch names a `module:NAME`."""
    return watch is not None and ":" in watch.definition
