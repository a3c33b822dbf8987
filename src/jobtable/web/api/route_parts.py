"""What the groups of routes share: their router, and parts of requests and responses."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from jobtable.model import Entity
from jobtable.store import Undeclared
from jobtable.web.guard import GuardedRoute
from jobtable.web.problems import RESPONSES

PREFIX = "/api/v1"

Name = Annotated[str, Field(min_length=1, max_length=200)]
NewestFirst = Annotated[bool, Query(description="Newest first instead of oldest first.")]


def _in_addresses(given: str) -> str:
    """Return an id that a path can contain: clients and proxies resolve a segment of dots as a step in the path."""
    if given in {".", ".."}:
        raise ValueError(f"{given!r} cannot be used in a URL; choose another id")
    return given


Id = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_in_addresses)]
"""An id that the caller chooses."""


def api_router(group: str, route_class: type[APIRoute] = GuardedRoute) -> APIRouter:
    """Return a router for one group of API routes; mark each of their functions with @allow(...)."""
    return APIRouter(
        prefix=PREFIX,
        tags=[group],
        responses=RESPONSES,
        generate_unique_id_function=lambda route: route.name,  # generators of clients name methods after it
        route_class=route_class,
    )


class Body(BaseModel):
    """The body of a request. Unknown fields are refused, so that a misspelled one does not fall back to its default."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Written(BaseModel):
    """How many items were written or deleted."""

    count: int


def with_kind(item: Entity) -> dict[str, Any]:
    """Return an item of a mixed list: its values, and the name of its kind as `entity`."""
    values = item.item if isinstance(item, Undeclared) else item.model_dump(mode="json")
    return {"entity": type(item).__name__, **values}
