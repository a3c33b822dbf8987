"""Executions on the job engine: they start, go from step to step, wait for a person, and end.

The item of an execution holds its state. Every move is one transaction, which also sets when to check on the execution
next. After it, the job of the next step is submitted. If the process dies between the two, or a job ends without moving
the execution, the watch (watch.py) continues from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import uuid
from collections.abc import Callable
from datetime import datetime
from functools import partial

from jobtable.clock import wall_time
from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    JobStateError,
    NotFoundError,
    TransactionFailedError,
    kind_and_text,
)
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, await_workers, check_lease
from jobtable.jobs.lifecycle.owners import submit_for
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import NewJob
from jobtable.model import Update
from jobtable.objects import key_parts, object_key
from jobtable.store import TryAgain
from jobtable.systems.albums.definitions import AnyStep, HumanStep, WorkflowDefinition, load_definition, load_sender
from jobtable.systems.albums.entities import (
    Execution,
    ExecutionStatus,
    ExecutionWatch,
    TaskStatus,
    ValidationTask,
    token_digest,
)
from jobtable.systems.albums.moves import DELIVER_WITHIN, LOOK_AGAIN, AskedTask, Move
from jobtable.systems.albums.service import AlbumWorkflows, random_token

_LOG = logging.getLogger(__name__)
QUEUE = "albums"
JOB_TYPE = "album-execution"
UPLOADS = "uploads"
"""The prefix of the objects of executions."""
RUN_STEPS = "jobtable.systems.albums.runner:run_steps"
_IDS = uuid.UUID("3b9d6bcd-bbfd-5b2d-9b5d-ab8dfbbd4bed")
"""The namespace of the ids of step jobs."""


class Executions:
    """Executions of all workflows on one job engine. Safe to use from any thread and process."""

    def __init__(self, jobs: Jobs, *, make_token: Callable[[], str] = random_token) -> None:
        self._jobs = jobs
        self._make_token = make_token
        self.records = AlbumWorkflows(jobs.store, make_token=make_token)

    # --- starting ---------------------------------------------------------------------------------------------------

    def start(
        self, definition: str, image: bytes, name: str, *, execution_id: str | None = None, user: str = "local"
    ) -> Execution:
        """Store the image and submit the first step of the definition `module:NAME`.

        Repeating the call with the same execution_id finds the execution or completes an interrupted start;
        AlreadyExistsError if it was started with another definition or image.
        """
        declared = load_definition(definition)
        execution_id = execution_id or str(uuid.uuid4())
        there = self._jobs.store.find(Execution.key(execution_id=execution_id))
        if there is not None:
            self._refuse_another_start(there, definition, name, image)
            return self.submit_step(there, definition, user=user)
        self._refuse_taken_id(execution_id)
        # With the digest in its key, two concurrent starts with one id cannot overwrite each other's image.
        image_key = object_key(UPLOADS, execution_id, hashlib.sha256(image).hexdigest()[:16], name)
        execution = _new_execution(declared, execution_id, image_key, self._jobs.clock.now())
        first = self._job_of_step(declared, execution, definition, user)  # if it is refused, nothing is stored yet
        self._jobs.objects.put(image_key, image)
        try:
            with self._jobs.store.transaction() as tx:
                tx.add(execution)
                tx.add(_new_watch(declared, execution, definition, wall_time(self._jobs.clock) + LOOK_AGAIN))
        except TransactionFailedError:  # a concurrent start with this id came first
            return self.start(definition, image, name, execution_id=execution_id, user=user)
        self._submit(first, execution_id)
        return execution

    def _refuse_another_start(self, there: Execution, definition: str, name: str, image: bytes) -> None:
        _refuse_deleted(there)
        watch = self._jobs.store.find(ExecutionWatch.key(execution_id=there.execution_id))
        started_with = self._definition_of(there.execution_id) if watch is None else watch.definition
        is_same_name = key_parts(there.image_s3_key)[-1] == name
        if started_with != definition or not is_same_name or self._jobs.objects.get(there.image_s3_key) != image:
            raise AlreadyExistsError(
                f"execution {there.execution_id} was started with another definition or image; choose another id"
            )

    def _refuse_taken_id(self, execution_id: str) -> None:
        taken = self._jobs.store.find(Job.key(job_id=execution_id))
        if taken is not None and not is_step_job(taken):
            raise ConflictError(f"job {execution_id} already exists and is not an execution; choose another id")
        if self._jobs.store.find(ValidationTask.key(task_id=execution_id)) is not None:
            raise ConflictError(f"{execution_id} is already the id of a task; choose another id")

    def submit_step(self, execution: Execution, definition: str, *, user: str = "local") -> Execution:
        """Submit the job of an execution's current step, if a worker runs it. Repeating the call changes nothing.

        Return the execution, which fails if its first job, the root of the others, was deleted or ended with all of
        them.
        """
        if execution.status is not ExecutionStatus.RUNNING:
            return execution
        declared = load_definition(definition)
        if self.lacks_root(declared, execution):
            return self.fail(execution, f"job {execution.execution_id}, the root of its jobs, no longer exists")
        try:
            self._submit(self._job_of_step(declared, execution, definition, user), execution.execution_id)
        except JobStateError:
            root = self._first_job(execution.execution_id)
            if root is None or root.tree_status is None:
                raise
            return self.fail(execution, f"job {root.job_id} was {root.tree_status} with all its descendants")
        return execution

    def _submit(self, job: NewJob, execution_id: str) -> None:
        """Submit a job of an execution; ConflictError if the execution is deleted meanwhile, and the job with it."""
        submit_for(
            self._jobs,
            [job],
            f"execution {execution_id}",
            is_going=lambda: self._is_going(execution_id),
            delete=lambda _: self._delete_job(str(job.job_id), execution_id, "the deletion of its execution"),
        )

    def _is_going(self, execution_id: str) -> bool:
        """Return whether an execution is deleted or being deleted."""
        execution = self._jobs.store.find(Execution.key(execution_id=execution_id))
        return execution is None or execution.deleted_at is not None

    def lacks_root(self, declared: WorkflowDefinition, execution: Execution) -> bool:
        """Return whether the first job of an execution, which precedes the current step, no longer exists."""
        job_id = step_job_id(declared, execution, declared.step(execution.current_step))
        return job_id != execution.execution_id and self._first_job(execution.execution_id) is None

    def _job_of_step(self, declared: WorkflowDefinition, execution: Execution, definition: str, user: str) -> NewJob:
        step = declared.step(execution.current_step)
        job_id = step_job_id(declared, execution, step)
        is_first = job_id == execution.execution_id
        params = {"execution_id": execution.execution_id, "step": step.name, "definition": definition}
        return NewJob(
            name=f"{step.name} of execution {execution.execution_id}",
            task=RUN_STEPS,
            params=params if execution.attempt is None else params | {"attempt": execution.attempt},
            job_id=job_id,
            job_type=JOB_TYPE,
            job_stage=step.name,
            parent_job_id=None if is_first else execution.execution_id,
            queue=QUEUE,
            user=user if is_first else self._jobs.queries.get_job(execution.execution_id).created_by,
            max_attempts=declared.max_attempts,
        )

    # --- moving -----------------------------------------------------------------------------------------------------

    def advance(self, execution: Execution, definition: str, seconds: float, lease: Lease) -> Execution:
        """Complete the current step of an execution, which took this many seconds, and move on.

        ConflictError if the execution has moved, or the lease of its job is lost.
        """
        declared = load_definition(definition)
        step = declared.step(execution.current_step)
        cost = (execution.estimated_cost or 0.0) + declared.rates.of(seconds)
        move = Move(self._jobs.store, self._jobs.clock, execution)
        check_lease(move.tx, lease)
        return self.go_on(move, execution, declared.after(step.name), Execution.estimated_cost.set(cost))

    def go_on(self, move: Move, execution: Execution, step: AnyStep | None, *updates: Update) -> Execution:
        """Move to a step, and send the token if a person is asked there."""
        albums = self.records.list_albums(execution.execution_id) if isinstance(step, HumanStep) else []
        question = move.go_on(step, *updates, albums=albums, token=self._make_token())
        move.commit()
        self._deliver(question)
        return self.records.get_execution(execution.execution_id)

    def deliver_again(self, execution: Execution, task: ValidationTask, watch: ExecutionWatch) -> None:
        """Send a question that may not have been sent, with a new token, because the first one is not stored.

        Of several concurrent calls one sends it; the others raise ConflictError.
        """
        step = load_definition(watch.definition).step(execution.current_step)
        if not isinstance(step, HumanStep) or step.deliver is None:  # the definition was changed
            self._wait_for(task)
            return
        token, due_at = self._make_token(), min(task.expires_at, wall_time(self._jobs.clock) + DELIVER_WITHIN)
        with self._jobs.store.transaction() as tx:
            tx.update(
                ValidationTask.key(task_id=task.task_id),
                ValidationTask.token_sha256.set(token_digest(token)),
                when=ValidationTask.status == TaskStatus.PENDING,
            )
            tx.update(watch, ExecutionWatch.due_at.set(due_at), when=ExecutionWatch.due_at == watch.due_at)
        self._deliver(AskedTask(task, token, step.deliver))

    def _deliver(self, question: AskedTask | None) -> None:
        """Send a question, if there is one to send. A failure is recorded in the task; the execution waits."""
        if question is None or question.sender is None:
            return
        task = question.task
        try:
            load_sender(question.sender)(task, question.token)
        except Exception as error:  # anything that a user's function may raise
            problem = f"{question.sender} failed: {kind_and_text(error)}"[:1000]
            _LOG.warning("task %s was not delivered: %s", task.task_id, problem, exc_info=True)
            self._jobs.store.update(
                ValidationTask.key(task_id=task.task_id), ValidationTask.delivery_problem.set(problem)
            )
        self._wait_for(task)

    def _wait_for(self, task: ValidationTask) -> None:
        """Make the watch check on an execution only when its task expires."""
        # It may have been answered already; then the watch is about the next step.
        with contextlib.suppress(TransactionFailedError), self._jobs.store.transaction() as tx:
            tx.check(Execution.key(execution_id=task.execution_id), Execution.status == ExecutionStatus.WAITING)
            tx.update(
                ExecutionWatch.key(execution_id=task.execution_id),
                ExecutionWatch.due_at.set(task.expires_at),
                when=ExecutionWatch.task_id == task.task_id,
            )

    def retry(self, execution_id: str) -> Execution:
        """Continue a failed execution at the step that failed, as a new attempt; ConflictError if it has not failed.

        The results of earlier steps are kept. If nobody answered in time, the question is asked again.
        """
        execution = self.records.get_execution(execution_id)
        if execution.status is not ExecutionStatus.FAILED:
            raise ConflictError(f"execution {execution_id} is {execution.status}; only a failed one can be retried")
        _refuse_deleted(execution)
        definition = self._definition_of(execution_id)
        step = load_definition(definition).step(execution.current_step)
        last = max(self._tasks_of(execution), key=lambda task: task.created_at, default=None)
        albums = self.records.list_albums(execution_id) if isinstance(step, HumanStep) else []
        move = Move(self._jobs.store, self._jobs.clock, execution)
        last_task_id = None if last is None else last.task_id
        question = move.retry(step, definition, last_task_id, albums=albums, token=self._make_token())
        move.commit()
        root = self._first_job(execution_id)
        if root is not None and root.tree_status is not None:
            self._jobs.open_for_system(root.job_id)
        self._deliver(question)
        return self.submit_step(self.records.get_execution(execution_id), definition)

    def fail(self, execution: Execution, reason: str, lease: Lease | None = None) -> Execution:
        """Fail an execution; ConflictError if it has moved, or the lease is lost."""
        move = Move(self._jobs.store, self._jobs.clock, execution)
        if lease is not None:
            check_lease(move.tx, lease)
        move.end(ExecutionStatus.FAILED, Execution.failure.set(reason))
        move.commit()
        return self.records.get_execution(execution.execution_id)

    # --- reading ----------------------------------------------------------------------------------------------------

    def get_watch(self, execution_id: str) -> ExecutionWatch:
        """Return the watch over an execution that has not ended, or raise NotFoundError."""
        watch = self._jobs.store.find(ExecutionWatch.key(execution_id=execution_id))
        if watch is None:
            raise NotFoundError(f"execution {execution_id} has ended or is not run by the job engine")
        return watch

    def get_definition(self, execution_id: str) -> WorkflowDefinition:
        """Return the definition of an execution, or raise NotFoundError."""
        return load_definition(self._definition_of(execution_id))

    def _definition_of(self, execution_id: str) -> str:
        first = self._first_job(execution_id)
        if first is None:
            raise NotFoundError(f"execution {execution_id} is not run by the job engine")
        return str(first.definition.params["definition"])

    def _first_job(self, execution_id: str) -> Job | None:
        """Return the job of the first step, which is the root of the others, unless another job has its id."""
        job = self._jobs.store.find(Job.key(job_id=execution_id))
        return job if job is not None and is_step_job(job) else None

    def _tasks_of(self, execution: Execution) -> list[ValidationTask]:
        """Return the tasks of an execution: those that it names, and those that only an index lists."""
        named = self._jobs.store.batch_get(ValidationTask.key(task_id=each) for each in execution.task_ids or [])
        listed = self.records.list_execution_tasks(execution.workflow_type, execution.execution_id)
        return list({task.task_id: task for task in (*listed, *named) if task is not None}.values())

    def find_answer(self, execution_id: str) -> ValidationTask | None:
        """Return the latest task, for the steps after it, if a person has answered it."""
        watch = self.get_watch(execution_id)
        if watch.task_id is None:
            return None
        task = self.records.get_task(watch.task_id)
        return task if task.status is TaskStatus.COMPLETED else None

    # --- deleting ---------------------------------------------------------------------------------------------------

    def delete(self, execution_id: str, *, stop: bool = False, by: str = "local") -> int:
        """Delete an execution with its albums, tasks, image and jobs, and return the number of items.

        ConflictError if it has not ended, unless `stop` is set. The execution itself is deleted last, so repeating the
        call completes an interrupted deletion.
        """
        execution = self._marked_deleted(execution_id, stop=stop, by=by)
        removed = self._delete_jobs(execution, by)
        store = self._jobs.store
        removed += store.batch_delete(self._tasks_of(execution))
        removed += store.batch_delete(self.records.list_albums(execution_id))
        for found in list(self._jobs.objects.list(object_key(UPLOADS, execution_id))):
            self._jobs.objects.delete(found.key)
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

    def _delete_jobs(self, execution: Execution, by: str) -> int:
        """Delete the jobs of an execution that has ended: cancel those that wait, stop those that run."""
        execution_id = execution.execution_id
        if self._first_job(execution_id) is None:
            return 0
        return self._delete_job(execution_id, execution_id, by)

    def _delete_job(self, job_id: str, execution_id: str, by: str) -> int:
        with contextlib.suppress(JobStateError):  # it has already ended
            self._jobs.cancel(job_id, by=by)
        await_workers(self._jobs, self._jobs.list_tree(job_id), f"delete execution {execution_id}")
        return self._jobs.delete_for_system(job_id)

    def is_referenced(self, key: str) -> bool:
        """Return whether an object belongs to an existing execution; otherwise it is an orphan."""
        parts = key_parts(key)
        if len(parts) < 3 or parts[0] != UPLOADS:
            return False
        execution = self._jobs.store.find(Execution.key(execution_id=parts[1]))
        return execution is not None and execution.image_s3_key == key


def _new_execution(declared: WorkflowDefinition, execution_id: str, image_key: str, now: datetime) -> Execution:
    return Execution(
        execution_id=execution_id,
        workflow_type=declared.workflow_type,
        image_s3_key=image_key,
        current_step=declared.steps[0].name,
        start_time=now,
        created_at=now,
        updated_at=now,
    )


def _new_watch(declared: WorkflowDefinition, execution: Execution, definition: str, due_at: datetime) -> ExecutionWatch:
    return ExecutionWatch(
        execution_id=execution.execution_id,
        workflow_type=declared.workflow_type,
        due_at=due_at,
        definition=definition,
        job_step=declared.steps[0].name,
    )


def _refuse_deleted(execution: Execution) -> None:
    if execution.deleted_at is not None:
        raise ConflictError(f"execution {execution.execution_id} is being deleted; repeat the deletion to complete it")


def is_step_job(job: Job) -> bool:
    """Return whether a job runs steps of an execution; another job may have an execution's id."""
    return job.definition.task == RUN_STEPS


def step_job_id(declared: WorkflowDefinition, execution: Execution, step: AnyStep) -> str:
    """Return the id of the job that starts with a step. The first one has the execution's and is the root."""
    if step == declared.steps[0] and execution.attempt is None:
        return execution.execution_id
    again = "" if execution.attempt is None else f"\n{execution.attempt}"
    return str(uuid.uuid5(_IDS, f"{execution.execution_id}\n{step.name}{again}"))
