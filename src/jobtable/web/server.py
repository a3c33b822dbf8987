"""The server: create_app puts it together, serve runs it."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import uvicorn
from anyio import CapacityLimiter
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from uvicorn.protocols.http.h11_impl import H11Protocol

import jobtable
from jobtable.access.tokens import Tokens
from jobtable.app import Services
from jobtable.errors import DefinitionError, SettingsError
from jobtable.files import allow_open_files
from jobtable.settings import Settings
from jobtable.web import health, static_files
from jobtable.web.api import add_api
from jobtable.web.connections import MOST_FILES, HeldConnections
from jobtable.web.events import all_topics
from jobtable.web.guard import ANYONE, Guard, GuardedRoute, is_loopback, rule_of
from jobtable.web.headers import AnswerHeaders
from jobtable.web.idempotency import Answers
from jobtable.web.limits import BodyLimit, RateLimit, largest_files
from jobtable.web.live import LiveFeed
from jobtable.web.metrics import Measured, ServerMetrics
from jobtable.web.origins import OriginCheck
from jobtable.web.pages import add_pages, error_page
from jobtable.web.pages.overview import overview_event
from jobtable.web.problems import handle_errors
from jobtable.web.recovery import Recovery
from jobtable.web.slashes import EncodedSlashes
from jobtable.web.uploads import MOST_AT_ONCE

_DRAIN_SECONDS = 5
_LONGEST_HEAD = 256 * 1024
"""Keys in addresses may be long, and longer when they are encoded."""


def create_app(services: Services, settings: Settings) -> FastAPI:
    """The whole server over these services, as an ASGI app. The caller closes the services.

    A token is demanded where the settings ask for it, and always where others than this machine can reach it.
    """
    store = services.store
    services.prepare_all()
    tables = [table for topics in all_topics() for table in topics.tables]
    feed = LiveFeed(store, tables, {"overview": lambda: overview_event(services)})

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with feed.running():
            yield

    app = FastAPI(title="Jobtable", version=jobtable.__version__, openapi_url=None, lifespan=lifespan)
    demands_token = settings.require_token or not is_loopback(settings.host)
    rate = RateLimit(settings.requests_per_minute, store.clock)
    app.state.services = services
    app.state.settings = settings
    app.state.feed = feed
    app.state.tokens = Tokens(store, clock=store.clock)
    app.state.answers = Answers(store)
    app.state.guard = Guard(app.state.tokens, demands_token=demands_token, rate=rate)
    app.state.metrics = ServerMetrics()
    app.state.uploads = CapacityLimiter(MOST_AT_ONCE)
    app.state.recovery = Recovery(services.jobs)
    # Routes are taken as they are, here and below: include_router would analyse each again, which took half a second.
    for router in (health.router, static_files.router):
        app.router.routes.extend(router.routes)
    add_api(app)
    add_pages(app)
    handle_errors(app, error_page)
    # The last one that is added is the first that a request meets.
    files = largest_files(app, settings.most_upload_bytes)
    app.add_middleware(BodyLimit, most_bytes=settings.most_request_bytes, files=files)
    app.add_middleware(OriginCheck, listens_on=settings.host, names=settings.host_names)
    app.add_middleware(Measured, metrics=app.state.metrics)
    app.add_middleware(AnswerHeaders)
    app.add_middleware(EncodedSlashes)
    refuse_routes_without_rule(app)
    return app


def refuse_routes_without_rule(app: FastAPI) -> None:
    """Raise DefinitionError for a route without a rule, or that does not ask for it, however it came into the app."""
    for route in iter_route_contexts(app.routes):
        rule = rule_of(route.endpoint)
        if rule is None:
            raise DefinitionError(f"route {route.path} has no access rule; add @allow(...)")
        if rule is not ANYONE and not isinstance(route.original_route, GuardedRoute):
            raise DefinitionError(
                f"route {route.path} lets everybody in; create its router with route_class=GuardedRoute"
            )


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens, or SettingsError in one line: the port is taken, or the address is not this machine's."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family[0], socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # An answer is written in two parts; without this the second one waits 40 ms for the other side.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            listening.bind(family[4])
            listening.listen(1024)
        except OSError:
            listening.close()
            raise
    except (OSError, UnicodeError) as error:
        number = None if isinstance(error, socket.gaierror) else getattr(error, "errno", None)
        reason = os.strerror(number) if isinstance(number, int) else str(error)
        raise SettingsError(f"cannot listen on {host}:{port}: {reason}; choose another host or port") from error
    return listening


def address_of(listening: socket.socket) -> str:
    """The address of the pages on a listening socket."""
    host, port = listening.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - told apart, not bound to
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """Cuts connections that are held without use, and ends live streams first, which would keep it waiting."""

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app
        self._held = HeldConnections()

    async def on_tick(self, counter: int) -> bool:
        """What is done ten times a second."""
        if counter % 10 == 0:
            connections = cast("set[H11Protocol]", self.server_state.connections)  # server_on has chosen it
            self._held.cut(connections, self._app.state.services.store.clock.monotonic())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop."""
        self._app.state.feed.end()
        await super().shutdown(sockets)


def server_on(app: FastAPI) -> uvicorn.Server:
    """A server for the app: `run(sockets=[...])` serves until `should_exit` is set or a signal comes."""
    allow_open_files(MOST_FILES)
    config = uvicorn.Config(
        app,
        http="h11",
        log_level="warning",
        use_colors=False,  # left to itself, it asks stdout whether it is a terminal, also where that is closed
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
    )
    return _Server(app, config)


def serve(app: FastAPI, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C. A port that is taken is a SettingsError before anything starts."""
    listening = bind(host, port)
    with listening:
        server_on(app).run(sockets=[listening])
