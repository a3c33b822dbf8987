"""What this package uses of FastAPI's internals; tests/web/test_internals.py fails when they change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from pydantic import BaseModel, TypeAdapter


def routes_of(app: FastAPI) -> Iterator[RouteContext]:
    """Yield every route of an app, including those of routers that it includes."""
    return iter_route_contexts(app.routes)


def body_type(route: APIRoute) -> TypeAdapter[Any] | None:
    """Return the type of a route's body, or None if it takes none."""
    field = route.body_field
    return None if field is None else TypeAdapter(field.field_info.rebuild_annotation())


def query_parameters(route: APIRoute) -> dict[str, bool]:
    """Return the names of a route's query parameters, each with whether it may be repeated."""
    return dict(_query_parameters(route.dependant))


def _query_parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    for field in dependant.query_params:
        kind = field.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):  # each of its fields is a parameter
            yield from ((each.alias or name, _is_list(each.annotation)) for name, each in kind.model_fields.items())
        else:
            yield field.alias, _is_list(kind)
    for inner in dependant.dependencies:
        yield from _query_parameters(inner)


def _is_list(kind: Any) -> bool:
    return any(get_origin(each) is list for each in (kind, *get_args(kind)))
