"""Executions start: each with the job that moves it, in one transaction."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from jobtable.errors import AlreadyExistsError, ConflictError, ValueRefusedError
from jobtable.jobs.submit.definition import NewJob, RetryPolicy
from jobtable.store.transactions import Transaction
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import Execution, ExecutionStatus, MachineType
from jobtable.workflows.asl.execution.event_packs import event_item
from jobtable.workflows.asl.execution.execution_changes import frame_item
from jobtable.workflows.asl.execution.execution_core import ExecutionCore
from jobtable.workflows.asl.execution.links import OBJECTS, identity, task_id
from jobtable.workflows.asl.execution.stored_runs import new_run
from jobtable.workflows.asl.interpreter import begin
from jobtable.workflows.asl.interpreter.strand import dump
from jobtable.workflows.asl.run import MOST_PAYLOAD_BYTES, StartExecution
from jobtable.workflows.asl.verbs import RunnableMachine
from jobtable.workflows.durable.large_payloads import PayloadOwner
from jobtable.workflows.table_and_queues import EXECUTIONS_QUEUE

JOB_TYPE = "state machine"
_TASK = "jobtable.workflows.asl.execution.moving:move_execution"
_ON_END = "jobtable.workflows.asl.execution.ending:end_with_job"
_NO_LIMIT = 1_000_000
"""Attempts of a job: an execution ends by its machine, not because its job could not reach the store."""
_RETRY = RetryPolicy(first_delay_seconds=1, factor=2, longest_delay_seconds=30)


class ExecutionStarts:
    """Starts executions."""

    def __init__(self, core: ExecutionCore) -> None:
        self._core = core

    def start(
        self,
        machine: RunnableMachine,
        payload: str,
        name: str | None = None,
        *,
        arns: Arns,
        trace: str | None = None,
        user: str = "local",
        parent: Mapping[str, Any] | None = None,
        parent_job_id: str | None = None,
        job_id: str | None = None,
    ) -> Execution:
        """Start an execution, or return the running one of this name and input."""
        check_payload(payload)
        name = name or str(uuid.uuid4())
        existing = self._core.store.find(Execution.key(machine=machine.name, name=name))
        if existing is not None and machine.type is MachineType.EXPRESS and existing.job_id != job_id:
            name, existing = f"{name}-{uuid.uuid4()}", None  # names of express executions need not be unique
        if existing is None:
            new = self.make(machine, payload, name, arns=arns, trace=trace, parent=parent)
            try:
                return self._submit(new.replace(job_id=job_id or new.job_id, created_by=user), parent_job_id)
            except ConflictError:
                existing = self._core.store.find(Execution.key(machine=machine.name, name=name))
                if existing is None:
                    raise
        is_repeated = job_id is not None and existing.job_id == job_id
        is_same = existing.status is ExecutionStatus.RUNNING and self._core.input_of(existing) == payload
        if is_repeated or is_same:
            return existing
        raise AlreadyExistsError(f"there is already an execution {machine.name}/{name}", hint="choose another name")

    def start_child(self, above: Execution, command: StartExecution, link: Mapping[str, Any], name: str) -> Execution:
        """Start the execution of a batch of a distributed Map."""
        map_run = command.map_run
        assert map_run is not None
        machine = RunnableMachine(
            f"{above.machine}/{map_run['label']}",
            self._core.definitions.read(above.definition_sha256),
            MachineType.EXPRESS if map_run["express"] else MachineType.STANDARD,
            above.qualifier,
            above.version,
        )
        new = self.make(
            machine,
            dump(command.arguments),
            name,
            arns=Arns(above.region, above.account),
            parent=link,
            processor_path=map_run["path"],
            map_run_id=map_run["arn"].rpartition(":")[2],
        )
        return self._submit(new.replace(role_arn=above.role_arn, created_by=above.created_by), above.job_id)

    def make(
        self,
        machine: RunnableMachine,
        payload: str,
        name: str,
        *,
        arns: Arns,
        trace: str | None = None,
        parent: Mapping[str, Any] | None = None,
        processor_path: str | None = None,
        map_run_id: str | None = None,
        is_stored: bool = True,
    ) -> Execution:
        """Return a new execution, which the caller stores; or one that is not, which holds an input of any size."""
        started_at = self._core.clock.now()
        owner = PayloadOwner(OBJECTS, identity(machine.name, name, started_at), name, machine.name)
        text, key = self._core.texts.keep(payload, owner) if is_stored else (payload, None)
        return Execution(
            machine=machine.name,
            name=name,
            job_id=str(uuid.uuid4()) if parent is None else task_id(parent),
            type=machine.type,
            definition_sha256=self._core.keep_definition(machine.definition),
            processor_path=processor_path,
            qualifier=machine.qualifier,
            version=machine.version,
            region=arns.region,
            account=arns.account,
            role_arn=machine.role_arn,
            input=text,
            input_object=key,
            started_at=started_at,
            trace_header=trace,
            map_run_id=map_run_id,
            parent=None if parent is None else dict(parent),
        )

    def _submit(self, new: Execution, parent_job_id: str | None) -> Execution:
        run = new_run(self._core, new)
        text = self._core.input_of(new)
        begin(run, json.loads(text), text)
        has_history = new.type is MachineType.STANDARD
        new = new.model_copy(update={"last_event_id": run.last_event_id})

        def write(tx: Transaction) -> None:
            tx.add(new)
            for frame in run.frames.values():
                tx.put(frame_item(self._core, new, frame))
            for event in run.events if has_history else ():
                tx.put(event_item(new, event))

        self._core.jobs.submit_together([job_of(new, parent_job_id)], also=write)
        return new


def job_of(execution: Execution, parent_job_id: str | None) -> NewJob:
    """Return the job that moves an execution."""
    return NewJob(
        name=f"{execution.machine}/{execution.name}",
        task=_TASK,
        params={"machine": execution.machine, "name": execution.name},
        queue=EXECUTIONS_QUEUE,
        job_id=execution.job_id,
        job_type=JOB_TYPE,
        user=execution.created_by,
        parent_job_id=parent_job_id,
        max_attempts=_NO_LIMIT,
        most_interruptions=_NO_LIMIT,
        retry=_RETRY,
        on_end=_ON_END,
    )


def check_payload(payload: str) -> None:
    """Raise ValueRefusedError unless an input or output is JSON and not too large."""
    if len(payload.encode()) > MOST_PAYLOAD_BYTES:
        raise ValueRefusedError(f"a payload has at most {MOST_PAYLOAD_BYTES:,} bytes of JSON")
    try:
        json.loads(payload)
    except ValueError as error:
        raise ValueRefusedError(f"a payload must be JSON: {error}") from error
