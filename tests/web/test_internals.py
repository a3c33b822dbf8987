"""The internals of uvicorn and FastAPI that the server uses are where it looks for them."""

from __future__ import annotations

import asyncio
import inspect
from typing import Annotated

import uvicorn
from fastapi import APIRouter, Body, Depends, FastAPI, Query
from fastapi.routing import APIRoute
from pydantic import BaseModel
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from jobtable.web.fastapi_internals import body_type, query_parameters, routes_of


class Filters(BaseModel):
    """Query parameters in a model."""

    state: str = ""
    tags: list[str] = []


def _inner(page: int = 1) -> int:
    return page


def _find(
    filters: Annotated[Filters, Query()],
    page: Annotated[int, Depends(_inner)],
    body: Annotated[dict[str, int], Body()],
) -> None:
    """Take a body and query parameters."""


def test_fastapi_describes_the_query_and_the_body_of_a_route() -> None:
    route = APIRoute("/found", _find, methods=["POST"])
    assert query_parameters(route) == {"state": False, "tags": True, "page": False}
    kind = body_type(route)
    assert kind is not None
    assert kind.validate_json(b'{"a": 1}', strict=True) == {"a": 1}
    assert body_type(APIRoute("/health", lambda: None)) is None


def test_fastapi_lists_the_routes_of_included_routers() -> None:
    router = APIRouter()
    router.add_api_route("/inner", lambda: None)
    app = FastAPI(openapi_url=None)
    app.include_router(router, prefix="/outer")
    (route,) = routes_of(app)
    assert (route.path, route.path_format, route.methods) == ("/outer/inner", "/outer/inner", {"GET"})
    assert route.path_regex.match("/outer/inner")
    assert isinstance(route.original_route, APIRoute)
    assert callable(route.endpoint)


def test_uvicorn_ticks_and_shuts_down_by_methods_that_can_be_extended() -> None:
    assert list(inspect.signature(uvicorn.Server.on_tick).parameters) == ["self", "counter"]
    assert list(inspect.signature(uvicorn.Server.shutdown).parameters) == ["self", "sockets"]
    assert inspect.iscoroutinefunction(uvicorn.Server.on_tick)
    server = uvicorn.Server(uvicorn.Config(FastAPI(openapi_url=None), http="h11"))
    assert server.server_state.connections == set()


def test_uvicorn_says_what_a_connection_waits_for() -> None:
    async def connect() -> H11Protocol:
        config = uvicorn.Config(FastAPI(openapi_url=None), http="h11", log_config=None)
        config.load()
        return H11Protocol(config=config, server_state=ServerState(), app_state={})

    assert asyncio.run(connect()).cycle is None
    assert "self.transport = transport" in inspect.getsource(H11Protocol.connection_made)
    assert "response_complete" in inspect.getsource(RequestResponseCycle.__init__)
