"""What the parts of the executions share."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from random import Random, SystemRandom
from typing import Any

from jobtable.clock import wall_time
from jobtable.errors import missing
from jobtable.jobs.engine import Jobs
from jobtable.workflows.asl.arns import find_states_arn
from jobtable.workflows.asl.catalogue.machines import Machines
from jobtable.workflows.asl.catalogue.machines_by_arn import MachinesByArn
from jobtable.workflows.asl.catalogue.records import Activity
from jobtable.workflows.asl.definition_texts import Definitions
from jobtable.workflows.asl.entities import Execution
from jobtable.workflows.asl.execution.execution_reads import ExecutionReads
from jobtable.workflows.asl.execution.links import execution_id
from jobtable.workflows.asl.execution.texts import Texts
from jobtable.workflows.asl.machine import Machine
from jobtable.workflows.asl.machine_definition import check_definition, read_definition
from jobtable.workflows.asl.services.service_calls import ServiceCalls
from jobtable.workflows.asl.verbs import MachineSource, ServiceVerbs
from jobtable.workflows.durable.durable_service import DurableService
from jobtable.workflows.durable.function_tasks import service_of

_MOST_KEPT = 1_000


class ExecutionCore:
    """A job engine, and what reads and writes executions on its store."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.store = jobs.store
        self.reads = ExecutionReads(jobs.store)
        self.clock = jobs.clock
        self.texts = Texts(jobs.objects, jobs.store)
        self.definitions = Definitions(jobs.store, jobs.objects)
        self.services: ServiceVerbs = ServiceCalls(jobs)
        self.machines: MachineSource = MachinesByArn(Machines(jobs.store, jobs.objects, check_definition))
        self.random: Random = SystemRandom()
        self._digests: dict[str, str] = {}

    @property
    def functions(self) -> DurableService:
        """The service that finds and calls functions."""
        return service_of(self.jobs)

    def now(self) -> datetime:
        """Return the time on the wall clock, by which things are due."""
        return wall_time(self.clock)

    def get(self, machine: str, name: str) -> Execution:
        """Return an execution, or raise NotFoundError."""
        return self.reads.get(machine, name)

    def machine_of(self, execution: Execution) -> Machine:
        """Return what an execution runs."""
        whole = read_definition(self.definitions.read(execution.definition_sha256))
        return whole if execution.processor_path is None else processor_at(whole, execution.processor_path)

    def has_activity(self, arn: str) -> bool:
        """Return whether there is an activity with this ARN."""
        found = find_states_arn(arn)
        return found is not None and self.store.find(Activity.key(name=found.name)) is not None

    def keep_definition(self, text: str) -> str:
        """Store a definition unless that is known to have been done, and return its digest."""
        if (digest := self._digests.get(text)) is None:
            if len(self._digests) == _MOST_KEPT:
                self._digests.clear()
            digest = self._digests[text] = self.definitions.keep(text)
        return digest

    def token_of(self, execution: Execution, frame_id: str, visit: int) -> str:
        """Return the task token of a visit."""
        return self.functions.core.tokens.task_token(execution_id(execution), frame_id, visit)

    def input_of(self, execution: Execution) -> str:
        """Return the input of an execution as JSON text."""
        return self.texts.read(execution.input, execution.input_object)

    def output_of(self, execution: Execution) -> str | None:
        """Return the output of an execution as JSON text; None if it has none."""
        return self.texts.find(execution.output, execution.output_object)


def processor_at(machine: Machine, path: str) -> Machine:
    """Return the item processor of the Map state at a path of a definition."""
    inside = [machine]
    while inside:
        for state in inside.pop().states.values():
            if state.path == path:
                return state.branches[0]
            inside += state.branches
    raise missing("state", path)


def digest_of_token(token: str) -> str:
    """Return what is stored of a task token."""
    return hashlib.sha256(token.encode()).hexdigest()


def compact(value: Any) -> str:
    """Return JSON for an item."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
