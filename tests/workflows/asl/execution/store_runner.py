"""Runs cases on the real engine: a store in memory, jobs that are claimed here, and a clock that jumps to what is due.

Functions and services answer as the case says. `Front` is how a test starts executions and reads them: by the verbs, or
by any client of the Step Functions API.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from random import Random
from typing import Any, Protocol
from unittest.mock import patch

from tests.workflows.asl.case_files import Case
from tests.workflows.asl.memory_runner import START, World

from jobtable.app import Services
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import TaskClosedError, missing
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import QueueJob
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.model import Entity
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.store.backend import Backend
from jobtable.testing import FakeClock
from jobtable.workflows import functions
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import (
    ActivityTask,
    Execution,
    ExecutionCommands,
    ExecutionFrame,
    ExecutionSignal,
    ExecutionStatus,
    MachineType,
)
from jobtable.workflows.asl.execution import signals
from jobtable.workflows.asl.execution.executions import Executions, executions_of
from jobtable.workflows.asl.execution.links import link_to, task_id
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.run import CallService
from jobtable.workflows.asl.services.item_reader import read_items
from jobtable.workflows.asl.services.result_writer import write_results
from jobtable.workflows.asl.verbs import ChildExecution, RunnableMachine, ServiceVerbs
from jobtable.workflows.durable.large_payloads import PayloadOwner
from jobtable.workflows.functions import function
from jobtable.workflows.table_and_queues import EXECUTIONS_QUEUE, FUNCTIONS_QUEUE

LEASE_SECONDS = 30.0
_MOST_ROUNDS = 2_000
ARNS = Arns()
MACHINE, NAME = "cases", "case"
ROLE = "arn:aws:iam::000000000000:role/cases"


class Front(Protocol):
    """How a test starts an execution and reads it."""

    def start(self, case: Case) -> None:
        """Create the machine of a case and start its execution under NAME."""

    def stop(self, error: str | None, cause: str | None) -> None:
        """Stop it."""

    def redrive(self) -> None:
        """Redrive it."""

    def outcome(self) -> tuple[str, str | None, str | None, Any]:
        """Return its status, error, cause and output."""
        ...

    def history(self) -> list[tuple[int, int, str, dict[str, Any]]]:
        """Return its events: id, previous id, type and details."""
        ...


@dataclass
class VerbsFront:
    """The verbs themselves."""

    executions: Executions

    @classmethod
    def of(cls, services: Services) -> VerbsFront:
        """Return the front of these services."""
        return cls(executions_of(services.engine))

    def start(self, case: Case) -> None:
        machine = RunnableMachine(MACHINE, json.dumps(case.definition), MachineType(case.type), role_arn=ROLE)
        self.executions.start(machine, json.dumps(case.input), NAME, arns=ARNS)

    def stop(self, error: str | None, cause: str | None) -> None:
        self.executions.stop(MACHINE, NAME, error=error, cause=cause)

    def redrive(self) -> None:
        self.executions.redrive(MACHINE, NAME)

    def outcome(self) -> tuple[str, str | None, str | None, Any]:
        execution = self.executions.get(MACHINE, NAME)
        output = self.executions.core.output_of(execution)
        return execution.status.value, execution.error, execution.cause, None if output is None else json.loads(output)

    def history(self) -> list[tuple[int, int, str, dict[str, Any]]]:
        return [
            (each.event_id, each.previous_id, each.type, next(iter((each.details or {}).values()), {}))
            for each in self.executions.history(MACHINE, NAME)
        ]


@dataclass
class CaseServices(ServiceVerbs):
    """Services that answer as the case says; what takes time is answered by the runner later."""

    runner: StoreRunner

    def call(self, command: CallService, execution: str) -> Any:
        name = f"{command.service}:{command.action}"
        answer = self.runner.next_answer(name)
        if "$refused" in answer:
            raise StateFault(answer["$refused"], answer.get("$cause", ""))
        if command.token is not None:
            self.runner.answer_token(command.token, answer, command.arguments)
            return answer.get("$submitted", {})
        if "$error" in answer:
            raise StateFault(answer["$error"], answer.get("$cause", ""))
        return output_of(answer, command.arguments)

    def read_items(self, reader: Any) -> Any:
        return read_items(self.runner.world.objects, reader)

    def write_results(self, writer: Any, results: list[Any], children: Iterable[ChildExecution]) -> Any:
        return write_results(self.runner.world.objects, writer, results, children)


@dataclass
class CaseMachines:
    """The nested machines of a case."""

    machines: dict[str, Any]

    def runnable(self, arn: str) -> RunnableMachine:
        name = arn.rpartition(":")[2]
        if name not in self.machines:
            raise missing("state machine", arn)
        return RunnableMachine(name, json.dumps(self.machines[name]))


def make_services(clock: FakeClock, backend: Backend | None = None) -> Services:
    """Return services on a store in memory."""
    store = Store(backend or EmbeddedBackend(None, durability="normal"), clock=clock)
    return Services(store, MemoryObjectStore(clock), is_embedded=True)


class StoreRunner:
    """Runs one case to its end."""

    def __init__(
        self, case: Case, make_front: Callable[[Services], Front] | None = None, backend: Backend | None = None
    ) -> None:
        self.case = case
        self.world = World(case.answers, case.machines)
        self.world.fill(case.objects)
        self.clock = FakeClock(START)
        self.services = make_services(self.clock, backend)
        _ = self.services.executions
        self.jobs: Jobs = self.services.engine
        self.executions = executions_of(self.jobs)
        self.executions.core.services = CaseServices(self)
        self.executions.core.random = Random(7)  # as the runner in memory
        self.executions.core.machines = CaseMachines(case.machines)
        self.front = (make_front or VerbsFront.of)(self.services)
        self._queue: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = count()
        self._held: list[Lease] = []
        self._visits = [(frame, visit) for frame in ("0", "0.0", "0.1") for visit in (1, 2, 3)]
        self.began = self.clock.now()
        for name, answers in case.answers.items():
            kind, _, activity = name.partition(":")
            if kind == "activity":
                self.services.activities.create(activity, arns=ARNS)
            elif not activity:
                functions._REGISTERED.pop(name, None)  # of another test: this runner answers for all of them
                if "$refused" not in str(answers[0]):
                    function(name=name)(answered_here)
                    self._publish(name)

    def _publish(self, name: str) -> None:
        """Publish the version 1 of a function, with the alias `live`."""
        core = self.executions.core.functions.core
        core.versions.publish(core.get_function(name))
        core.versions.create_alias(name, "live", "1")

    def run(self) -> None:
        """Run the case until nothing more happens."""
        with patch.object(signals, "cause_of", lambda error: error["ErrorMessage"]):  # cases have causes as they are
            self._run()

    def _run(self) -> None:
        self.front.start(self.case)
        outside = list(self.case.events)
        for each in outside:
            if "abort" in each:
                told = each["abort"] or {}
                self.later(each.get("after", 0), partial(self.front.stop, told.get("error"), told.get("cause")))
        self.work()
        for each in outside:
            if "redrive" in each:
                self.front.redrive()
                self.work()

    def work(self) -> None:
        """Work until nothing more is due."""
        for _ in range(_MOST_ROUNDS):
            if not (self._work_once() or self._next()):
                return
        raise AssertionError(f"{self.case} never comes to rest")

    # --- workers ------------------------------------------------------------------------------------------------------

    def _work_once(self) -> bool:
        leases = self.claim(EXECUTIONS_QUEUE)
        for lease in leases:
            self.move(lease)
        for lease in self.claim(FUNCTIONS_QUEUE):
            self._answer_function(lease)
            leases.append(lease)
        self._poll_activities()
        return bool(leases) or self._cancel_held()

    def _cancel_held(self) -> bool:
        """End a function that never answers and was asked to; return whether there was one."""
        for lease in self._held:
            if self.jobs.queries.get_job(lease.job.job_id).requested is not None:
                self._held.remove(lease)
                self.jobs.finish(lease, Outcome.cancelled("as asked"))
                return True
        return False

    def claim(self, queue: str) -> list[Lease]:
        """Claim the jobs of a queue that are ready."""
        self.jobs.promote_due(queue)
        return self.jobs.claim(queue, limit=10, instance_id="runner", lease_seconds=LEASE_SECONDS)

    def move(self, lease: Lease) -> None:
        """Run the job of an execution."""
        context = JobContext(self.jobs, lease)
        report = run_task(lease.job.definition, StopFlag(), lambda: context)
        params = lease.job.definition.params
        ended = self.executions.get(params["machine"], params["name"]).status
        has_failed = ended in (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT)
        assert report.kind == ("raised" if has_failed else "returned"), report.message
        context.close()
        self.jobs.finish(lease, report.outcome())

    def _answer_function(self, lease: Lease) -> None:
        params = lease.job.definition.params
        answer = self.next_answer(params["function"])
        payload = json.loads(self.executions.core.functions.core.payloads.read(params["payload"]) or "null")
        parent = params["parent"] or {}
        if parent.get("has_token") and "$error" not in answer:
            token = self.executions.core.token_of(
                self.executions.get(parent["machine"], parent["name"]), parent["frame_id"], parent["visit"]
            )
            self.answer_token(token, answer, payload)
            self.jobs.finish(lease, Outcome.completed({"payload": json.dumps(answer.get("$submitted"))}))
            return
        self._held.append(lease)
        if "$never" not in answer:
            self.later(answer.get("after", 0), partial(self._end_function, lease, answer, payload))

    def _end_function(self, lease: Lease, answer: dict[str, Any], payload: Any) -> None:
        if lease not in self._held:
            return
        self._held.remove(lease)
        if "$error" in answer:
            error = {"ErrorType": answer["$error"], "ErrorMessage": answer.get("$cause")}
            self.jobs.finish(lease, Outcome.failed(error["ErrorType"], retryable=False, result={"error": error}))
        else:
            params = lease.job.definition.params
            own = PayloadOwner(params["function"], lease.job.job_id)
            owner = own if params["parent"] is None else PayloadOwner.at(params["parent"])
            stored = self.executions.core.texts.store(json.dumps(output_of(answer, payload)), owner)
            self.jobs.finish(lease, Outcome.completed({"payload": stored}))

    def _poll_activities(self) -> None:
        for name in {each.partition(":")[2] for each in self.case.answers if each.startswith("activity:")}:
            offered = self.jobs.store.query(ActivityTask.key(activity=name)).first()
            if offered is None:
                continue
            answer = self.next_answer(f"activity:{name}")
            if "$never" in answer:
                self.jobs.store.delete(offered)
                continue
            task = self.executions.poll(name, "worker", wait_seconds=0)
            assert task is not None
            self.answer_token(task.token, answer, json.loads(task.input))

    # --- answers ------------------------------------------------------------------------------------------------------

    def next_answer(self, name: str) -> dict[str, Any]:
        """Return the next answer of that name."""
        answer = self.world.answer(name)
        if isinstance(answer, dict) and any(each.startswith("$") for each in answer):
            return answer
        return {"$output": answer}

    def answer_token(self, token: str, answer: dict[str, Any], payload: Any) -> None:
        """Answer a task as the case says."""
        for seconds in answer.get("$beats", ()):
            self.later(seconds, partial(self._unless_closed, partial(self.executions.beat, token)))
        after = answer.get("after", 0)
        if "$error" in answer:
            act: Callable[[], None] = partial(self.executions.fail, token, answer["$error"], answer.get("$cause"))
        elif {"$output", "$echo", "$large"} & answer.keys():
            act = partial(self.executions.succeed, token, json.dumps(output_of(answer, payload)))
        else:
            return
        self.later(after, partial(self._unless_closed, act))

    def _unless_closed(self, act: Callable[[], None]) -> None:
        try:
            act()
        except TaskClosedError:
            return

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Let something happen after a time."""
        at = datetime.fromtimestamp(self.clock.seconds(), UTC) + timedelta(seconds=seconds)
        heapq.heappush(self._queue, (at, next(self._numbers), act))

    def _next(self) -> bool:
        """Jump to what happens next; return whether there is anything."""
        entry = self.jobs.store.query(QueueJob.delayed(queue_name=EXECUTIONS_QUEUE), limit=1).first()
        due = None if entry is None else entry.not_before
        if self._queue and (due is None or self._queue[0][0] <= due):
            at, _, act = heapq.heappop(self._queue)
            self._jump_to(at)
            act()
            return True
        if due is None:
            return False
        self._jump_to(due)
        return True

    def _jump_to(self, instant: datetime) -> None:
        self.clock.advance(max(0.0, instant.timestamp() - self.clock.seconds()) + 0.000_005)

    # --- what came of it ----------------------------------------------------------------------------------------------

    def plain(self, found: Any) -> Any:
        """Return JSON with the tokens and the names of children as cases have them."""
        text = json.dumps(found)
        for frame_id, visit in self._visits:
            execution = self.executions.get(MACHINE, NAME)
            token = self.executions.core.token_of(execution, frame_id, visit)
            text = text.replace(token, f"token-{frame_id}-{visit}")
            child = task_id(link_to(execution, frame_id, visit))
            text = text.replace(child, f"{NAME}-{frame_id}-{visit}")
        return json.loads(text)

    def seconds(self) -> float:
        """Return how long the execution took."""
        execution = self.executions.get(MACHINE, NAME)
        assert execution.stopped_at is not None
        return round((execution.stopped_at - self.began).total_seconds(), 3)

    def leftovers(self) -> list[Entity]:
        """Return what an ended execution should not have left."""
        left: list[Entity] = []
        for execution in self.jobs.store.scan(Execution):
            assert execution.status is not ExecutionStatus.RUNNING or execution.parent is None, execution.name
        for kind in (ExecutionCommands, ExecutionSignal):
            left += self.jobs.store.scan(kind)
        succeeded = {
            (each.machine, each.name)
            for each in self.jobs.store.scan(Execution)
            if each.status is ExecutionStatus.SUCCEEDED
        }
        left += [each for each in self.jobs.store.scan(ExecutionFrame) if (each.machine, each.name) in succeeded]
        return left + [job for job in self.jobs.queries.list_jobs() if not job.is_final]


def output_of(answer: dict[str, Any], payload: Any) -> Any:
    """Return what an answer of a case stands for."""
    if "$large" in answer:
        return "x" * answer["$large"]
    return payload if "$echo" in answer else answer.get("$output")


def answered_here(event: Any) -> Any:
    """Never called: the runner answers for all functions of cases."""
    raise AssertionError(event)
