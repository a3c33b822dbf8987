"""Redrives: an execution that did not succeed goes on, moved by its job or, if that has ended, by a new one."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from jobtable.errors import ConflictError
from jobtable.jobs.stored.entities import Job
from jobtable.store.transactions import Transaction
from jobtable.workflows.asl.entities import Execution, ExecutionStatus, MachineType
from jobtable.workflows.asl.execution.execution_core import ExecutionCore
from jobtable.workflows.asl.execution.links import link_to, task_id
from jobtable.workflows.asl.execution.signals import signal_item
from jobtable.workflows.asl.execution.starting import job_of
from jobtable.workflows.asl.interpreter.strand import ROOT

REDRIVE = "Redrive"
"""The signal upon which an execution continues."""


class ExecutionRedrives:
    """Redrives executions."""

    def __init__(self, core: ExecutionCore) -> None:
        self._core = core

    def redrive(self, machine: str, name: str) -> Execution:
        """Continue an execution that failed, timed out or was aborted; one that runs stays as it is."""
        return self._redrive(self._core.get(machine, name), None, None)

    def redrive_child(self, child: Execution, parent: Mapping[str, Any], parent_job_id: str) -> Execution:
        """Continue the child of a distributed Map for another visit."""
        return self._redrive(child, parent, parent_job_id)

    def _redrive(self, execution: Execution, parent: Mapping[str, Any] | None, above: str | None) -> Execution:
        def act(before: Execution) -> Execution:
            if before.status is ExecutionStatus.RUNNING or before.status is ExecutionStatus.SUCCEEDED:
                raise ConflictError(f"the execution {before.machine}/{before.name} is {before.status}")
            if before.type is MachineType.EXPRESS and parent is None:
                raise ConflictError(f"the execution {before.machine}/{before.name} is an express one")
            after = self._after(before, parent)
            self._write(before, after, above)
            return after

        return self._core.store.retrying(
            lambda: self._core.get(execution.machine, execution.name),
            act,
            f"redrive execution {execution.machine}/{execution.name}",
            first=execution,
        )

    def _after(self, before: Execution, parent: Mapping[str, Any] | None) -> Execution:
        count = before.redrive_count + 1
        changed = {
            "status": ExecutionStatus.RUNNING,
            "revision": before.revision + 1,
            "redrive_count": count,
            "redriven_at": self._core.now(),
            "stopped_at": None,
            "error": None,
            "cause": None,
        }
        if parent is not None:
            changed["parent"] = dict(parent)
        job_id = str(uuid.uuid5(uuid.UUID(before.job_id), f"redrive {count}")) if parent is None else task_id(parent)
        changed |= {"job_id": job_id, "earlier_job_ids": [*before.earlier_job_ids, before.job_id]}
        return before.model_copy(update=changed)

    def _write(self, before: Execution, after: Execution, above: str | None) -> None:
        signal = signal_item(
            after, after.redriven_at or self._core.now(), link_to(after, ROOT, 0), REDRIVE, key=after.job_id, members={}
        )
        job = self._core.store.find(Job.key(job_id=before.job_id))
        if job is not None and not job.is_final:  # it still tidies up after the end
            raise ConflictError(
                f"the execution {after.machine}/{after.name} is still being stopped", hint="try again in a moment"
            )

        def write(tx: Transaction) -> None:
            tx.put(after, when=Execution.revision == before.revision)
            tx.put(signal)

        self._core.jobs.submit_together([job_of(after, above)], also=write)
