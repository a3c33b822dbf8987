"""A change of an execution: what a run's last steps made is written in one transaction, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from jobtable.errors import ConditionFailedError, TransactionFailedError
from jobtable.jobs.lifecycle.leases import Lease, check_lease
from jobtable.store.transactions import MOST_ACTIONS, Transaction, grouped
from jobtable.workflows.asl.arns import find_states_arn
from jobtable.workflows.asl.entities import (
    ActivityTask,
    Execution,
    ExecutionCommands,
    ExecutionEvent,
    ExecutionFrame,
    ExecutionSignal,
    ExecutionStatus,
    MachineType,
    TaskToken,
)
from jobtable.workflows.asl.execution.event_packs import event_item, pack_events, size_of
from jobtable.workflows.asl.execution.execution_core import ExecutionCore, compact, digest_of_token
from jobtable.workflows.asl.execution.links import owner_of
from jobtable.workflows.asl.execution.map_running import MapRunRecords
from jobtable.workflows.asl.execution.stored_runs import STORE_FRAMES, StoredRun, frame_as_json
from jobtable.workflows.asl.interpreter.strand import dump
from jobtable.workflows.asl.messages import members_of
from jobtable.workflows.asl.run import Event, Frame, RemoveFrames, ScheduleActivity

_FULL_ITEMS = 40
_FULL_BYTES = 1_000_000
"""A change takes no further steps from here on: one step adds about 80 items at most, as a rule."""
_MOST_ACTIONS_BESIDE = 8
"""Of a transaction: the execution, the lease, two items of commands, and the signal to what waits for its end."""
_EVENTS_AHEAD = 90
_MOST_PACKS = 24
"""How many items of events a transaction has at most: each has up to 60 KB, or one large event."""
_TOKEN_DAYS = 380
"""Longer than an execution takes: an answer that comes too late is told so."""


class OvertakenError(Exception):
    """Somebody else has changed the execution since it was read: nothing was written."""


class Change:
    """What is written together for a run, under the lease of its job."""

    def __init__(self, core: ExecutionCore, stored: StoredRun, lease: Lease) -> None:
        self.signals: list[ExecutionSignal] = []
        """Those that the run has received."""
        self.carried_out: list[ExecutionCommands] = []
        self._core = core
        self._stored = stored
        self._lease = lease
        self._bytes = self._measured = 0
        self.map_runs = MapRunRecords(stored.execution, stored.run)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has changed."""
        run = self._stored.run
        return not (run.changed or run.events or run.commands or self.signals)

    @property
    def is_full(self) -> bool:
        """Whether it must be written before the next step."""
        run = self._stored.run
        for event in run.events[self._measured :]:
            self._bytes += size_of(event)
        self._measured = len(run.events)
        count = len(run.changed) + len(run.events) + len(run.commands) + len(self.signals)
        return count >= _FULL_ITEMS or self._bytes >= _FULL_BYTES

    def commit(self, beside: Callable[[Transaction, Execution], None] | None = None) -> None:
        """Write it, with what the end of an execution brings `beside`; OvertakenError or LeaseLostError if refused."""
        run, before = self._stored.run, self._stored.execution
        after = self._after()
        room = MOST_ACTIONS - _MOST_ACTIONS_BESIDE - len(self.signals) - len(self.carried_out) - len(self.map_runs)
        writes = self._writes(after, room)
        recorded = [] if before.type is MachineType.EXPRESS else run.events
        events = self._write_ahead(recorded, room - len(writes.puts) - len(writes.deletes))

        def write(current: Execution) -> None:
            if current.revision != before.revision or current.status is not ExecutionStatus.RUNNING:
                raise OvertakenError
            with self._core.store.transaction() as tx:
                tx.put(after, when=Execution.revision == before.revision)
                check_lease(tx, self._lease)
                for entity in (*writes.puts, *events):
                    tx.put(entity)
                for target in (*writes.deletes, *self.signals, *self.carried_out):
                    tx.delete(target)
                self.map_runs.add_to(tx)
                if beside is not None and after.status is not ExecutionStatus.RUNNING:
                    beside(tx, after)

        self._core.store.retrying(
            lambda: self._core.get(before.machine, before.name),
            write,
            f"move execution {before.machine}/{before.name}",
            first=before,
            retry_if=self._is_held,
        )
        self._begin_anew(after, writes)

    def _is_held(self, error: ConditionFailedError | TransactionFailedError) -> bool:
        """Return true, so that the execution is read again; raise if the job has another worker."""
        self._core.jobs.refresh(self._lease)
        return True

    # --- what is written --------------------------------------------------------------------------------------------

    def _after(self) -> Execution:
        run, before = self._stored.run, self._stored.execution
        members: dict[str, Any] = {"revision": before.revision + 1, "last_event_id": run.last_event_id}
        if (ended := run.ended) is not None:
            members |= {"status": ExecutionStatus(ended.status), "stopped_at": run.now()}
            members |= {"error": ended.error, "cause": ended.cause}
            if ended.status == "SUCCEEDED":
                text, key = self._core.texts.keep(dump(ended.output), owner_of(before))
                members |= {"output": text if key is None else None, "output_object": key}
        return before.model_copy(update=members)

    def _writes(self, after: Execution, room: int) -> _Writes:
        """Return the items of the run's frames and commands; too many frames become a command to store them."""
        run = self._stored.run
        removed = [each for command in run.commands if isinstance(command, RemoveFrames) for each in command.frame_ids]
        changed = [run.frames[each] for each in sorted(run.changed) if each in run.frames]
        if after.status is ExecutionStatus.SUCCEEDED:
            removed, changed = [*removed, *run.frames], []
        kept = self._stored.kept
        gone = [each for each in dict.fromkeys(removed) if each in kept]
        frames: list[Any] = []
        commands: list[Any] = []
        puts: list[Any] = []
        if len(changed) + len(gone) > room // 2:
            frames += [["RemoveFrames", {"frame_ids": gone}]] if gone else []
            frames += [[STORE_FRAMES, {"frames": [frame_as_json(each) for each in changed]}]] if changed else []
            deletes = []
        else:
            puts += [frame_item(self._core, after, each) for each in changed]
            deletes = [ExecutionFrame.key(machine=after.machine, name=after.name, frame_id=each) for each in gone]
        for command in run.commands:
            if (token := getattr(command, "token", None)) is not None:
                puts.append(self._token(token, command))
            if isinstance(command, ScheduleActivity):
                puts.append(self._activity_task(command))
            elif not isinstance(command, RemoveFrames):
                commands.append([type(command).__name__, members_of(command)])
        outbox = [self._outbox(after, place, each) for place, each in enumerate((frames, commands)) if each]
        puts += outbox
        return _Writes(puts, deletes, outbox, {each.frame_id for each in changed}, set(gone))

    def _outbox(self, after: Execution, position: int, commands: list[Any]) -> ExecutionCommands:
        text, key = self._core.texts.keep(compact(commands), owner_of(after))
        return ExecutionCommands(
            machine=after.machine,
            name=after.name,
            revision=after.revision,
            position=position,
            commands=text,
            commands_object=key,
        )

    def _token(self, token: str, command: Any) -> TaskToken:
        execution, now = self._stored.execution, self._stored.run.now()
        return TaskToken(
            sha256=digest_of_token(token),
            machine=execution.machine,
            name=execution.name,
            frame_id=command.frame_id,
            visit=command.visit,
            time_to_live=int((now + timedelta(days=_TOKEN_DAYS)).timestamp()),
        )

    def _activity_task(self, command: ScheduleActivity) -> ActivityTask:
        execution, now = self._stored.execution, self._stored.run.now()
        arn = find_states_arn(command.activity_arn)
        return ActivityTask(
            activity=command.activity_arn if arn is None else arn.name,
            scheduled_at=now,
            machine=execution.machine,
            name=execution.name,
            frame_id=command.frame_id,
            visit=command.visit,
            token=command.token,
            input=dump(command.input),
            time_to_live=int((now + timedelta(days=_TOKEN_DAYS)).timestamp()),
        )

    def _write_ahead(self, events: list[Event], room: int) -> list[ExecutionEvent]:
        """Write those events before the transaction that it has no room for, and return the items of the others.

        Until it is made, they lie behind the last event of the execution: they do not exist.
        """
        before = self._stored.execution
        packs = pack_events(before, events)
        packs = packs[max(len(packs) - max(min(room, _MOST_PACKS), 0), 0) :]
        first = packs[0].event_id if packs else before.last_event_id + len(events) + 1
        ahead = [event_item(before, each, is_ahead=True) for each in events if each.event_id < first]
        for some in grouped(ahead, _EVENTS_AHEAD, lambda event: len(compact(event.details))):
            tx = self._core.store.transaction()
            tx.check(before, Execution.revision == before.revision)
            check_lease(tx, self._lease)
            for event in some:
                tx.put(event)
            try:
                tx.commit()
            except TransactionFailedError as error:
                self._core.jobs.refresh(self._lease)
                raise OvertakenError from error
        return packs

    def _begin_anew(self, after: Execution, writes: _Writes) -> None:
        stored, run = self._stored, self._stored.run
        stored.execution = after
        stored.kept -= writes.removed
        stored.kept |= writes.stored
        stored.outbox = [each for each in stored.outbox if each not in self.carried_out] + writes.outbox
        self.signals, self.carried_out = [], []
        self._bytes = self._measured = 0
        self.map_runs.forget()
        run.events.clear()
        run.changed.clear()
        run.commands.clear()


@dataclass(frozen=True)
class _Writes:
    """What becomes of the frames and commands of a run."""

    puts: list[Any]
    deletes: list[Any]
    outbox: list[ExecutionCommands]
    stored: set[str]
    """The ids of the frames that get an item."""
    removed: set[str]


def frame_item(core: ExecutionCore, execution: Execution, frame: Frame) -> ExecutionFrame:
    """Return the item of a frame."""
    text, key = core.texts.keep(compact(frame.memory), owner_of(execution))
    return ExecutionFrame(
        machine=execution.machine,
        name=execution.name,
        frame_id=frame.frame_id,
        memory=text,
        memory_object=key,
        is_ready=frame.is_ready,
        due_at=frame.due_at,
        visit=frame.visit,
        revision=execution.revision,
    )
