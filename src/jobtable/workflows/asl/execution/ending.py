"""Ends of executions from outside: they are stopped, their jobs end, and they are deleted."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from jobtable.clock import wall_time
from jobtable.errors import ConflictError, ErrorReason, JobStateError
from jobtable.jobs.lifecycle.last_acts import JobEnd
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.store import Store
from jobtable.store.transactions import Transaction
from jobtable.workflows.asl.entities import (
    Execution,
    ExecutionCommands,
    ExecutionEvent,
    ExecutionFrame,
    ExecutionSignal,
    ExecutionStatus,
    MachineType,
    MapRun,
)
from jobtable.workflows.asl.execution.child_outcomes import report_end
from jobtable.workflows.asl.execution.event_packs import event_item
from jobtable.workflows.asl.execution.execution_core import ExecutionCore
from jobtable.workflows.asl.execution.links import owner_of
from jobtable.workflows.asl.execution.texts import Texts
from jobtable.workflows.asl.interpreter.history import without_none
from jobtable.workflows.asl.interpreter.strand import ROOT
from jobtable.workflows.asl.run import Event

RETENTION = timedelta(days=90)
"""How long an execution is kept after its end."""
_ENDS_BETWEEN_DELETIONS = 32
_MOST_DELETIONS = 20
_PARTS = (ExecutionEvent, ExecutionFrame, ExecutionCommands, ExecutionSignal)


class ExecutionEnds:
    """Stops and deletes executions."""

    def __init__(self, core: ExecutionCore) -> None:
        self._core = core

    def stop(self, machine: str, name: str, *, error: str | None = None, cause: str | None = None) -> Execution:
        """Abort an execution at once. Its job cancels whatever it still waits for."""
        core = self._core

        def act(before: Execution) -> Execution:
            if before.status is not ExecutionStatus.RUNNING:
                raise JobStateError(f"the execution {machine}/{name} is {before.status}", reason=ErrorReason.JOB_ENDED)
            with core.store.transaction() as tx:
                after = add_abort(core.store, core.texts, tx, before, core.now(), error, cause)
                core.jobs.add_wake(tx, core.store.find(Job.key(job_id=before.job_id)))
            return after

        return core.store.retrying(lambda: core.get(machine, name), act, f"stop execution {machine}/{name}")

    def delete(self, machine: str, name: str) -> int:
        """Delete an ended execution with all its items, objects and jobs; return the number of items."""
        core = self._core
        execution = core.get(machine, name)
        if execution.status is ExecutionStatus.RUNNING:
            raise ConflictError(f"the execution {machine}/{name} is running", hint="stop it first")
        count = 0
        for run in list(core.store.query(MapRun.by_execution(machine=machine, name=name))):
            for child in list(core.store.query(Execution.by_machine(machine=f"{machine}/{run.label}"))):
                if child.map_run_id == run.map_run_id:
                    count += self.delete(child.machine, child.name)
            count += core.store.delete(run)
        for job_id in (*execution.earlier_job_ids, execution.job_id):
            if core.store.find(Job.key(job_id=job_id)) is not None:
                core.jobs.delete_for_system(job_id)
        core.texts.discard(owner_of(execution))
        for part in _PARTS:
            count += core.store.batch_delete(core.store.query(part.key(machine=machine, name=name)))
        same = Execution.revision == execution.revision
        return count + core.store.delete(execution, when=same)

    def delete_some_expired(self, ended: Execution) -> None:
        """Now and then delete executions of the machine of one that ended whose retention is over."""
        if self._core.random.randrange(_ENDS_BETWEEN_DELETIONS):
            return
        expired = self._core.now() - RETENTION
        for status in ExecutionStatus:
            if status is ExecutionStatus.RUNNING:
                continue
            oldest = Execution.by_status(machine=ended.machine, status=status)
            for execution in list(self._core.store.query(oldest, limit=_MOST_DELETIONS)):
                if execution.stopped_at is not None and execution.stopped_at < expired:
                    self.delete(execution.machine, execution.name)


def end_with_job(end: JobEnd) -> None:
    """Abort an execution whose job was ended by a person, with the job; one that has ended stays as it is."""
    if end.status is Status.COMPLETED:
        return
    params = end.job.definition.params
    execution = end.store.find(Execution.key(machine=params["machine"], name=params["name"]))
    if execution is None or execution.job_id != end.job.job_id or execution.status is not ExecutionStatus.RUNNING:
        return
    cause = end.message or f"its job was {end.status.lower()}"
    add_abort(end.store, Texts(None), end.tx, execution, wall_time(end.clock), "States.Runtime", cause)


def add_abort(
    store: Store,
    texts: Texts,
    tx: Transaction,
    before: Execution,
    now: datetime,
    error: str | None,
    cause: str | None,
) -> Execution:
    """End an execution as aborted with the rest of a transaction; its job does what then remains to be done."""
    root = store.find(ExecutionFrame.key(machine=before.machine, name=before.name, frame_id=ROOT))
    memory = None if root is None else texts.find(root.memory, root.memory_object)
    ended: dict[str, Any] = {
        "status": ExecutionStatus.ABORTED,
        "stopped_at": now,
        "error": error,
        "cause": cause,
        "revision": before.revision + 1,
        "last_event_id": before.last_event_id + 1,
    }
    after = before.model_copy(update=ended)
    tx.put(after, when=Execution.revision == before.revision)
    if before.type is MachineType.STANDARD:
        last = before.last_event_id if memory is None else json.loads(memory)["tail"]
        details = {"executionAbortedEventDetails": without_none(error=error, cause=cause)}
        tx.put(event_item(after, Event(after.last_event_id, last, "ExecutionAborted", now, details)))
    report_end(store, texts, tx, after)
    return after
