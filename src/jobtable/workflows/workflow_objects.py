"""Which objects of workflows records name, for `objects sweep`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jobtable.jobs.read.job_reads import JobReads
from jobtable.jobs.stored.entities import Job
from jobtable.objects import key_parts
from jobtable.store import Store
from jobtable.workflows.asl import definition_texts
from jobtable.workflows.asl.entities import (
    Execution,
    ExecutionCommands,
    ExecutionFrame,
    ExecutionSignal,
    MachineDefinition,
)
from jobtable.workflows.asl.execution.links import execution_id
from jobtable.workflows.durable import large_payloads
from jobtable.workflows.durable.entities import DurableEvents, DurableExecution, DurableOperation, PayloadFolder

PREFIXES = (definition_texts.ROOT, large_payloads.ROOT)


class WorkflowObjects:
    """Lookup of the objects of definitions and payloads that records name."""

    def __init__(self, jobs: JobReads) -> None:
        self._store: Store = jobs.store
        self._jobs = jobs
        self._named_of: tuple[str, frozenset[str]] = ("", frozenset())

    def is_referenced(self, key: str) -> bool:
        """Return whether a record names the object."""
        match key_parts(key):
            case (definition_texts.ROOT, "definitions", name):
                record = self._store.find(MachineDefinition.key(sha256=name.removesuffix(".json")))
                return record is not None and record.text is None
            case (large_payloads.ROOT, _, owner_id, _):
                return key in self._named(owner_id)
        return False

    def _named(self, owner_id: str) -> frozenset[str]:
        """Return the objects that an owner names; read once, because objects are listed folder by folder.

        Later records do not matter: an object is stored again before another record names it.
        """
        if self._named_of[0] != owner_id:
            self._named_of = (owner_id, frozenset(self._read(owner_id)))
        return self._named_of[1]

    def _read(self, owner_id: str) -> Iterator[str]:
        folder = self._store.find(PayloadFolder.key(owner_id=owner_id))
        if folder is None:
            yield from _named_by(self._store.find(Job.key(job_id=owner_id)))
        elif folder.machine is None:
            yield from self._of_durable(folder)
        else:
            yield from self._of_machine(folder.machine, folder)

    def _of_machine(self, machine: str, folder: PayloadFolder) -> Iterator[str]:
        keys = {"machine": machine, "name": folder.name}
        execution = self._store.find(Execution.key(**keys))
        if execution is None or execution_id(execution) != folder.owner_id:
            return
        named = [execution.input_object, execution.output_object]
        named += [each.memory_object for each in self._store.query(ExecutionFrame.key(**keys))]
        named += [each.commands_object for each in self._store.query(ExecutionCommands.key(**keys))]
        named += [each.payload_object for each in self._store.query(ExecutionSignal.key(**keys))]
        yield from (key for key in named if key is not None)
        for job in self._jobs.queries.read_jobs([*execution.earlier_job_ids, execution.job_id]):
            for child in () if job is None else self._jobs.list_children_now(job):
                yield from _named_by(child)

    def _of_durable(self, folder: PayloadFolder) -> Iterator[str]:
        keys = {"function": folder.function, "execution": folder.name}
        execution = self._store.find(DurableExecution.key(function=folder.function, name=folder.name))
        if execution is None or execution.execution_id != folder.owner_id:
            return
        yield from _keys_in(execution.input, execution.output)
        called: list[str] = []
        for operation in self._store.query(DurableOperation.key(**keys)):
            yield from _keys_in(operation.input, operation.result)
            if operation.child is not None and "job_id" in operation.child:
                called.append(operation.child["job_id"])
        for page in self._store.query(DurableEvents.key(**keys)):
            yield from _keys_in(*(event.get("payload") for event in json.loads(page.events)))
        for job in self._jobs.queries.read_jobs(called):
            yield from _named_by(job)


def _named_by(job: Job | None) -> Iterator[str]:
    """Yield the objects that the job of a call names: its payload and its answer."""
    if job is None:
        return
    result = job.result if isinstance(job.result, dict) else {}
    yield from _keys_in(job.definition.params.get("payload"), result.get("payload"))


def _keys_in(*payloads: Any) -> Iterator[str]:
    yield from (payload["object"] for payload in payloads if isinstance(payload, dict) and "object" in payload)
