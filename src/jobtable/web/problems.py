"""Errors as responses: problem+json for programs, a page for people."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobtable import errors
from jobtable.system import declared
from jobtable.web.fastapi_internals import routes_of
from jobtable.workflows.asl.machine import InvalidDefinitionError

_LOG = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

STATUS_OF: dict[type[errors.JobtableError], int] = {
    errors.JobtableError: 500,
    errors.DefinitionError: 400,
    errors.ValueRefusedError: 400,
    errors.ItemShapeError: 500,
    errors.NotFoundError: 404,
    errors.ConflictError: 409,
    errors.CursorError: 400,
    errors.IncompleteBatchError: 503,
    errors.ConnectionUrlError: 500,
    errors.SettingsError: 500,
    errors.MissingExtraError: 500,
    errors.TaskError: 400,
    errors.TokenRefusedError: 403,
    errors.ArchiveError: 400,
    errors.AssistError: 502,
    errors.NoModelError: 400,
    errors.BudgetExceededError: 409,
    errors.AnswerRefusedError: 502,
    errors.ObjectNotFoundError: 404,
    errors.ObjectStoreError: 502,
    errors.ObjectStoreUnavailable: 503,
    errors.StorageError: 503,
    errors.StorageLocked: 503,
    errors.RequestError: 502,
    errors.OperationRefused: 400,
    errors.ConditionalCheckFailed: 409,
    errors.DuplicateItem: 409,
    errors.TransactionCanceled: 409,
    errors.TransactionConflict: 503,
    errors.TransactionInProgress: 503,
    errors.IdempotencyMismatch: 409,
    errors.RequestRefused: 400,
    errors.TableNotFound: 503,
    errors.TableInUse: 409,
    errors.CollectionTooLarge: 409,
    errors.StreamExpired: 410,
    errors.OperationRefused: 400,
    InvalidDefinitionError: 400,
    errors.AccessDenied: 502,
    errors.Throttled: 503,
    errors.BackendUnavailable: 503,
}
"""The status of each error; an error that is not listed has the status of its parent."""


_LIST_OF_CORE = {
    "access token": "tokens",
    "activity": "activities",
    "function": "functions",
    "inbox rule": "inbox-rules",
    "inbox task": "inbox",
    "instance": "instances",
    "job": "jobs",
    "queue": "queues",
    "state machine": "machines",
    "table": "tables",
}
"""The part of the API that lists each kind of thing, as `System.listings` has it for the systems' kinds."""

_WITHOUT_BODY = {"GET", "HEAD", "DELETE"}

_OF_VALUES = {"value_error", "decimal_parsing", "base64_decode"}
"""Types of pydantic's errors about values that the API's description allows."""

_LOGGED = "internal error; see the server's log"


class Problem(BaseModel):
    """An error, as in RFC 9457."""

    type: Annotated[str, Field(description="The name of the error's class, or about:blank.")] = "about:blank"
    title: str
    status: int = Field(ge=400, le=599)
    detail: str | None = None
    hint: Annotated[str | None, Field(description="What to do.")] = None
    reason: Annotated[
        str | None, Field(description="Why, as a word that programs compare; of a RequestError DynamoDB's code.")
    ] = None
    kind: Annotated[str | None, Field(description="What is missing, as in `job`.")] = None
    key: Annotated[str | None, Field(description="The id or name of what is missing.")] = None
    request_id: Annotated[str | None, Field(description="The request's id in the server's log.")] = None
    errors: Annotated[list[dict[str, Any]] | None, Field(description="The invalid parts of the request.")] = None


_DESCRIPTIONS = {
    400: "A value is invalid, or the cursor does not belong to this list.",
    401: "The token is missing or invalid.",
    403: "The token's role may not do this, or the request comes from another site's page.",
    404: "It does not exist.",
    408: "The body did not arrive in time.",
    409: "Its current state does not allow this.",
    413: "The request is too large.",
    415: "The body is not JSON.",
    422: "The request does not match this description.",
    429: "Too many requests.",
    503: "The store is temporarily unavailable; try again.",
}
_NO_OPERATION = {404: "this address does not exist", 405: "this address does not support this method"}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for status, text in _DESCRIPTIONS.items()
}
"""The responses that every operation may return, for the API's description."""


class Refusal(Exception):
    """Refuses a request with a status, a sentence and headers."""

    def __init__(
        self,
        status: int,
        detail: str,
        headers: dict[str, str] | None = None,
        *,
        hint: str | None = None,
        reason: errors.ErrorReason | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}
        self.hint = hint
        self.reason = reason


class PassesThrough(Exception):
    """An exception that an outer middleware turns into a response."""


def status_of(error: errors.JobtableError) -> int:
    """Return the status of an error."""
    return next(STATUS_OF[cls] for cls in type(error).__mro__ if cls in STATUS_OF)


def problem_of(error: Exception, *, has_body: bool = True) -> Problem:
    """Return what the caller sees of an error: everything if the caller caused it, little if the server did.

    A ValidationError from within a service is the caller's if the request has a body.
    """
    match error:
        case Refusal():
            return _problem(error.status, error.detail, hint=error.hint, reason=error.reason)
        case HTTPException():
            return _problem(error.status_code, None if error.detail == _title(error.status_code) else error.detail)
        case RequestValidationError(body=bytes()):  # FastAPI did not read it as JSON
            return _problem(415, "the body is not marked as JSON", hint="send it with Content-Type: application/json")
        case RequestValidationError():
            return _problem_of_shape(error.errors())
        case ValidationError() if has_body:
            return _problem_of_shape(error.errors())
        case errors.JobtableError():
            return _problem_of_error(error)
        case RecursionError():
            return _problem(422, "the request is nested too deeply")
        case ClientDisconnect():
            return _problem(400, "the body was incomplete")  # counted, though no one receives it
        case _:
            return _problem(500, _LOGGED)


def _problem_of_shape(found: Sequence[Any]) -> Problem:
    """Return 400 if the request has the described shape and only its values are invalid, else 422."""
    if all(each["type"] in _OF_VALUES for each in found):
        problem = _problem(400, "a value is invalid")
    else:
        problem = _problem(422, "the request does not match the description of this operation")
    places = [{"at": list(each["loc"]), "message": each["msg"]} for each in found]
    return problem.model_copy(update={"errors": places})


def _problem_of_error(error: errors.JobtableError) -> Problem:
    problem = _problem(status_of(error), error.message, type=type(error).__name__, hint=error.hint, reason=error.reason)
    if isinstance(error, errors.NotFoundError):
        problem.kind, problem.key = error.kind, error.key
    if isinstance(error, InvalidDefinitionError):
        problem.errors = [asdict(each) for each in error.diagnostics]
    if isinstance(error, errors.RequestError):
        problem.reason = error.reason or error.code
    return problem


def _problem(status: int, detail: str | None, **members: Any) -> Problem:
    return Problem(title=_title(status), status=status, detail=detail, **members)


def _title(status: int) -> str:
    return HTTPStatus(status).phrase


def problem_response(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """Return a problem as JSON."""
    body = problem.model_dump(mode="json", exclude_none=True)
    return JSONResponse(body, problem.status, headers, MEDIA_TYPE)


ErrorPage = Callable[[Request, Problem], Response]


def handle_errors(app: FastAPI, error_page: ErrorPage) -> None:
    """Turn every error of the app into a response: a page if a person asked for one, problem+json otherwise."""

    def answer(request: Request, error: Exception) -> Response:
        problem = problem_of(error, has_body=request.method not in _WITHOUT_BODY)
        request_id = getattr(request.state, "request_id", None)
        if problem.status >= 500:
            # If the store is unavailable, every request and health check logs it, so one line is enough.
            trace = None if problem.status == 503 else error
            _LOG.error("request %s: %s %s: %s", request_id, request.method, request.url.path, error, exc_info=trace)
            if getattr(request.state, "caller", None) is None:
                # A store's error names files, addresses and accounts, which unknown callers must not see.
                problem = _problem(problem.status, _LOGGED)
        problem.request_id = request_id
        headers = _headers(request, error, problem.status)
        if wants_page(request):
            response = error_page(request, problem)
            response.headers.update(headers)
            return response
        if listing := _list_of(problem.kind):
            problem.hint = f"GET /api/v1/{listing} lists them"
        elif problem.detail is None and problem.status in _NO_OPERATION:
            problem.detail = _NO_OPERATION[problem.status]
            problem.hint = "/api/v1/openapi.json describes every operation"
        return problem_response(problem, headers)

    async def handler(request: Request, error: Exception) -> Response:
        if wants_page(request) and isinstance(error, HTTPException | Refusal) and not hasattr(request.state, "caller"):
            # No route has identified the caller, but the error page shows the caller's menu.
            request.state.caller = await request.app.state.guard.find_caller(request)
        return answer(request, error)

    for cls in (errors.JobtableError, RequestValidationError, ValidationError, HTTPException, Refusal, RecursionError):
        app.add_exception_handler(cls, handler)
    app.add_middleware(_Unexpected, answer=answer)


def _list_of(kind: str | None) -> str | None:
    """Return the part of the API that lists what is missing, if there is one."""
    of_systems = (listings[kind].api for _, listings in declared("listings") if kind in listings)
    return _LIST_OF_CORE.get(kind or "") or next(of_systems, None)


class Sending:
    """Passes a response on, and knows whether it has started, after which no other can replace it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        self.has_begun = True
        await self._send(message)


class _Unexpected:
    """Middleware for unexpected errors, inside the others, so that the response gets the usual headers."""

    def __init__(self, app: ASGIApp, answer: Callable[[Request, Exception], Response]) -> None:
        self._app = app
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = Sending(send)
        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            if scope["type"] != "http" or sending.has_begun or isinstance(error, PassesThrough):
                raise
            await self._answer(Request(scope), error)(scope, receive, send)


def wants_page(request: Request) -> bool:
    """Return whether a person sees the response."""
    return not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")


def _headers(request: Request, error: Exception, status: int) -> dict[str, str]:
    given = getattr(error, "headers", None) or {}
    if status == 405:
        given = {"Allow": ", ".join(sorted(_methods_of(request)))}
    again = {"Retry-After": "1"} if status == 503 and "Retry-After" not in given else {}
    return {**given, **again}


def _methods_of(request: Request) -> set[str]:
    """Return every method that some route accepts at the request's path."""
    routes = [route for route in routes_of(request.app) if route.path_regex.match(request.url.path)]
    return {method for route in routes for method in route.methods or ()}
