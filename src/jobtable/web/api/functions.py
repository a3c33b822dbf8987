"""Call functions, and start, read, answer and stop executions of durable functions."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from jobtable.errors import CursorError
from jobtable.web.api.route_parts import Body, NewestFirst, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WORK, WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import CallerName, PageOf, Paging, TheDurable, TheFunctions, path_id
from jobtable.workflows.durable.entities import DurableExecution
from jobtable.workflows.durable.verbs import DurableVerbs, Invoked
from jobtable.workflows.function_records import FunctionRecord

router = api_router("functions")
creation = api_router("functions", CreationRoute)

FunctionName = Annotated[str, path_id("charge")]
CallId = Annotated[str, path_id("5f3c0d0e")]
DurableName = Annotated[str, path_id("order-7")]
Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$", examples=["order-7"])]


class NewDurableExecution(Body):
    """An execution to start. Starting one with the same name and payload again returns it."""

    payload: Any = Field(None, examples=[{"order": 7}])
    name: Name | None = None


class NewCall(Body):
    """A call of a function."""

    payload: str = Field("null", max_length=6_291_456, description="JSON as text.", examples=['{"order": 7}'])
    name: Name | None = Field(None, description="Of the execution, if the function is durable.")


class Error(BaseModel):
    """An error in Lambda's form."""

    model_config = ConfigDict(extra="forbid")

    ErrorMessage: str | None = Field(None, max_length=100_000)
    ErrorType: str | None = Field(None, max_length=1000)
    ErrorData: str | None = Field(None, max_length=100_000)
    StackTrace: list[str] | None = Field(None, max_length=1000)

    def members(self) -> dict[str, Any]:
        """Return the members that are given."""
        return self.model_dump(exclude_none=True)


class WhyEnded(Body):
    """Why an execution is ended."""

    error: Error | None = None


class CallbackBody(Body):
    """The id of a callback."""

    callback_id: str = Field(min_length=1, max_length=2048)


class CallbackResult(CallbackBody):
    """The result of a callback."""

    result: str | None = Field(None, max_length=1_048_576, description="A text, as a rule JSON.")


class CallbackFailure(CallbackBody):
    """The error of a callback."""

    error: Error | None = None


class CallbackId(BaseModel):
    """The id by which a callback is answered."""

    callback_id: str


class DurableData(BaseModel):
    """The whole input and output of a durable execution, as JSON texts."""

    input: str | None
    output: str | None


@router.get("/functions")
@allow(READ)
def list_functions(functions: TheFunctions, paging: Paging) -> PageOf[FunctionRecord]:
    """List the published functions, with the place of their code."""
    return paging.page(functions.query())


@router.get("/functions/{function}/calls/{job_id}")
@allow(READ)
def find_answer(function: FunctionName, job_id: CallId, durable: TheDurable) -> Invoked | None:
    """Return what a call of a function answered, or null while it runs."""
    return durable.find_answer(function, job_id)


@router.get("/functions/{function}/executions/{name}/data")
@allow(READ)
def get_durable_data(function: FunctionName, name: DurableName, durable: TheDurable) -> DurableData:
    """Return the whole input and output of an execution."""
    execution = durable.get(function, name)
    return DurableData(input=durable.input_of(execution), output=durable.output_of(execution))


@router.get("/functions/{function}/executions/{name}/callbacks/{number}")
@allow(READ)
def get_callback_id(function: FunctionName, name: DurableName, number: int, durable: TheDurable) -> CallbackId:
    """Return the id of a callback, given the number of its operation."""
    return CallbackId(callback_id=durable.callback_id(durable.get_operation(function, name, number)))


@router.get("/functions/{function}/executions/{name}/history")
@allow(READ)
def list_durable_events(
    function: FunctionName, name: DurableName, durable: TheDurable, paging: Paging, newest_first: NewestFirst = False
) -> PageOf[dict[str, Any]]:
    """List the events of an execution, in Lambda's form."""
    cursor = paging.cursor or "0"
    if not cursor.isdecimal() or len(cursor) > 9:
        raise CursorError("the cursor does not belong to this list; start without one")
    found = durable.history(function, name, newest_first=newest_first, after=int(cursor))
    events = list(islice(found, paging.limit + 1))
    more = str(events[paging.limit - 1]["EventId"]) if len(events) > paging.limit else None
    return PageOf(items=events[: paging.limit], cursor=more)


@router.post("/functions/{function}/executions/{name}/stop")
@allow(WRITE)
def stop_durable_execution(
    function: FunctionName, name: DurableName, durable: TheDurable, why: WhyEnded | None = None
) -> DurableExecution:
    """End an execution as STOPPED; one that has ended stays as it is."""
    error = why.error.members() if why and why.error else None
    return durable.stop(function, name, error=error)


@router.post("/callbacks/success", status_code=204)
@allow(WORK)
def send_callback_success(body: CallbackResult, durable: TheDurable) -> Response:
    """Answer a callback of a durable execution. A callback is answered once."""
    durable.succeed_callback(body.callback_id, body.result)
    return Response(status_code=204)


@router.post("/callbacks/failure", status_code=204)
@allow(WORK)
def send_callback_failure(body: CallbackFailure, durable: TheDurable) -> Response:
    """Answer a callback with an error. A callback is answered once."""
    durable.fail_callback(body.callback_id, None if body.error is None else body.error.members())
    return Response(status_code=204)


@router.post("/callbacks/heartbeat", status_code=204)
@allow(WORK)
def send_callback_heartbeat(body: CallbackBody, durable: TheDurable) -> Response:
    """Report that the worker with a callback id lives."""
    durable.beat_callback(body.callback_id)
    return Response(status_code=204)


add_verbs(
    creation,
    TheDurable,
    {"function": FunctionName, "user": CallerName},
    ("call_function", "POST /functions/{function}/calls 201", DurableVerbs.call, NewCall),
    ("start_durable_execution", "POST /functions/{function}/executions 201", DurableVerbs.start, NewDurableExecution),
)
add_verbs(
    router,
    TheDurable,
    {"function": FunctionName, "name": DurableName, "newest_first": NewestFirst},
    ("list_durable_executions", "GET /functions/{function}/executions", DurableVerbs.list),
    ("get_durable_execution", "GET /functions/{function}/executions/{name}", DurableVerbs.get),
    ("delete_durable_execution", "DELETE /functions/{function}/executions/{name}", DurableVerbs.delete),
    ("list_operations", "GET /functions/{function}/executions/{name}/operations", DurableVerbs.operations),
    under=[DurableVerbs.get],
)
