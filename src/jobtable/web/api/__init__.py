"""The REST API: one module a group of verbs, all under /api/v1."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute, iter_route_contexts

from jobtable.web.api import (
    album_runs,
    albums,
    batches,
    conversation_runs,
    conversations,
    dependencies,
    instances,
    job_records,
    jobs,
    journey_runs,
    journeys,
    kept_files,
    labels,
    live,
    objects,
    places,
    queues,
    receipts,
    store,
    sweeps,
    tables,
    tokens,
    trials,
    validations,
    work,
    workers,
)
from jobtable.web.api.examples import BODIES
from jobtable.web.guard import ANYONE, Rule, allow, rule_of
from jobtable.web.problems import RESPONSES, Problem

PREFIX = "/api/v1"

_GROUPS = {
    "jobs": jobs,
    "records of jobs": job_records,
    "dependencies": dependencies,
    "queues": queues,
    "instances": instances,
    "work": work,
    "workers": workers,
    "files of work": kept_files,
    "sweeps": sweeps,
    "sweeps as they run": trials,
    "journeys": journeys,
    "journeys as they run": journey_runs,
    "conversations": conversations,
    "conversations as they run": conversation_runs,
    "albums": albums,
    "albums as they run": album_runs,
    "receipts": receipts,
    "labels": labels,
    "validations": validations,
    "batches": batches,
    "places": places,
    "tables": tables,
    "objects": objects,
    "store": store,
    "tokens": tokens,
    "live": live,
}
_DESCRIPTION = """
Every verb of the services. Lists are read page by page: send the `cursor` of a page to get the next one.
Errors are `application/problem+json`. Requests that create something take an `Idempotency-Key`.
"""


def add_api(app: FastAPI) -> None:
    """Add every group, and the description of all."""
    for name, module in _GROUPS.items():
        # Routes that create something are of another class, so they have a router of their own.
        for router in filter(None, (module.router, getattr(module, "creation", None))):
            app.include_router(
                router, prefix=PREFIX, tags=[name], responses=RESPONSES, generate_unique_id_function=_operation_id
            )
    describe = cache(openapi_of)

    @allow(ANYONE)
    def get_openapi_description() -> JSONResponse:
        """The description; making it takes a while, so it is made once, and not on the event loop."""
        return JSONResponse(describe(app))

    app.add_api_route(f"{PREFIX}/openapi.json", get_openapi_description, include_in_schema=False)


def _operation_id(route: APIRoute) -> str:
    """What generators of clients make a method's name of."""
    return route.name


def openapi_of(app: FastAPI) -> dict[str, Any]:
    """The description of every route of the API, with who may use it."""
    description = get_openapi(title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes)
    description["tags"] = [{"name": name, "description": module.__doc__} for name, module in _GROUPS.items()]
    schemas = description["components"]["schemas"]
    schemas["Problem"] = Problem.model_json_schema()
    description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for route in iter_route_contexts(app.routes):
        rule = rule_of(route.endpoint)
        operations = description["paths"].get(route.path_format, {})
        for method in route.methods or ():
            if method.lower() in operations and rule is not None:
                _add_rule(operations[method.lower()], rule)
                _add_example(operations[method.lower()])
    return description


def _add_rule(operation: dict[str, Any], rule: Rule) -> None:
    operation["security"] = [{"token": []}] if rule.roles else []
    operation["x-roles"] = sorted(rule.roles)


def _add_example(operation: dict[str, Any]) -> None:
    if operation["operationId"] in BODIES:
        operation["requestBody"]["content"]["application/json"]["example"] = BODIES[operation["operationId"]]
