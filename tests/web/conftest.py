"""A real server on a free port, in a thread, over a store in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, Error, sync_playwright
from tests.conftest import REQUIRE_ALL
from uvicorn.protocols.http.h11_impl import H11Protocol

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.clock import SystemClock
from jobtable.settings import Settings
from jobtable.web.application import create_app
from jobtable.web.listening import HeldConnections, address_of, bind, server_on

CHROMIUM = "/usr/bin/chromium"
PLENTY = 10_000_000
"""A rate that no test reaches."""


class Served:
    """A running server, its services, and clients for it."""

    def __init__(self, *, port: int = 0, **settings: Any) -> None:
        chosen = Settings(**{"store": "memory:", "requests_per_minute": PLENTY, **settings})
        self.services = Services.from_settings(chosen)
        self.app: FastAPI = create_app(self.services, chosen)
        self._socket = bind("127.0.0.1", port)
        self.url = address_of(self._socket)
        self._server = server_on(self.app)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        self._clients: list[httpx.Client] = []
        self.wait_until_up()

    def wait_until_up(self) -> None:
        """Return when the server answers."""
        assert self.client().get("/healthz").status_code == 200

    def client(self, role: Role | None = None, **headers: str) -> httpx.Client:
        """A client with a token of a role, or without one."""
        if role is not None:
            headers["Authorization"] = f"Bearer {self.token(role)}"
        client = httpx.Client(base_url=self.url, headers=headers, timeout=120)
        self._clients.append(client)
        return client

    def token(self, role: Role) -> str:
        """A new token."""
        text: str = self.app.state.tokens.create(role, name=role.value).text
        return text

    def connected(self) -> list[H11Protocol]:
        """The connections that are open."""
        return [each for each in list(self._server.server_state.connections) if isinstance(each, H11Protocol)]

    def waiting(self) -> list[H11Protocol]:
        """Those of them of which the server knows that it waits for the other side."""
        held: HeldConnections = self._server._held  # type: ignore[attr-defined]  # the server is one of our own
        return list(held._waiting)

    def stop(self) -> None:
        """End the server and close what it used."""
        for client in self._clients:
            client.close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
        self.services.close()


def clock_that_was_ahead() -> SystemClock:
    """The machine's clock, that was a day ahead for a while and was set right."""
    clock = SystemClock()
    clock._last_microsecond = time.time_ns() // 1000 + 86_400 * 10**6
    return clock


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Start a server with some settings; it ends with the test."""
    started: list[Served] = []

    def start(**settings: Any) -> Served:
        started.append(Served(**settings))
        return started[-1]

    yield start
    for served in started:
        served.stop()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Served]:
    """A server that demands tokens, shared by the tests of a module."""
    served = Served(require_token=True)
    yield served
    served.stop()


@pytest.fixture(scope="module")
def open_server() -> Iterator[Served]:
    """A server on loopback that demands no token, shared by the tests of a module."""
    served = Served()
    yield served
    served.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except Error as error:
            if REQUIRE_ALL:
                pytest.fail(f"Chromium is required (JOBTABLE_REQUIRE_ALL=1) but cannot run: {error}")
            pytest.skip("Chromium cannot run here: install Debian's package chromium")
        yield started
        started.close()
