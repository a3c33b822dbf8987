"""Answers that are known at once: those of functions that run in the process of the execution, and of services."""

from __future__ import annotations

from jobtable.workflows.asl.execution.execution_core import ExecutionCore
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.run import CallFunction, CallService, Failed, Refused, Signal, Submitted, Succeeded
from jobtable.workflows.durable.function_tasks import context_of
from jobtable.workflows.function_calls import FunctionError, call
from jobtable.workflows.functions import Function


def call_here(core: ExecutionCore, function: Function, command: CallFunction, request_id: str, job_id: str) -> Signal:
    """Call a function in this process."""
    at = (command.frame_id, command.visit)
    try:
        answer = call(function, command.payload, context_of(core.jobs, function, request_id, job_id))
    except FunctionError as error:
        return Failed(*at, error.error, error.cause)
    return Succeeded(*at, answer, function.version) if command.token is None else Submitted(*at, answer)


def call_service(core: ExecutionCore, execution_arn: str, command: CallService) -> Signal:
    """Ask a service."""
    at = (command.frame_id, command.visit)
    try:
        answer = core.services.call(command, execution_arn)
    except StateFault as fault:
        return Refused(*at, fault.error, fault.cause)
    return Succeeded(*at, answer) if command.token is None else Submitted(*at, answer)
