"""Calls of functions as Lambda makes them: with an event and a context, answered with JSON or an error."""

from __future__ import annotations

import inspect
import json
import os
import pkgutil
import traceback
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from jobtable.errors import DefinitionError
from jobtable.workflows.functions import Function

if TYPE_CHECKING:
    from jobtable.jobs.engine import Jobs

IMPORT_FAILED = "Runtime.ImportModuleError"
_MOST_TRACE_LINES = 30
_OPEN = "jobtable.app:open_jobs"
"""Loaded by its name, because functions know no backend; only Lambda, where no worker has opened a store, needs it."""


@dataclass(frozen=True)
class ClientContext:
    """What the client that invoked a function says about itself."""

    custom: Any = None
    env: Any = None
    client: Any = None

    @classmethod
    def read(cls, members: Mapping[str, Any]) -> ClientContext:
        """Return the context that a client sent; unknown members are ignored."""
        client = members.get("client")
        return cls(members.get("custom"), members.get("env"), SimpleNamespace(**client) if client else None)


@dataclass(frozen=True)
class FunctionContext:
    """The second argument of a handler, with the members that Lambda's context has, and the worker's engine."""

    function_name: str
    memory_limit_in_mb: str
    invoked_function_arn: str
    remaining_ms: Callable[[], int]
    function_version: str = "$LATEST"
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    log_group_name: str = ""
    log_stream_name: str = ""
    client_context: ClientContext | None = None
    identity: None = None
    """Of a user of a mobile app on AWS; here nobody."""
    jobs: Jobs | None = None
    """The engine of the worker that calls; Lambda's own context has no such member."""

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the function may still run."""
        return self.remaining_ms()


@dataclass(frozen=True)
class FunctionError(Exception):
    """A handler raised: the name of the error's class, and Lambda's JSON about it."""

    error: str
    cause: str


def jobs_of(context: Any) -> Jobs:
    """Return the engine of the worker that calls, or on Lambda that of JOBTABLE_STORE and JOBTABLE_OBJECTS."""
    return getattr(context, "jobs", None) or _jobs_of_environment()


@cache
def _jobs_of_environment() -> Jobs:
    opened: Jobs = pkgutil.resolve_name(_OPEN)(os.environ["JOBTABLE_STORE"], os.environ.get("JOBTABLE_OBJECTS"))
    return opened


def call(function: Function, event: Any, context: FunctionContext) -> Any:
    """Return what a handler makes of an event, as JSON has it; FunctionError if it raises."""
    try:
        result = function.handler(event, context) if takes_context(function.handler) else function.handler(event)
        return json.loads(json.dumps(result))
    except Exception as error:  # whatever a user's handler raises is its answer
        trace = traceback.format_tb(error.__traceback__)[1:][-_MOST_TRACE_LINES:]
        about = {
            "errorMessage": str(error),
            "errorType": type(error).__name__,
            "requestId": context.aws_request_id,
            "stackTrace": trace,
        }
        raise FunctionError(type(error).__name__, json.dumps(about)) from error


def describe_crash(message: str) -> FunctionError:
    """Return the error of a function whose process ended without an answer."""
    return FunctionError("Lambda.Unknown", json.dumps({"errorMessage": message, "errorType": "Lambda.Unknown"}))


def describe_import(error: DefinitionError) -> FunctionError:
    """Return Lambda's error of a function whose module cannot be imported."""
    about = {"errorMessage": str(error), "errorType": IMPORT_FAILED, "requestId": "", "stackTrace": []}
    return FunctionError(IMPORT_FAILED, json.dumps(about))


def takes_context(handler: Callable[..., Any]) -> bool:
    """Return whether a handler can be called with an event and a context."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return True
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return True
    return sum(each.kind in positional for each in parameters) >= 2
