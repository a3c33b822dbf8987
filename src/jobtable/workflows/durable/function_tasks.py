"""The tasks of the jobs that call functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from jobtable.clock import wall_time
from jobtable.errors import ConflictError, DefinitionError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import FailTask, SuspendTask, task
from jobtable.workflows.asl.execution.signals import report_start
from jobtable.workflows.durable.durable_service import DurableService
from jobtable.workflows.durable.entities import DurableExecution, DurableStatus
from jobtable.workflows.durable.handler_calls import Pause, Raised
from jobtable.workflows.durable.large_payloads import PayloadOwner
from jobtable.workflows.function_calls import ClientContext, FunctionContext, FunctionError, call, describe_import
from jobtable.workflows.functions import LATEST, Function

_MOST_SAID = 1_000
"""Characters of the message of a job."""
_Client: TypeAlias = Mapping[str, Any] | None
"""What the client that invoked a function says about itself."""


@task
def run_durable(job: JobContext, function: str, name: str, client: _Client = None, version: str | None = None) -> None:
    """Call the handler of a durable execution until the execution waits or ends."""
    _run(job, function, name, client, version)


@task(inline=True)
def run_durable_inline(
    job: JobContext, function: str, name: str, client: _Client = None, version: str | None = None
) -> None:
    """Do the same in the worker's process."""
    _run(job, function, name, client, version)


@task
def call_function(
    job: JobContext,
    function: str,
    payload: Any,
    parent: Mapping[str, Any] | None,
    client: _Client = None,
    version: str | None = None,
) -> Any:
    """Call a function once."""
    return _call(job, function, payload, parent, client, version)


@task(inline=True)
def call_function_inline(
    job: JobContext,
    function: str,
    payload: Any,
    parent: Mapping[str, Any] | None,
    client: _Client = None,
    version: str | None = None,
) -> Any:
    """Do the same in the worker's process."""
    return _call(job, function, payload, parent, client, version)


def service_of(jobs: Jobs) -> DurableService:
    """Return the durable service of an engine: one for all jobs of a process, so that they share what they know."""
    return jobs.shared(DurableService)


def _run(job: JobContext, function_name: str, name: str, client: _Client, version: str | None) -> None:
    from jobtable.workflows.durable.store_client import call_durable  # noqa: PLC0415 - it loads AWS's SDK

    service = service_of(job.jobs)
    function = service.core.get_function(function_name, version)
    while True:
        begun = service.calls.begin(job.lease, function_name, name)
        if begun is None:
            break
        if isinstance(begun, Pause):
            raise SuspendTask(begun.until, "waits for its operations")
        if begun.invocation == 1:
            _report_start(job, begun.execution.parent)
        context = context_of(job.jobs, function, begun.request_id, job.job_id, begun.arn.function_arn, client)
        answer = call_durable(service, function, begun, context, job.should_stop)
        if isinstance(answer, Raised):
            job.warning(f"the handler raised {answer.error['ErrorType']}: {answer.error['ErrorMessage']}")
        pause = service.calls.finish(job.lease, begun, answer)
        if pause is None:
            break
        if job.should_stop() or pause.until is None or pause.until > service.core.now():
            raise SuspendTask(pause.until, "waits for its operations")
    service.delete_some_expired(function_name)
    ended = service.core.store.find(DurableExecution.key(function=function_name, name=name))
    if ended is not None and ended.execution_id == job.job_id:
        _fail_with(ended)


def _fail_with(ended: DurableExecution) -> None:
    """Let the job of an execution that failed fail as well, so that lists of jobs show it."""
    if ended.status in (DurableStatus.FAILED, DurableStatus.TIMED_OUT):
        error = ended.error if isinstance(ended.error, Mapping) else {}
        said = ": ".join(str(error[each]) for each in ("ErrorType", "ErrorMessage") if error.get(each))
        raise FailTask((said or f"the execution {ended.status}")[:_MOST_SAID])


def _call(
    job: JobContext,
    function_name: str,
    payload: Any,
    parent: Mapping[str, Any] | None,
    client: _Client,
    version: str | None,
) -> Any:
    service = service_of(job.jobs)
    try:
        function = service.core.get_function(function_name, version)
    except DefinitionError as error:
        raise _failed(describe_import(error)) from error
    text = service.core.payloads.read(payload)
    _report_start(job, parent)
    context = context_of(job.jobs, function, job.job_id, job.job_id, client=client)
    try:
        answer = call(function, None if text is None else json.loads(text), context)
    except FunctionError as error:
        raise _failed(error) from error
    owner = PayloadOwner(function_name, job.job_id) if parent is None else PayloadOwner.at(parent)
    return {"payload": service.core.payloads.store(json.dumps(answer), owner)}


def _report_start(job: JobContext, parent: Mapping[str, Any] | None) -> None:
    """Let the history of a state machine show that the function which it called runs; a later signal implies it."""
    if parent is None or "machine" not in parent:
        return
    try:
        report_start(job.jobs.store, parent, wall_time(job.jobs.clock))
    except ConflictError as error:
        job.warning(f"the start of this function is recorded with its end: {error}")


def context_of(
    jobs: Jobs, function: Function, request_id: str, job_id: str, arn: str | None = None, client: _Client = None
) -> FunctionContext:
    """Return the context of a call that begins now."""
    qualified = function.name if function.version == LATEST else f"{function.name}:{function.version}"
    clock = jobs.clock
    until = clock.monotonic() + function.timeout_seconds
    return FunctionContext(
        function_name=function.name,
        memory_limit_in_mb=str(function.memory_mb),
        invoked_function_arn=arn or service_of(jobs).core.arns.function(qualified),
        function_version=function.version,
        remaining_ms=lambda: max(0, round((until - clock.monotonic()) * 1000)),
        aws_request_id=request_id,
        log_group_name=f"/aws/lambda/{function.name}",
        log_stream_name=job_id,
        client_context=None if client is None else ClientContext.read(client),
        jobs=jobs,
    )


def _failed(error: FunctionError) -> FailTask:
    about = json.loads(error.cause)
    members = {"ErrorMessage": "errorMessage", "ErrorType": "errorType", "StackTrace": "stackTrace"}
    found = {name: about[member] for name, member in members.items() if about.get(member)}
    return FailTask(f"{error.error}: {error.cause}", {"error": found})
