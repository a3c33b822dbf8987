"""Start, read, stop, redrive and delete executions of state machines, and runs of distributed Maps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field

from jobtable.model.expressions import attribute_of
from jobtable.web.api.machines import InAccount, MachineName, StatesName
from jobtable.web.api.route_parts import Body, NewestFirst, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import (
    CallerName,
    PageOf,
    Paging,
    TheExecutions,
    TheMachines,
    TheObjects,
    TheStore,
    path_id,
)
from jobtable.workflows.asl.catalogue.machine_verbs import MachineVerbs
from jobtable.workflows.asl.entities import Execution, ExecutionStatus, MachineType
from jobtable.workflows.asl.execution.execution_reads import read_input, read_output
from jobtable.workflows.asl.verbs import ExecutionVerbs, RunnableMachine, refuse_standard

router = api_router("machine executions")
creation = api_router("machine executions", CreationRoute)

ExecutionName = Annotated[str, path_id("order-7")]
MapRunId = Annotated[str, path_id("7d1b6c1e")]
StatusFilter = Annotated[ExecutionStatus | None, Query(description="Only executions with this status.")]
_ERROR, _CAUSE = Field(None, max_length=256), Field(None, max_length=32_768)
MOST_EXPRESS_RUNS = 8
"""How many express machines run at once, each for up to five minutes; the next ones wait."""
_MOST_DATA_CHARACTERS = 262_144


class NewMachineExecution(InAccount):
    """An execution to start. Starting a running one with the same name and input again returns it."""

    input: str = Field("{}", max_length=_MOST_DATA_CHARACTERS, description="JSON as text.", examples=['{"order": 7}'])
    name: StatesName | None = None
    qualifier: str | None = Field(None, min_length=1, max_length=80, description="A version or an alias.")
    version: int | None = Field(None, ge=1, le=999_999, description="The version to run in the name of the alias.")
    trace: str | None = Field(None, max_length=256, description="Kept for AWS: the header X-Amzn-Trace-Id.")

    def machine(self, machines: MachineVerbs, name: str) -> RunnableMachine:
        """Return what is to be run."""
        found = machines.runnable(name, self.qualifier)
        if self.version is None or found.version == str(self.version):
            return found
        return replace(machines.runnable(name, str(self.version)), qualifier=self.qualifier)


class WhyStopped(Body):
    """Why an execution is stopped, for its history."""

    error: str | None = _ERROR
    cause: str | None = _CAUSE


class MapRunLimits(Body):
    """The limits of a run of a distributed Map to change; null leaves one as it is."""

    max_concurrency: int | None = Field(None, ge=0, le=10_000)
    tolerated_failure_count: int | None = Field(None, ge=0, le=10**9)
    tolerated_failure_percentage: float | None = Field(None, ge=0, le=100)


class MachineExecution(BaseModel):
    """An execution of a state machine. Data that are too large for an item are named by their object."""

    model_config = ConfigDict(from_attributes=True)

    machine: str
    name: str
    job_id: str
    earlier_job_ids: list[str]
    status: ExecutionStatus
    type: MachineType
    definition_sha256: str
    processor_path: str | None
    qualifier: str | None
    version: str | None
    region: str
    account: str
    role_arn: str | None
    input: str
    input_object: str | None
    output: str | None
    output_object: str | None
    error: str | None
    cause: str | None
    started_at: datetime
    stopped_at: datetime | None
    revision: int
    last_event_id: int
    redrive_count: int
    redriven_at: datetime | None
    trace_header: str | None
    map_run_id: str | None
    parent: Any
    created_by: str
    time_to_live: int | None


class ExpressResult(BaseModel):
    """How an express execution ended, and what Step Functions would have billed."""

    execution: MachineExecution
    billed_ms: int
    billed_mb: int


@dataclass(frozen=True)
class ExecutionData:
    """The whole input and output of an execution, as JSON texts."""

    input: str
    output: str | None


def _view(execution: Execution) -> MachineExecution:
    return MachineExecution.model_validate(execution)


def _views(page: PageOf[Execution]) -> PageOf[MachineExecution]:
    return PageOf(items=[_view(each) for each in page.items], cursor=page.cursor)


@creation.post("/machines/{machine}/executions", status_code=201)
@allow(WRITE)
def start_machine_execution(
    machine: MachineName,
    body: NewMachineExecution,
    machines: TheMachines,
    executions: TheExecutions,
    user: CallerName,
) -> MachineExecution:
    """Start an execution of a state machine. Workers of the queue `workflows` move it."""
    runnable = body.machine(machines, machine)
    return _view(executions.start(runnable, body.input, body.name, arns=body.arns, trace=body.trace, user=user))


@router.post("/machines/{machine}/express-runs")
@allow(WRITE)
async def run_express_machine(
    machine: MachineName,
    body: NewMachineExecution,
    machines: TheMachines,
    executions: TheExecutions,
    request: Request,
) -> ExpressResult:
    """Run an express machine, and return how it ended; it may take five minutes."""

    def run() -> ExpressResult:
        runnable = body.machine(machines, machine)
        refuse_standard(runnable)
        result = executions.run_express(runnable, body.input, body.name, arns=body.arns)
        return ExpressResult(execution=_view(result.execution), billed_ms=result.billed_ms, billed_mb=result.billed_mb)

    # Beside the threads of short requests, which would otherwise wait for these.
    return await to_thread.run_sync(run, limiter=request.app.state.express_runs)


@router.get("/machines/{machine}/executions")
@allow(READ)
def list_machine_executions(
    machine: MachineName,
    machines: TheMachines,
    executions: TheExecutions,
    paging: Paging,
    status: StatusFilter = None,
) -> PageOf[MachineExecution]:
    """List the executions of a state machine, the newest first."""
    return _views(paging.page(executions.list(machine, status=status), under=partial(machines.get, machine)))


@router.get("/machines/{machine}/executions/{name}")
@allow(READ)
def get_machine_execution(machine: MachineName, name: ExecutionName, executions: TheExecutions) -> MachineExecution:
    """Return an execution."""
    return _view(executions.get(machine, name))


@router.get("/machines/{machine}/executions/{name}/data")
@allow(READ)
def get_execution_data(
    machine: MachineName, name: ExecutionName, executions: TheExecutions, objects: TheObjects
) -> ExecutionData:
    """Return the whole input and output of an execution."""
    execution = executions.get(machine, name)
    return ExecutionData(read_input(execution, objects), read_output(execution, objects))


@router.post("/machines/{machine}/executions/{name}/stop")
@allow(WRITE)
def stop_machine_execution(
    machine: MachineName, name: ExecutionName, executions: TheExecutions, why: WhyStopped | None = None
) -> MachineExecution:
    """Abort an execution; its tasks are cancelled."""
    why = why or WhyStopped()
    return _view(executions.stop(machine, name, error=why.error, cause=why.cause))


@router.post("/machines/{machine}/executions/{name}/redrive")
@allow(WRITE)
def redrive_machine_execution(machine: MachineName, name: ExecutionName, executions: TheExecutions) -> MachineExecution:
    """Continue an execution that failed, timed out or was aborted, from the states that failed."""
    return _view(executions.redrive(machine, name))


@router.get("/map-runs/{map_run_id}/executions")
@allow(READ)
def list_children_of_map_run(
    map_run_id: MapRunId, executions: TheExecutions, store: TheStore, paging: Paging
) -> PageOf[MachineExecution]:
    """List the executions of a run of a distributed Map, the newest first."""
    run = executions.get_map_run(map_run_id)
    children = store.query(
        Execution.by_machine(machine=f"{run.machine}/{run.label}"),
        newest_first=True,
        where=attribute_of(Execution.map_run_id) == map_run_id,
    )
    return _views(paging.page(children))


add_verbs(
    router,
    TheExecutions,
    {"machine": MachineName, "name": ExecutionName, "map_run_id": MapRunId, "newest_first": NewestFirst},
    ("delete_machine_execution", "DELETE /machines/{machine}/executions/{name}", ExecutionVerbs.delete),
    ("list_execution_events", "GET /machines/{machine}/executions/{name}/history", ExecutionVerbs.history),
    ("list_map_runs", "GET /machines/{machine}/executions/{name}/map-runs", ExecutionVerbs.list_map_runs),
    ("get_map_run", "GET /map-runs/{map_run_id}", ExecutionVerbs.get_map_run),
    ("change_map_run", "PATCH /map-runs/{map_run_id}", ExecutionVerbs.change_map_run, MapRunLimits),
    under=[ExecutionVerbs.get],
)
