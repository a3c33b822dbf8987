"""Carries out the commands of runs: doing one twice is harmless, so a crash in between loses nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    DefinitionError,
    JobStateError,
    NotFoundError,
    ValueRefusedError,
)
from jobtable.jobs.lifecycle.leases import Lease, check_lease, lost_if_refused
from jobtable.jobs.stored.entities import Job
from jobtable.store.transactions import grouped
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.machine_verbs import MachineDeletingError
from jobtable.workflows.asl.entities import Execution, ExecutionCommands, ExecutionFrame, ExecutionStatus
from jobtable.workflows.asl.execution.child_outcomes import signal_of_end
from jobtable.workflows.asl.execution.ending import ExecutionEnds
from jobtable.workflows.asl.execution.execution_changes import frame_item
from jobtable.workflows.asl.execution.execution_core import ExecutionCore
from jobtable.workflows.asl.execution.function_answers import call_here, call_service
from jobtable.workflows.asl.execution.links import arn_of, link_to, name_of_child, task_id
from jobtable.workflows.asl.execution.map_running import run_id_of
from jobtable.workflows.asl.execution.redriving import ExecutionRedrives
from jobtable.workflows.asl.execution.starting import JOB_TYPE, ExecutionStarts
from jobtable.workflows.asl.execution.stored_runs import STORE_FRAMES, StoredRun, commands_in, frame_from
from jobtable.workflows.asl.interpreter.strand import Phase, dump
from jobtable.workflows.asl.messages import read_command
from jobtable.workflows.asl.run import (
    Abandon,
    CallFunction,
    CallService,
    Command,
    Failed,
    Refused,
    RemoveFrames,
    Run,
    Signal,
    Started,
    StartExecution,
    Submitted,
    Succeeded,
)
from jobtable.workflows.durable.large_payloads import PayloadOwner
from jobtable.workflows.function_calls import describe_import

FUNCTION_MISSING = "Lambda.ResourceNotFoundException"
_FRAMES_TOGETHER = 90
_AWAITING = frozenset({Phase.CALLING, Phase.CHILD})


class CarriesOut:
    """Carries out commands for the worker that holds an execution's job."""

    def __init__(
        self, core: ExecutionCore, starts: ExecutionStarts, redrives: ExecutionRedrives, ends: ExecutionEnds
    ) -> None:
        self._core = core
        self._starts = starts
        self._redrives = redrives
        self._ends = ends

    def carry_out(self, stored: StoredRun, commands: ExecutionCommands, lease: Lease) -> list[Signal]:
        """Carry out the commands of a change in order; return what is known of their ends at once.

        After a crash, those are left out whose end was recorded, so that a task does not run again.
        """
        execution = stored.execution
        signals: list[Signal] = []
        for kind, members in commands_in(self._core, commands):
            if kind == "RemoveFrames":
                self._remove_frames(execution, members["frame_ids"])
            elif kind == STORE_FRAMES:
                self._store_frames(execution, members["frames"], lease)
                stored.kept.update(each["frame_id"] for each in members["frames"])
            else:
                command = read_command(kind, members)
                if _is_awaited(stored.run, command):
                    signals += self.do(execution, command)
        return signals

    def do(self, execution: Execution, command: Command) -> list[Signal]:
        """Carry out one command."""
        match command:
            case CallFunction():
                return self._call_function(execution, command)
            case CallService():
                started = self._started(command)
                return [started, call_service(self._core, arn_of(execution), command)]
            case StartExecution(map_run=None):
                return self._start_nested(execution, command)
            case StartExecution():
                return self._start_child(execution, command)
            case Abandon():
                self._abandon(execution, command)
        return []

    # --- frames -----------------------------------------------------------------------------------------------------

    def _remove_frames(self, execution: Execution, frame_ids: list[str]) -> None:
        keys = {"machine": execution.machine, "name": execution.name}
        self._core.store.batch_delete(ExecutionFrame.key(**keys, frame_id=each) for each in frame_ids)

    def _store_frames(self, execution: Execution, frames: list[dict[str, Any]], lease: Lease) -> None:
        items = (frame_item(self._core, execution, frame_from(each)) for each in frames)
        for some in grouped(items, _FRAMES_TOGETHER, lambda item: len(item.memory)):
            with lost_if_refused(lease), self._core.store.transaction() as tx:
                check_lease(tx, lease)  # one that was held up must not undo what its successor did
                for item in some:
                    tx.put(item)

    # --- functions --------------------------------------------------------------------------------------------------

    def _call_function(self, execution: Execution, command: CallFunction) -> list[Signal]:
        functions = self._core.functions
        at = (command.frame_id, command.visit)
        try:
            function = functions.core.find_function(command.function, command.qualifier)
        except DefinitionError as error:
            failure = describe_import(error)
            return [Failed(*at, failure.error, failure.cause)]
        if function is None:
            qualified = command.function if command.qualifier is None else f"{command.function}:{command.qualifier}"
            arn = Arns(execution.region, execution.account).function(qualified)
            return [Refused(*at, FUNCTION_MISSING, f"Function not found: {arn}")]
        link = link_to(execution, *at, has_token=command.token is not None, version=function.version)
        job_id = task_id(link)
        if function.is_inline and not function.is_durable and not command.is_async:
            started = self._started(command)
            return [started, call_here(self._core, function, command, job_id, execution.job_id)]
        text = dump(command.payload)
        parent = None if command.is_async else link
        if function.is_durable:
            functions.starts.start(
                function, text, job_id, region=execution.region, parent=parent, user=execution.created_by
            )
        else:
            # What nobody waits for may run after the execution was deleted, with a payload of its own.
            owner = PayloadOwner(function.name, job_id) if command.is_async else PayloadOwner.at(link)
            stored = functions.core.payloads.store(text, owner)
            above = None if command.is_async else execution.job_id
            functions.starts.submit_call(
                function, stored, job_id, parent=parent, parent_job_id=above, user=execution.created_by
            )
        return [Succeeded(*at, {})] if command.is_async else []

    def _started(self, command: CallFunction | CallService) -> Started:
        """Return the signal that what is done here begins now."""
        return Started(command.frame_id, command.visit, at=self._core.now().isoformat())

    # --- executions -------------------------------------------------------------------------------------------------

    def _start_nested(self, execution: Execution, command: StartExecution) -> list[Signal]:
        at = (command.frame_id, command.visit)
        arguments = command.arguments
        payload = arguments.get("Input", {})
        link = link_to(execution, *at, awaits=command.awaits)
        waits = command.awaits in ("end", "end_as_json")
        try:
            started = self._starts.start(
                self._core.machines.runnable(str(command.machine_arn)),
                payload if isinstance(payload, str) else dump(payload),
                arguments.get("Name") or task_id(link),
                arns=Arns(execution.region, execution.account),
                trace=arguments.get("TraceHeader"),
                user=execution.created_by,
                parent=link if waits else None,
                parent_job_id=execution.job_id if waits else None,
                job_id=task_id(link),
            )
        except AlreadyExistsError as error:
            return [Refused(*at, "StepFunctions.ExecutionAlreadyExistsException", str(error))]
        except NotFoundError:
            missing = f"State Machine Does Not Exist: '{command.machine_arn}'"
            return [Refused(*at, "StepFunctions.StateMachineDoesNotExistException", missing)]
        except MachineDeletingError as error:
            return [Refused(*at, "StepFunctions.StateMachineDeletingException", str(error))]
        except ValueRefusedError as error:
            return [Refused(*at, "StepFunctions.InvalidExecutionInputException", str(error))]
        reference = {"ExecutionArn": arn_of(started), "StartDate": round(started.started_at.timestamp() * 1000)}
        return [Succeeded(*at, reference) if command.awaits == "start" else Submitted(*at, reference)]

    def _start_child(self, execution: Execution, command: StartExecution) -> list[Signal]:
        """Start the execution of a batch; one that ended otherwise than it should is redriven."""
        map_run = command.map_run
        assert map_run is not None
        machine = f"{execution.machine}/{map_run['label']}"
        name = name_of_child(run_id_of(map_run["arn"]), command.frame_id)
        link = link_to(execution, command.frame_id, command.visit, awaits="child")
        existing = self._core.store.find(Execution.key(machine=machine, name=name))
        if existing is None:
            self._starts.start_child(execution, command, link, name)
            return []
        if existing.status is ExecutionStatus.SUCCEEDED:
            kind, members = signal_of_end(self._core.texts, existing, link)
            return [] if _is_same_visit(existing, link) else [_signal(kind, link, members)]
        if not _is_same_visit(existing, link):
            self._redrives.redrive_child(existing, link, execution.job_id)
        return []

    # --- giving up --------------------------------------------------------------------------------------------------

    def _abandon(self, execution: Execution, command: Abandon) -> None:
        job_id = task_id(link_to(execution, command.frame_id, command.visit))
        job = self._core.store.find(Job.key(job_id=job_id))
        if job is None or job.is_final:
            return
        params = job.definition.params
        try:
            if job.job_type == JOB_TYPE:
                with suppress(JobStateError):  # it has ended; its job still tidies up
                    self._ends.stop(params["machine"], params["name"])
            elif job.job_type == "durable execution":
                self._core.functions.stop(params["function"], params["name"])
            else:
                self._core.jobs.cancel(job_id, message="its state machine no longer waits for it")
        except (JobStateError, NotFoundError, ConflictError):
            fresh = self._core.store.find(Job.key(job_id=job_id))
            if fresh is not None and not fresh.is_final:
                raise


def _is_awaited(run: Run, command: Command) -> bool:
    """Return whether the run still waits for what a command asks for; to abandon it is always wanted."""
    if isinstance(command, Abandon | RemoveFrames):
        return True
    frame = run.frames.get(command.frame_id)
    return frame is not None and frame.visit == command.visit and frame.memory["phase"] in _AWAITING


def _is_same_visit(existing: Execution, link: Mapping[str, Any]) -> bool:
    parent = cast("Mapping[str, Any]", existing.parent)
    return (parent["frame_id"], parent["visit"]) == (link["frame_id"], link["visit"])


def _signal(kind: str, link: Mapping[str, Any], members: Mapping[str, Any]) -> Signal:
    at = (link["frame_id"], link["visit"])
    if kind == "Succeeded":
        return Succeeded(*at, json.loads(members["payload"]))
    return Failed(*at, members.get("error"), members.get("payload"))
