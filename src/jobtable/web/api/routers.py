"""The routers of the API: each says of its routes what all of them share."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.routing import APIRoute

from jobtable.web.guard import GuardedRoute
from jobtable.web.problems import RESPONSES

PREFIX = "/api/v1"


def api_router(group: str, route_class: type[APIRoute] = GuardedRoute) -> APIRouter:
    """A router for the routes of one group, which are whole: an app takes them as they are."""
    return APIRouter(
        prefix=PREFIX,
        tags=[group],
        responses=RESPONSES,
        generate_unique_id_function=_operation_id,
        route_class=route_class,
    )


def _operation_id(route: APIRoute) -> str:
    """What generators of clients make a method's name of."""
    return route.name
