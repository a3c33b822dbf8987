"""Listening and serving with uvicorn, and cutting connections that are held without use.

The only file that knows uvicorn's internals; tests/web/test_internals.py fails when they change.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection
from typing import cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from jobtable.errors import SettingsError
from jobtable.files import allow_open_files

LONGEST_HEAD_SECONDS = 60.0
"""Maximum time for the head of a request."""
LONGEST_PAUSE_SECONDS = 600.0
"""Maximum pause while a client reads a response: a person may look at the start of a long one for a while."""
MOST_CONNECTIONS = 2000
"""Beyond this, the connections that have waited longest are cut: room for all live views, and as many others."""
MOST_FILES = 2 * MOST_CONNECTIONS
"""A connection is an open file, and a request may open one more."""
_DRAIN_SECONDS = 5
_LONGEST_HEAD = 256 * 1024
"""Keys in addresses may be long, and longer when they are encoded."""

State = tuple[int, RequestResponseCycle | None]
"""The number of unread response bytes, and the last request."""


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket, or raise SettingsError if the port is taken or the address is not this machine's."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family[0], socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # A response is written in two parts; without this, the second one waits 40 ms for the other side.
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
    """Return the address of the pages on a listening socket."""
    host, port = listening.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound to
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_on(app: FastAPI) -> uvicorn.Server:
    """Return a server for the app: `run(sockets=[...])` serves until `should_exit` is set or a signal arrives."""
    allow_open_files(MOST_FILES)
    config = uvicorn.Config(
        app,
        http="h11",
        log_level="warning",
        use_colors=False,  # by default it asks whether stdout is a terminal, even if stdout is closed
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
    )
    return _Server(app, config)


def serve(app: FastAPI, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    with bind(host, port) as listening:
        server_on(app).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Cuts held connections, and ends live streams before it shuts down, which would otherwise wait for them."""

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app
        self._held = HeldConnections()

    async def on_tick(self, counter: int) -> bool:
        """Run ten times a second."""
        if counter % 10 == 0:
            connections = cast("set[H11Protocol]", self.server_state.connections)  # server_on chose h11
            self._held.cut(connections, self._app.state.services.store.clock.monotonic())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop."""
        self._app.state.feed.end()
        await super().shutdown(sockets)


class HeldConnections:
    """The connections that wait for the client, and since when. uvicorn limits only the pause between two requests."""

    def __init__(self) -> None:
        self._waiting: dict[H11Protocol, tuple[State, float]] = {}

    def cut(self, connections: Collection[H11Protocol], now: float) -> None:
        """Look at all connections, about once a second, and cut those that are held too long."""
        before, self._waiting = self._waiting, {}
        for connection in connections:
            state = _state_if_waiting(connection)
            if state is not None:
                known, since = before.get(connection, (None, now))
                self._waiting[connection] = (state, since if state == known else now)
        too_many = len(connections) - MOST_CONNECTIONS
        for connection, ((unread, _), since) in sorted(self._waiting.items(), key=lambda waiting: waiting[1][1]):
            if too_many > 0 or now - since >= (LONGEST_PAUSE_SECONDS if unread else LONGEST_HEAD_SECONDS):
                connection.transport.abort()
                too_many -= 1


def _state_if_waiting(connection: H11Protocol) -> State | None:
    """Return what stays the same while the client neither reads nor sends a head; None if it is the server's turn."""
    unread = connection.transport.get_write_buffer_size()
    cycle: RequestResponseCycle | None = connection.cycle
    return (unread, cycle) if unread or cycle is None or cycle.response_complete else None
