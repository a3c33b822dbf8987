"""The functions of the album workflow, which the state machine and the durable function call alike.

Each takes an event with the `execution_id`, does one step, and may run again after a crash with the same effect. On AWS
they are Lambda functions of these names; the table and the objects are those that their environment names.
"""

from __future__ import annotations

import logging
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from jobtable.clock import wall_time
from jobtable.errors import ConditionFailedError, ConflictError, ValueRefusedError
from jobtable.inbox import delivery
from jobtable.inbox.answer_tokens import random_token, token_digest
from jobtable.model import Condition
from jobtable.store import Store, requests
from jobtable.store.transactions import Transaction
from jobtable.systems.albums import album_checks
from jobtable.systems.albums.entities import (
    Album,
    AlbumData,
    Execution,
    ExecutionStatus,
    ExecutionWatch,
    Step,
    TaskStatus,
    ValidationTask,
)
from jobtable.systems.albums.found_albums import find_albums
from jobtable.systems.albums.found_albums import read_image as read_text
from jobtable.systems.albums.record_catalogues import open_catalogue
from jobtable.systems.albums.record_shelf import RecordShelf, milliseconds, next_look, update_seen
from jobtable.systems.albums.usage import MEMORY_MB
from jobtable.workflows.functions import function

Event: TypeAlias = dict[str, Any]
_LOG = logging.getLogger(__name__)
_TASK_IDS = uuid.UUID("3b9d6bcd-bbfd-5b2d-9b5d-ab8dfbbd4bed")
FAIL, CONTINUE = "fail", "continue"


class NobodyAnsweredError(Exception):
    """Nobody answered in time, and the execution was started to fail then."""


@function(name="albums-read-image", timeout_seconds=300, memory_mb=MEMORY_MB)
def read_image(event: Event, context: Any) -> Event:
    """Store an album for each that the image names, and return their numbers."""
    with RecordShelf.open(context, event, Step.READ_IMAGE) as shelf:
        key = shelf.execution.image_s3_key
        found = find_albums(read_text(shelf.objects.get(key)))
        for problem in found.skipped:
            _LOG.warning("execution %s: %s is skipped", shelf.execution.execution_id, problem)
        if not found.albums:
            raise ValueRefusedError(f"{key} names no albums; photograph their covers, or write Artist - Album (1973)")
        albums = album_checks.albums_of(shelf.execution, found.albums)
        shelf.write(albums)
        _refuse_unanswerable(_task(shelf, {**event, "answer_within_seconds": 1}, "", albums))
        return _numbers(albums)


@function(name="albums-list", timeout_seconds=60)
def list_albums(event: Event, context: Any) -> Event:
    """Return the numbers of the albums that are stored."""
    with RecordShelf.open(context, event, Step(event["step"])) as shelf:
        return _numbers(shelf.albums())


@function(name="albums-check-years", timeout_seconds=600)
def check_years(event: Event, context: Any) -> Event:
    """Compare the year of one album with the catalogue."""
    with RecordShelf.open(context, event, Step.CHECK_YEARS) as shelf:
        album = shelf.records.get_album(shelf.execution.execution_id, event["album_index"])
        checked = album_checks.check_year(album, open_catalogue(clock=shelf.clock))
        shelf.write([checked])
        return {"year": checked.year, "validated": checked.year_validated}


@function(name="albums-ask", timeout_seconds=60)
def ask(event: Event, context: Any) -> Event:
    """Store the task for a person, with the digest of a token that answers it, and send both if someone delivers them.

    If it runs again after a crash, a new token replaces the first, which may not have been sent. If a person answered
    while no workflow ran, nobody is asked again: the watch tells the workflow that answer.
    """
    with RecordShelf.open(context, event, Step.VALIDATE) as shelf:
        if (answered := _answered_already(shelf)) is not None:
            _take_answer(shelf, answered, event)
            return {"task_id": answered.task_id}
        token = random_token()
        task = _task(shelf, event, token, shelf.albums())
        existing = shelf.store.find(ValidationTask.key(task_id=task.task_id))
        if existing is None:
            _refuse_unanswerable(task)
            execution, now = shelf.execution, shelf.clock.now()
            with shelf.moving() as tx:
                tx.add(task)
                waits = Execution.status.set(ExecutionStatus.WAITING)
                named = Execution.task_ids.set([*(execution.task_ids or []), task.task_id])
                update_seen(tx, execution, now, waits, named)
                tx.update(
                    ExecutionWatch.key(execution_id=execution.execution_id),
                    ExecutionWatch.due_at.set(next_look(task, wall_time(shelf.clock))),
                    ExecutionWatch.task_id.set(task.task_id),
                )
        elif not _renew(shelf.store, existing, task.token_sha256):
            return {"task_id": task.task_id}
        if event.get("deliver"):
            deliver(shelf.store, existing or task, token, str(event["deliver"]))
        return {"task_id": task.task_id}


@function(name="albums-close-question", timeout_seconds=60)
def close_question(event: Event, context: Any) -> Event:
    """Say what became of a question whose time is over: answered just in time, timed out, or to be asked again."""
    with RecordShelf.open(context, event, Step.VALIDATE) as shelf:
        task = _last_task(shelf)
        if task.status is TaskStatus.PENDING:
            time_out(shelf.store, task, shelf.clock.now())
            task = shelf.records.get_task(task.task_id)
        if task.status is TaskStatus.COMPLETED:
            return {"status": task.status.value, "task_id": task.task_id}
        retried_at = shelf.execution.attempt_started_at
        if retried_at is not None and task.completed_at is not None and task.completed_at < retried_at:
            return {"status": "ask-again"}
        if event["on_timeout"] == FAIL:
            raise NobodyAnsweredError(f"nobody answered task {task.task_id} in time")
        return {"status": task.status.value}


@function(name="albums-apply-answer", timeout_seconds=60)
def apply_answer(event: Event, context: Any) -> Event:
    """Correct the albums as a person did; those that the answer leaves out are deleted."""
    with RecordShelf.open(context, event, Step.APPLY_ANSWER) as shelf:
        task = _last_task(shelf)
        if task.status is not TaskStatus.COMPLETED or task.completed_at is None:
            raise ConflictError(f"task {task.task_id} is {task.status}; nobody has answered it")
        answer = task.validated_data or []
        confirmed, removed = album_checks.apply_answer(shelf.albums(), answer, task.completed_at)
        shelf.write(confirmed, removed)
        return _numbers(confirmed)


@function(name="albums-price", timeout_seconds=600)
def price(event: Event, context: Any) -> Event:
    """Look up what one album costs; with a `problem`, note that instead."""
    with RecordShelf.open(context, event, Step.PRICE) as shelf:
        album = shelf.records.get_album(shelf.execution.execution_id, event["album_index"])
        problem = "the catalogue did not answer" if event.get("problem") else None
        priced = album_checks.price(album, open_catalogue(clock=shelf.clock), problem)
        shelf.write([priced])
        return {"price": priced.price_estimate, "source": priced.price_source}


@function(name="albums-finish", timeout_seconds=60)
def finish(event: Event, context: Any) -> Event:
    """Complete the execution."""
    with RecordShelf.open(context, event, Step.PRICE) as shelf:
        execution = shelf.finish()
        return {"execution_id": execution.execution_id, "status": execution.status.value}


def _numbers(albums: list[Album]) -> Event:
    return {"albums": [{"execution_id": each.execution_id, "album_index": each.album_index} for each in albums]}


# --- tasks ------------------------------------------------------------------------------------------------------------


def _task(shelf: RecordShelf, event: Event, token: str, albums: list[Album]) -> ValidationTask:
    """Return the task of the workflow's token: the same one however often the function runs."""
    execution, workflow_digest = shelf.execution, token_digest(str(event.get("token")))
    now = wall_time(shelf.clock)
    asked_at = datetime.fromisoformat(event["asked_at"]).astimezone(UTC) if event.get("asked_at") else now
    return ValidationTask(
        task_id=str(uuid.uuid5(_TASK_IDS, workflow_digest)),
        execution_id=execution.execution_id,
        workflow_type=execution.workflow_type,
        image_s3_key=execution.image_s3_key,
        albums=album_checks.ask(albums),
        token_sha256=token_digest(token),
        workflow_sha256=workflow_digest,
        expires_at=asked_at + timedelta(seconds=event["answer_within_seconds"]),
        created_at=shelf.clock.now(),
    )


def _answered_already(shelf: RecordShelf) -> ValidationTask | None:
    ids = shelf.execution.task_ids
    last = shelf.store.find(ValidationTask.key(task_id=ids[-1])) if ids else None
    return last if last is not None and last.status is TaskStatus.COMPLETED else None


def _take_answer(shelf: RecordShelf, task: ValidationTask, event: Event) -> None:
    """Let the watch answer this workflow with what a person answered to an earlier one."""
    with shelf.moving() as tx:
        digest = token_digest(str(event.get("token")))
        tx.update(ValidationTask.key(task_id=task.task_id), ValidationTask.workflow_sha256.set(digest))
        watch = ExecutionWatch.key(execution_id=shelf.execution.execution_id)
        tx.update(watch, ExecutionWatch.due_at.set(wall_time(shelf.clock)))


def _renew(store: Store, task: ValidationTask, digest: str) -> bool:
    """Give a pending task another token; return whether it is pending."""
    pending = ValidationTask.status == TaskStatus.PENDING
    try:
        store.update(ValidationTask.key(task_id=task.task_id), ValidationTask.token_sha256.set(digest), when=pending)
    except ConditionFailedError:
        return False
    return True


def _last_task(shelf: RecordShelf) -> ValidationTask:
    ids = shelf.execution.task_ids or []
    if not ids:
        raise ConflictError(f"execution {shelf.execution.execution_id} has not asked anybody")
    return shelf.records.get_task(ids[-1])


def time_out(store: Store, task: ValidationTask, now: datetime) -> None:
    """Close a pending task that nobody answered in time; one that was closed meanwhile stays as it is."""

    def close(execution: Execution) -> None:
        current = store.find(ValidationTask.key(task_id=task.task_id))
        if current is None or current.status is not TaskStatus.PENDING:
            return
        with store.transaction() as tx:
            add_closing(tx, current, execution, TaskStatus.TIMED_OUT, now)

    key = Execution.key(execution_id=task.execution_id)
    store.retrying(lambda: store.get(key), close, f"time out task {task.task_id}")


def add_closing(
    tx: Transaction,
    task: ValidationTask,
    execution: Execution,
    status: TaskStatus,
    now: datetime,
    *,
    when: Condition | None = None,
    answer: list[AlbumData] | None = None,
) -> None:
    """Add the end of a question: the execution no longer waits."""
    pending = ValidationTask.status == TaskStatus.PENDING
    tx.update(
        ValidationTask.key(task_id=task.task_id),
        ValidationTask.status.set(status),
        ValidationTask.validated_data.set(answer),
        ValidationTask.completed_at.set(now),
        when=pending if when is None else pending & when,
    )
    waited = (execution.waited_ms or 0) + milliseconds(task.created_at, now)
    update_seen(tx, execution, now, Execution.status.set(ExecutionStatus.RUNNING), Execution.waited_ms.set(waited))
    tx.update(ExecutionWatch.key(execution_id=execution.execution_id), ExecutionWatch.due_at.set(now))


def deliver(store: Store, task: ValidationTask, token: str, sender: str) -> None:
    """Send a task and its token to the person who answers. A failure is recorded in the task; the execution waits."""
    if (problem := delivery.deliver(sender, task, token)) is not None:
        store.update(ValidationTask.key(task_id=task.task_id), ValidationTask.delivery_problem.set(problem))


def _refuse_unanswerable(task: ValidationTask) -> None:
    """Raise ValueRefusedError if the question and its answer do not fit into one item."""
    try:
        requests.put(task.replace(validated_data=task.albums), None)
    except ValueRefusedError as error:
        raise ValueRefusedError(
            f"execution {task.execution_id} has {len(task.albums):,} albums, too many for one question; "
            f"split them into several executions ({error})"
        ) from error
