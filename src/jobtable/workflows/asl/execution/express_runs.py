"""Express executions that are awaited: they run in this process, in memory, and nothing is stored."""

from __future__ import annotations

import json
import math
import queue
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from jobtable.errors import DefinitionError, JobtableError, kind_and_text
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import Execution, ExecutionStatus
from jobtable.workflows.asl.execution.carrying_out import CarriesOut
from jobtable.workflows.asl.execution.execution_core import ExecutionCore
from jobtable.workflows.asl.execution.function_answers import call_here, call_service
from jobtable.workflows.asl.execution.links import arn_of
from jobtable.workflows.asl.execution.moving import EXPRESS_SECONDS
from jobtable.workflows.asl.execution.starting import ExecutionStarts, check_payload
from jobtable.workflows.asl.execution.stored_runs import new_run
from jobtable.workflows.asl.interpreter import advance, begin, fire, receive, time_out
from jobtable.workflows.asl.interpreter.schedule import timed_frames
from jobtable.workflows.asl.interpreter.strand import dump
from jobtable.workflows.asl.run import (
    CallFunction,
    CallService,
    Command,
    Ended,
    Failed,
    Run,
    ScheduleActivity,
    Signal,
    StartExecution,
    Succeeded,
)
from jobtable.workflows.asl.verbs import RunnableMachine, SyncResult

_MOST_CALLS = 40
_LOOK_SECONDS = 0.05
_BILLED_MS = 100


def run_express(
    core: ExecutionCore,
    starts: ExecutionStarts,
    carrying_out: CarriesOut,
    machine: RunnableMachine,
    payload: str,
    name: str | None,
    arns: Arns,
) -> SyncResult:
    """Run an express machine to its end."""
    check_payload(payload)
    execution = starts.make(machine, payload, name or str(uuid.uuid4()), arns=arns, is_stored=False)
    with ThreadPoolExecutor(_MOST_CALLS) as calls:
        ended, stopped_at = _ExpressRun(core, carrying_out, execution, calls).finish()
    duration = (stopped_at - execution.started_at) / timedelta(milliseconds=1)
    after = execution.model_copy(
        update={
            "status": ExecutionStatus(ended.status),
            "output": dump(ended.output) if ended.status == "SUCCEEDED" else None,
            "error": ended.error,
            "cause": ended.cause,
            "stopped_at": stopped_at,
        }
    )
    return SyncResult(after, max(1, math.ceil(duration / _BILLED_MS)) * _BILLED_MS)


class _ExpressRun:
    """One run in memory; its calls are made by other threads."""

    def __init__(
        self, core: ExecutionCore, carrying_out: CarriesOut, execution: Execution, calls: ThreadPoolExecutor
    ) -> None:
        self._core = core
        self._carrying_out = carrying_out
        self._execution = execution
        self._run: Run = new_run(core, execution)
        self._calls = calls
        self._signals: queue.SimpleQueue[Signal] = queue.SimpleQueue()
        self._pending = 0
        seconds = self._run.machine.timeout_seconds
        most = EXPRESS_SECONDS if seconds is None else min(seconds, EXPRESS_SECONDS)
        self._ends_at = execution.started_at + timedelta(seconds=most)

    def finish(self) -> tuple[Ended, datetime]:
        """Run to the end; return it and its instant."""
        text = self._execution.input
        begin(self._run, json.loads(text), text)
        while self._run.ended is None:
            if not advance(self._run):
                self._carry_out()
                self._wait()
            self._run.events.clear()
            self._run.changed.clear()
        return self._run.ended, self._core.now()

    def _carry_out(self) -> None:
        commands = list(self._run.commands)
        self._run.commands.clear()
        for command in commands:
            if isinstance(command, CallFunction | CallService | StartExecution | ScheduleActivity):
                self._pending += 1
                self._calls.submit(self._answer, command)

    def _answer(self, command: CallFunction | CallService | StartExecution | ScheduleActivity) -> None:
        at = (command.frame_id, command.visit)
        try:
            self._signals.put(self._ask(command))
        except JobtableError as error:
            self._signals.put(Failed(*at, "States.TaskFailed", str(error)))
        except Exception as error:
            self._signals.put(Failed(*at, "States.Runtime", kind_and_text(error)))

    def _ask(self, command: Command) -> Signal:
        if isinstance(command, CallFunction):
            return self._call(command)
        if isinstance(command, CallService):
            return call_service(self._core, arn_of(self._execution), command)
        if isinstance(command, StartExecution):
            (signal,) = self._carrying_out.do(self._execution, command)
            return signal
        assert isinstance(command, ScheduleActivity)
        return Failed(command.frame_id, command.visit, "States.Runtime", "Express workflows have no activities")

    def _call(self, command: CallFunction) -> Signal:
        """Call a function: here if it is inline, otherwise as a job that is awaited."""
        at = (command.frame_id, command.visit)
        functions = self._core.functions
        try:
            function = functions.core.find_function(command.function, command.qualifier)
        except DefinitionError:
            function = None
        if function is None or command.is_async:
            (signal,) = self._carrying_out.do(self._execution, command)
            return signal
        request_id = str(uuid.uuid4())
        if function.is_inline and not function.is_durable:
            return call_here(self._core, function, command, request_id, request_id)
        left = (self._ends_at - self._core.now()).total_seconds()
        invoked = functions.try_invoke(function, dump(command.payload), wait_seconds=max(left, 0))
        if not invoked.is_error:
            return Succeeded(*at, json.loads(invoked.payload or "null"), function.version)
        cause = invoked.payload or "{}"
        return Failed(*at, json.loads(cause).get("errorType") or "Lambda.Unknown", cause)

    def _wait(self) -> None:
        """Wait for a signal or an instant, and let it come."""
        first = min(timed_frames(self._run), key=lambda frame: frame.due_at or self._ends_at, default=None)
        until = self._ends_at if first is None or first.due_at is None else min(first.due_at, self._ends_at)
        signal = self._next_signal(until)
        if signal is not None:
            receive(self._run, signal)
        elif self._core.now() >= self._ends_at:
            time_out(self._run)
        elif first is not None:
            fire(self._run, first.frame_id)

    def _next_signal(self, until: datetime) -> Signal | None:
        """Return the next signal, or None at an instant."""
        while True:
            left = (until - self._core.now()).total_seconds()
            try:
                signal = self._signals.get(timeout=min(max(left, 0), _LOOK_SECONDS)) if self._pending else None
            except queue.Empty:
                signal = None
            if signal is not None:
                self._pending -= 1
                return signal
            if left <= 0:
                return None
            if not self._pending:
                self._core.clock.sleep(left)
