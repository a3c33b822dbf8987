"""Executions whose history a runner in memory has made, stored as the engine stores them: all at once, or by and by."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from tests.workflows.asl.memory_runner import MemoryRunner

from jobtable.app import Services
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.machine_verbs import LOCAL_ROLE, MachineDraft
from jobtable.workflows.asl.catalogue.records import StateMachine
from jobtable.workflows.asl.entities import Execution, ExecutionEvent, ExecutionStatus
from jobtable.workflows.asl.run import Ended, Event


def create_machine(services: Services, name: str, definition: object, *, publish: bool = False) -> StateMachine:
    """Create a state machine."""
    draft = MachineDraft(name, json.dumps(definition, indent=2), LOCAL_ROLE)
    return services.machines.create(draft, arns=Arns(), publish=publish).machine


class StoredExecution:
    """An execution in a store that gets its events from a runner."""

    def __init__(self, services: Services, machine: StateMachine, name: str, started_at: datetime, text: str) -> None:
        self._store = services.store
        self._key = {"machine": machine.name, "name": name}
        self._store.put(
            Execution(
                machine=machine.name,
                name=name,
                job_id=f"{machine.name}-{name}",
                definition_sha256=machine.definition_sha256,
                region=machine.region,
                account=machine.account,
                input=text,
                started_at=started_at,
            )
        )

    def add(self, events: Iterable[Event]) -> None:
        """Store events, and that there are so many."""
        for event in events:
            self._store.put(
                ExecutionEvent(
                    machine=self._key["machine"],
                    name=self._key["name"],
                    event_id=event.event_id,
                    previous_id=event.previous_id,
                    type=event.type,
                    at=event.at,
                    details=dict(event.details),
                )
            )
            self._store.update(Execution.key(**self._key), Execution.last_event_id.set(event.event_id))

    def end(self, ended: Ended, at: datetime) -> None:
        """Store how it ended."""
        self._store.update(
            Execution.key(**self._key),
            Execution.status.set(ExecutionStatus(ended.status)),
            Execution.output.set(json.dumps(ended.output) if ended.status == "SUCCEEDED" else None),
            Execution.error.set(ended.error),
            Execution.cause.set(ended.cause),
            Execution.stopped_at.set(at),
        )


def store_history(
    services: Services, machine: StateMachine, name: str, runner: MemoryRunner, ended: Ended | None = None
) -> StoredExecution:
    """Store an execution with the whole history of a runner."""
    stored = StoredExecution(services, machine, name, runner.began, json.dumps(runner.payload))
    stored.add(runner.history)
    if ended is not None:
        stored.end(ended, runner.instant)
    return stored
