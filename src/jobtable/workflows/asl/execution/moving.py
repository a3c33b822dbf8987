"""The task of an execution's job: it moves the execution until that waits or has ended."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from jobtable.errors import JobtableError, RequestRefused, TransactionFailedError, ValueRefusedError, kind_and_text
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import FailTask, SuspendTask, task
from jobtable.workflows.asl.entities import (
    Execution,
    ExecutionCommands,
    ExecutionSignal,
    ExecutionStatus,
    MachineType,
)
from jobtable.workflows.asl.execution.carrying_out import CarriesOut
from jobtable.workflows.asl.execution.child_outcomes import report_end
from jobtable.workflows.asl.execution.execution_changes import Change, OvertakenError
from jobtable.workflows.asl.execution.execution_core import ExecutionCore
from jobtable.workflows.asl.execution.map_changes import CHANGE_MAP_RUN, abort_map_runs, change_fan
from jobtable.workflows.asl.execution.redriving import REDRIVE
from jobtable.workflows.asl.execution.signals import cut_cause, cut_error
from jobtable.workflows.asl.execution.stored_runs import StoredRun, read_run, read_signals
from jobtable.workflows.asl.interpreter import advance, crash, fire, receive, redrive, stop_all, time_out
from jobtable.workflows.asl.interpreter.schedule import timed_frames
from jobtable.workflows.asl.messages import read_signal
from jobtable.workflows.asl.run import Failed, Refused, Signal
from jobtable.workflows.remembered import Remembered

EXPRESS_SECONDS = 300.0
_MOST_SAID = 1_000
"""Characters of the message of a job."""
_MOST_CARRIED_OUT = 5
"""How many items of commands wait for the next change to delete them."""


@task(inline=True)
def move_execution(job: JobContext, machine: str, name: str) -> None:
    """Move an execution until it waits or has ended."""
    from jobtable.workflows.asl.execution.executions import executions_of  # noqa: PLC0415 - which imports this module

    executions_of(job.jobs).mover.move(job, machine, name)


class Mover:
    """Moves executions for the workers that hold their jobs."""

    def __init__(self, core: ExecutionCore, carrying_out: CarriesOut, after_end: Callable[[Execution], None]) -> None:
        self._core = core
        self._carrying_out = carrying_out
        self._after_end = after_end
        self._remembered: Remembered[StoredRun] = Remembered()

    def move(self, job: JobContext, machine: str, name: str) -> None:
        """Move an execution until it has ended, or suspend its job while it waits."""
        unstorable: str | None = None
        while True:
            stored = self._remembered.take(job.job_id)
            if stored is None or stored.execution.revision != self._core.get(machine, name).revision:
                stored = read_run(self._core, machine, name)
            if stored.execution.job_id != job.job_id:
                return
            move = _Move(self._core, self._carrying_out, stored, job)
            try:
                move.run(unstorable)
            except OvertakenError:
                continue
            except (UnicodeError, ValueRefusedError, RequestRefused, TransactionFailedError) as error:
                if unstorable is not None or not _is_final(error):
                    raise
                unstorable = f"What the state machine did cannot be stored: {error}"
                continue
            break
        if stored.execution.status is not ExecutionStatus.RUNNING:
            self._after_end(stored.execution)
            _fail_with(stored.execution)
            return
        self._remembered.keep(job.job_id, stored)
        raise SuspendTask(move.due_at(), "waits")


class _Move:
    """One run of the task."""

    def __init__(self, core: ExecutionCore, carrying_out: CarriesOut, stored: StoredRun, job: JobContext) -> None:
        self._core = core
        self._carrying_out = carrying_out
        self._stored = stored
        self._run = stored.run
        self._job = job
        self._change = Change(core, stored, job.lease)
        self._answers: deque[Signal] = deque()
        """Signals without an item: the commands that they answer are carried out again after a crash."""
        self._answered: list[ExecutionCommands] = []
        """The commands with these answers."""
        self._left: deque[ExecutionSignal] = deque()
        self._is_interrupted = False

    def run(self, unstorable: str | None = None) -> None:
        """Move the execution as far as it goes; one that came to what cannot be stored fails."""
        if self._is_running() and unstorable is not None:
            self._step(lambda: crash(self._run, unstorable))
        if self._is_running():
            self._left = deque(read_signals(self._core, self._stored.execution))
            self._store_frames()
            while self._is_running() and not self._is_interrupted and self._go_on():
                pass
        if not self._is_running():
            self._tidy()

    def due_at(self) -> datetime | None:
        """Return when the execution must be moved next, or None if it waits for no instant."""
        if self._is_interrupted:
            return self._core.now()
        dues = [frame.due_at for frame in timed_frames(self._run)]
        return min((at for at in (*dues, self._ends_at()) if at is not None), default=None)

    def _is_running(self) -> bool:
        return self._stored.execution.status is ExecutionStatus.RUNNING

    # --- steps --------------------------------------------------------------------------------------------------------

    def _go_on(self) -> bool:
        """Do the next thing; return whether there was one."""
        if self._run.ended is not None or self._change.is_full:
            self._commit()
        elif self._step(lambda: advance(self._run)):
            pass
        elif self._answers:
            self._take_answer()
        elif self._left:
            self._take(self._left.popleft())
        elif not self._change.is_empty:
            self._commit()
        elif self._to_carry_out():
            self._carry_out()
        else:
            return self._fire_due() or self._forget_carried_out()
        return True

    def _step(self, act: Callable[[], bool | None]) -> bool:
        """Let the interpreter act; a fault of its own ends the execution."""
        try:
            done = act()
        except JobtableError:
            raise
        except Exception as error:
            self._job.error(f"the state machine cannot go on: {kind_and_text(error)}")
            crash(self._run, f"The state machine cannot go on: {kind_and_text(error)}")
            done = True
        self._change.map_runs.observe()
        return bool(done)

    def _commit(self) -> None:
        self._change.commit(lambda tx, ended: report_end(self._core.store, self._core.texts, tx, ended))
        self._store_frames()
        self._is_interrupted = self._job.should_stop()

    def _receive(self, signal: Signal) -> bool:
        if isinstance(signal, Failed | Refused):
            signal = replace(signal, error=cut_error(signal.error), cause=cut_cause(signal.cause))
        return self._step(lambda: receive(self._run, signal))

    def _take(self, left: ExecutionSignal) -> None:
        """Take a signal that was left; its item goes with the next change."""
        self._change.signals.append(left)
        members: dict[str, Any] = json.loads(left.members)
        if left.kind == REDRIVE:
            self._step(self._redrive)
        elif left.kind == CHANGE_MAP_RUN:
            self._step(lambda: change_fan(self._run, members))
        else:
            status = members.pop("status", None)
            payload = self._core.texts.find(None, left.payload_object)
            if payload is not None:
                members |= {"cause": payload} if left.kind == "Failed" else {"output": json.loads(payload)}
            if self._receive(read_signal(left.kind, members)) and status is not None:
                self._change.map_runs.count_end(members["frame_id"], status)

    def _redrive(self) -> None:
        stop_all(self._run)
        redrive(self._run, self._stored.execution.redrive_count)

    def _fire_due(self) -> bool:
        """Let the first instant come that is due; return whether there is one."""
        now = self._core.now()
        ends_at = self._ends_at()
        if ends_at is not None and ends_at <= now:
            self._step(lambda: time_out(self._run))
            return True
        due = [frame for frame in timed_frames(self._run) if frame.due_at is not None and frame.due_at <= now]
        if not due:
            return False
        first = min(due, key=lambda frame: (frame.due_at, [int(part) for part in frame.frame_id.split(".")]))
        self._step(lambda: fire(self._run, first.frame_id))
        return True

    def _ends_at(self) -> datetime | None:
        execution = self._stored.execution
        seconds: float | None = self._run.machine.timeout_seconds
        if execution.type is MachineType.EXPRESS:
            seconds = EXPRESS_SECONDS if seconds is None else min(seconds, EXPRESS_SECONDS)
        if seconds is None:
            return None
        return (execution.redriven_at or execution.started_at) + timedelta(seconds=seconds)

    # --- commands -----------------------------------------------------------------------------------------------------

    def _to_carry_out(self) -> list[ExecutionCommands]:
        done = [*self._change.carried_out, *self._answered]
        return [each for each in self._stored.outbox if each not in done]

    def _carry_out(self) -> None:
        """Carry out the commands of one change; their item goes with the next change, which records the answers."""
        if len(self._change.carried_out) >= _MOST_CARRIED_OUT:
            self._forget_carried_out()
        self._do(self._to_carry_out()[0])

    def _store_frames(self) -> None:
        """Store the frames that were too many for their change, before another one changes them."""
        for each in self._to_carry_out():
            if each.position == 0:
                self._do(each)

    def _do(self, commands: ExecutionCommands) -> None:
        self._answers += self._carrying_out.carry_out(self._stored, commands, self._job.lease)
        self._answered.append(commands)
        self._note_carried_out()

    def _take_answer(self) -> None:
        self._receive(self._answers.popleft())
        self._note_carried_out()

    def _note_carried_out(self) -> None:
        """Let the next change delete the commands whose answers it records, the last of them at least."""
        if not self._answers:
            self._change.carried_out += self._answered
            self._answered = []

    def _forget_carried_out(self) -> bool:
        """Delete the commands that were carried out, if no change does so."""
        for each in self._change.carried_out:
            self._core.store.delete(each)
            self._stored.outbox.remove(each)
        self._change.carried_out = []
        return False

    def _tidy(self) -> None:
        """Give up what an ended execution still waits for; repeated if this process dies."""
        self._answers.clear()
        self._note_carried_out()
        while self._to_carry_out():
            self._carry_out()
        self._forget_carried_out()
        if self._run.ended is None:
            stop_all(self._run)
            for command in self._run.commands:
                self._carrying_out.do(self._stored.execution, command)
        abort_map_runs(self._core, self._stored.execution)
        signals = read_signals(self._core, self._stored.execution)
        self._core.store.batch_delete(each for each in signals if each.kind != REDRIVE)


def _fail_with(ended: Execution) -> None:
    """Let the job of an execution that failed fail as well, so that lists of jobs show it."""
    if ended.status in (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT):
        why = ": ".join(each for each in (ended.error, ended.cause) if each) or f"the execution {ended.status}"
        raise FailTask(why[:_MOST_SAID])


def _is_final(error: Exception) -> bool:
    """Return whether a change would be refused however often it is tried."""
    if isinstance(error, TransactionFailedError):
        return any(failure.code == "ValidationError" for failure in error.failures)
    return True
