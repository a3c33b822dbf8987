"""The REST API under /api/v1: one module for each group of verbs."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse

from jobtable.system import declared
from jobtable.web.api import (
    activities,
    assist,
    assist_calls,
    dependencies,
    functions,
    inbox,
    instances,
    job_batches,
    job_records,
    jobs,
    kept_files,
    live,
    machine_executions,
    machines,
    objects,
    queues,
    store,
    tables,
    task_tokens,
    tokens,
    work,
    workers,
)
from jobtable.web.api.examples import BODIES
from jobtable.web.api.route_parts import PREFIX
from jobtable.web.fastapi_internals import routes_of
from jobtable.web.guard import ANYONE, allow, rule_of
from jobtable.web.problems import Problem

_GROUPS = (
    jobs,
    job_batches,
    job_records,
    dependencies,
    queues,
    instances,
    work,
    workers,
    kept_files,
    machines,
    machine_executions,
    activities,
    task_tokens,
    functions,
    assist,
    inbox,
    assist_calls,
    tables,
    objects,
    store,
    tokens,
    live,
)


def groups() -> list[ModuleType]:
    """Return the modules of all routes: the core's and the systems'."""
    return [*_GROUPS, *(module for system, paths in declared("api") for module in system.load_all(paths))]


@cache
def examples() -> dict[str, Any]:
    """Return the example bodies of the core and of every system, by operation."""
    return BODIES | {name: body for module in groups() for name, body in getattr(module, "EXAMPLES", {}).items()}


_DESCRIPTION = """
Every verb of Jobtable and its systems.

Lists come in pages: send the `cursor` of a page to get the next one. Errors are `application/problem+json`.
Requests that create something accept an `Idempotency-Key`, so you can safely repeat them.
"""


def add_api(app: FastAPI) -> None:
    """Add every group of routes, and their description."""
    for module in groups():
        # Routes that create something have another class, and therefore a router of their own.
        for router in filter(None, (module.router, getattr(module, "creation", None))):
            app.router.routes.extend(router.routes)
    describe = cache(openapi_of)

    @allow(ANYONE)
    def get_openapi_description() -> JSONResponse:
        """Return the description, which is made once, and not on the event loop, because that takes a while."""
        return JSONResponse(describe(app))

    app.add_api_route(f"{PREFIX}/openapi.json", get_openapi_description, include_in_schema=False)


def openapi_of(app: FastAPI) -> dict[str, Any]:
    """Return the description of every route of the API, with the roles that may use it."""
    description = get_openapi(title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes)
    description["tags"] = [{"name": module.router.tags[0], "description": module.__doc__} for module in groups()]
    schemas = description["components"]["schemas"]
    schemas["Problem"] = Problem.model_json_schema()
    description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for route in routes_of(app):
        rule = rule_of(route.endpoint)
        operations = description["paths"].get(route.path_format, {})
        for method in route.methods or ():
            operation = operations.get(method.lower())
            if operation is None or rule is None:
                continue
            operation["security"] = [{"token": []}] if rule.roles else []
            operation["x-roles"] = sorted(rule.roles)
            if (example := examples().get(operation["operationId"])) is not None:
                operation["requestBody"]["content"]["application/json"]["example"] = example
    return description
