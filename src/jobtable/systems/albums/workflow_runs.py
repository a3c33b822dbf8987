"""How executions run: as a state machine or as a durable function, under one protocol."""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any, Protocol, TypeVar

from jobtable.errors import AlreadyExistsError, ConflictError, TaskClosedError
from jobtable.inbox.answer_tokens import token_digest
from jobtable.jobs.engine import Jobs
from jobtable.systems.albums.entities import Execution, Step, ValidationTask, WorkflowType
from jobtable.systems.albums.usage import MEMORY_MB, Usage, bytes_of
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.machine_verbs import MachineChange, MachineDraft, MachineVerbs
from jobtable.workflows.asl.catalogue.machines import Machines
from jobtable.workflows.asl.entities import Execution as MachineExecution
from jobtable.workflows.asl.entities import ExecutionStatus as MachineStatus
from jobtable.workflows.asl.entities import TaskToken
from jobtable.workflows.asl.execution import links
from jobtable.workflows.asl.execution.executions import executions_of
from jobtable.workflows.asl.machine_definition import check_definition
from jobtable.workflows.asl.verbs import ExecutionVerbs
from jobtable.workflows.durable.durable_tokens import DurableTokens
from jobtable.workflows.durable.entities import DurableExecution, DurableStatus, OperationStatus, OperationType
from jobtable.workflows.function_records import FunctionRecords
from jobtable.workflows.table_and_queues import TASK_MODULES

T = TypeVar("T")
MACHINE, FUNCTION = "albums", "albums-durable"
TASKS = ("jobtable.systems.albums.album_functions", *TASK_MODULES)
"""The modules that a worker imports once, to start each job fast."""
ROLE = "arn:aws:iam::000000000000:role/albums"
"""On AWS the deployment's template names its own."""
_UNEXPECTED = "its workflow ended without completing it"
_NAMES = re.compile(r"[A-Za-z0-9_-]{1,56}")
_RUN_NAMES = uuid.UUID("6f0b3c9e-8a43-5d11-9d39-2d1c0a5e7f10")


@dataclass(frozen=True)
class RunState:
    """How far a run of a workflow is."""

    is_running: bool
    ended_at: datetime | None = None


class WorkflowRuns(Protocol):
    """The runs of one style. An execution has one run, or one for each attempt."""

    definition: str
    """What the watch of an execution says that runs it."""

    def start(self, execution: Execution) -> None:
        """Start the run of an execution's attempt, or continue the one that failed; repeating it changes nothing."""
        ...

    def look(self, execution: Execution) -> RunState | None:
        """Return how far the run is; None if it was not started."""
        ...

    def failure(self, execution: Execution) -> str:
        """Return why a run ended that was to go on."""
        ...

    def answer(self, execution: Execution, task: ValidationTask) -> None:
        """Continue a run with a task that was answered; repeating it changes nothing."""
        ...

    def stop(self, execution: Execution, why: str) -> None:
        """Stop the run, if it runs."""
        ...

    def delete(self, execution: Execution) -> int:
        """Delete the runs of all attempts, which have ended, and return the number of items."""
        ...

    def job_ids(self, execution: Execution) -> list[str]:
        """Return the ids of the jobs that move the runs of all attempts."""
        ...

    def usage(self, execution: Execution) -> Usage | None:
        """Return what the runs counted; None if there is none."""
        ...


def runs_of(jobs: Jobs, workflow_type: WorkflowType) -> WorkflowRuns:
    """Return the runs of a workflow type."""
    return MachineRuns(jobs) if workflow_type is WorkflowType.STEP_FUNCTIONS else DurableRuns(jobs)


def run_of(execution: Execution) -> tuple[str, str]:
    """Return what runs an execution: the machine or function, and the name of the run of its latest attempt."""
    if execution.workflow_type is WorkflowType.STEP_FUNCTIONS:
        return MACHINE, _run_name(execution)
    return FUNCTION, _durable_name(execution)


def read_definition() -> str:
    """Return the text of the state machine."""
    return files("jobtable.systems.albums").joinpath("albums.asl.json").read_text(encoding="utf-8")


def run_input(execution: Execution) -> dict[str, Any]:
    """Return what a run starts with."""
    return {"execution_id": execution.execution_id, **dict(sorted(execution.options.items()))}


def _user_of(execution: Execution) -> str:
    return execution.created_by or "local"


def _answer_of(task: ValidationTask) -> str:
    return json.dumps({"status": task.status.value, "task_id": task.task_id})


def _run_name(execution: Execution) -> str:
    """Return the name of a run: the execution's id, if it may be one."""
    if _NAMES.fullmatch(execution.execution_id):
        return execution.execution_id
    return str(uuid.uuid5(_RUN_NAMES, execution.execution_id))


def _durable_name(execution: Execution) -> str:
    """Return the name of the durable execution of an attempt."""
    again = "" if execution.attempt is None else f"-{execution.attempt}"
    return f"{_run_name(execution)}{again}"


class MachineRuns:
    """Runs of the state machine. A retry redrives the same run from the state that failed."""

    definition = "state machine"

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    @property
    def _executions(self) -> ExecutionVerbs:
        return executions_of(self._jobs)

    def start(self, execution: Execution) -> None:
        found = self._find(execution)
        if found is None:
            machines: MachineVerbs = Machines(self._jobs.store, self._jobs.objects, check_definition)
            _publish_functions(self._jobs)
            _create(machines)
            text = json.dumps(run_input(execution))
            self._executions.start(
                machines.runnable(MACHINE), text, _run_name(execution), arns=Arns(), user=_user_of(execution)
            )
        elif found.status is not MachineStatus.RUNNING and execution.attempt is not None:
            self._executions.redrive(MACHINE, _run_name(execution))

    def look(self, execution: Execution) -> RunState | None:
        found = self._find(execution)
        if found is None:
            return None
        is_running = found.status in (MachineStatus.RUNNING, MachineStatus.PENDING_REDRIVE)
        return RunState(is_running, found.stopped_at)

    def failure(self, execution: Execution) -> str:
        found = self._find(execution)
        if found is None or found.error is None:
            return (found and found.cause) or _UNEXPECTED
        message: Any = found.cause
        with contextlib.suppress(ValueError, TypeError):  # a function's cause is Lambda's JSON about its error
            about = json.loads(found.cause or "")
            message = about.get("errorMessage", found.cause) if isinstance(about, dict) else found.cause
        return _described(found.error, message)

    def answer(self, execution: Execution, task: ValidationTask) -> None:
        run, at = self._find(execution), self._jobs.store.find(TaskToken.key(sha256=str(task.workflow_sha256)))
        if run is None or at is None:  # its question is closed, and it looks at the task itself
            return
        tokens = DurableTokens(self._jobs.store)
        token = tokens.task_token(links.execution_id(run), at.frame_id, at.visit)
        with contextlib.suppress(TaskClosedError):  # it was answered already, or its time is over, as above
            self._executions.succeed(token, _answer_of(task))

    def stop(self, execution: Execution, why: str) -> None:
        if self._find(execution) is not None:
            with contextlib.suppress(ConflictError):  # it has ended
                self._executions.stop(MACHINE, _run_name(execution), error="Stopped", cause=why)

    def delete(self, execution: Execution) -> int:
        return 0 if self._find(execution) is None else self._executions.delete(MACHINE, _run_name(execution))

    def job_ids(self, execution: Execution) -> list[str]:
        found = self._find(execution)
        return [] if found is None else [found.job_id]

    def usage(self, execution: Execution) -> Usage | None:
        if self._find(execution) is None:
            return None
        transitions = size = 0
        for event in self._executions.history(MACHINE, _run_name(execution)):
            # A retry is scheduled without entering its state again; the first schedule follows the entry.
            transitions += event.type.endswith("StateEntered")
            transitions += event.type == "TaskScheduled"
            transitions -= event.type == "TaskStateEntered"
            size += bytes_of([event.details])
        return Usage(transitions=transitions, state_bytes=size)

    def _find(self, execution: Execution) -> MachineExecution | None:
        return self._jobs.store.find(MachineExecution.key(machine=MACHINE, name=_run_name(execution)))


def _create(machines: MachineVerbs) -> None:
    """Create the state machine, or bring an earlier version's up to date."""
    text = read_definition()
    try:
        machines.create(MachineDraft(MACHINE, text, ROLE), arns=Arns())
    except AlreadyExistsError:
        machines.update(MACHINE, MachineChange(definition=text))


def _publish_functions(jobs: Jobs) -> None:
    from jobtable.systems.albums import album_functions  # noqa: F401, PLC0415 - registers what is published

    FunctionRecords(jobs.store).publish()


class DurableRuns:
    """Runs of the durable function. A retry is a new run that starts at the step that failed."""

    definition = "durable function"

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    @property
    def _service(self) -> Any:
        from jobtable.workflows.durable.function_tasks import service_of  # noqa: PLC0415 - loads the durable service

        return service_of(self._jobs)

    def start(self, execution: Execution) -> None:
        from jobtable.systems.albums import albums_durable  # noqa: F401, PLC0415 - registers it; needs AWS's SDK

        if self._find(execution) is not None:
            return
        event = run_input(execution)
        if execution.attempt is not None:
            event["first_step"] = execution.current_step or Step.READ_IMAGE
        self._service.start(FUNCTION, event, name=_durable_name(execution), user=_user_of(execution))

    def look(self, execution: Execution) -> RunState | None:
        found = self._find(execution)
        if found is None:
            return None
        return RunState(found.status is DurableStatus.RUNNING, found.ended_at)

    def failure(self, execution: Execution) -> str:
        found = self._find(execution)
        error: Any = found and found.error
        if found is None or error is None:
            return _UNEXPECTED
        if str(error.get("ErrorType")).endswith(("StepError", "ChildContextError")):  # the step says what was raised
            steps = (each for each in self._service.operations(FUNCTION, found.name) if each.type is OperationType.STEP)
            error = [each.error for each in steps if each.status is OperationStatus.FAILED][-1]
        return _described(str(error.get("ErrorType") or found.status), error.get("ErrorMessage"))

    def answer(self, execution: Execution, task: ValidationTask) -> None:
        for operation in self._service.operations(FUNCTION, _durable_name(execution)):
            if operation.type is not OperationType.CALLBACK or operation.status is not OperationStatus.STARTED:
                continue
            callback_id = self._service.callback_id(operation)
            if token_digest(callback_id) == task.workflow_sha256:
                with contextlib.suppress(TaskClosedError):  # as above
                    self._service.succeed_callback(callback_id, _answer_of(task))

    def stop(self, execution: Execution, why: str) -> None:
        if self._find(execution) is not None:
            self._service.stop(FUNCTION, _durable_name(execution), error={"ErrorType": "Stopped", "ErrorMessage": why})

    def delete(self, execution: Execution) -> int:
        return sum(self._each(execution, self._delete))

    def job_ids(self, execution: Execution) -> list[str]:
        return self._each(execution, lambda found: found.execution_id)

    def usage(self, execution: Execution) -> Usage | None:
        each = self._each(execution, self._usage)
        if not each:
            return None
        return Usage(
            operations=sum(usage.operations for usage in each),
            invocations=sum(usage.invocations or 0 for usage in each),
            invoked_ms=sum(usage.invoked_ms for usage in each),
            memory_mb=each[0].memory_mb,
            state_bytes=sum(usage.state_bytes for usage in each),
            retention_days=each[0].retention_days,
        )

    def _usage(self, found: DurableExecution) -> Usage:
        operations = list(self._service.operations(FUNCTION, found.name))
        events = [
            event["InvocationCompletedDetails"]
            for event in self._service.history(FUNCTION, found.name)
            if event["EventType"] == "InvocationCompleted"
        ]
        took = [event["EndTimestamp"] - event["StartTimestamp"] for event in events]
        return Usage(
            operations=1 + sum(max(1, each.attempt) for each in operations),
            invocations=len(events),
            invoked_ms=round(sum(each.total_seconds() for each in took) * 1000),
            memory_mb=MEMORY_MB,
            state_bytes=bytes_of([found.input, found.output, *(v for e in operations for v in (e.result, e.error))]),
            retention_days=found.retention_days,
        )

    def _delete(self, found: DurableExecution) -> int:
        deleted: int = self._service.delete(FUNCTION, found.name)
        return deleted

    def _each(self, execution: Execution, act: Callable[[DurableExecution], T]) -> list[T]:
        """Do something with the run of each attempt."""
        attempts = [None, *range(2, (execution.attempt or 1) + 1)]
        found = (self._find(execution.replace(attempt=attempt)) for attempt in attempts)
        return [act(each) for each in found if each is not None]

    def _find(self, execution: Execution) -> DurableExecution | None:
        return self._jobs.store.find(DurableExecution.key(function=FUNCTION, name=_durable_name(execution)))


def _described(error: str, message: Any) -> str:
    """Describe an error by the name of its class, and its message."""
    kind = error if error.startswith(("States.", "Lambda.", "Runtime.")) else error.rpartition(".")[2]
    return f"{kind}: {message}" if message else kind
