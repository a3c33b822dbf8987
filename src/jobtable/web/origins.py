"""Where a request may come from: names that are the server's own, and pages that are."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from jobtable.web.guard import COOKIE
from jobtable.web.problems import Problem, problem_response

_SAFE = {"GET", "HEAD", "OPTIONS"}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class OriginCheck:
    """Refuses requests under a name that is not the server's, and writing ones that a foreign page has made.

    A name that somebody else controls may be pointed at this machine, so that a page of theirs counts as ours to
    the browser. Addresses cannot be pointed anywhere: they are taken where the server listens on all of its own.
    """

    def __init__(self, app: ASGIApp, listens_on: str, names: Sequence[str]) -> None:
        self._app = app
        bound = listens_on.strip("[]").lower()
        self._takes_addresses = bound in {"0.0.0.0", "::"}  # noqa: S104 - asked about, not bound to
        machine = {socket.gethostname().lower(), socket.getfqdn().lower()} if self._takes_addresses else set()
        self._names = {bound, *(name.lower() for name in names), *_LOOPBACK, *machine}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(scope["method"], Headers(scope=scope)) if scope["type"] == "http" else None
        if problem is None or scope.get("path") == "/healthz":
            await self._app(scope, receive, send)
        else:
            response = problem_response(Problem(title="Forbidden", status=403, detail=problem))
            await response(scope, receive, send)

    def _problem(self, method: str, headers: Headers) -> str | None:
        host = headers.get("host", "")
        name = _name_of(f"//{host}")
        if not self._is_own(name):
            return f"this server is not called {name!r}; name it in the setting host_names if it is"
        if method in _SAFE:
            return None
        origin = headers.get("origin")
        if origin is None:
            # A browser that sends the cookie along always says for which page.
            return (
                "a request with the login cookie must tell its origin" if COOKIE in headers.get("cookie", "") else None
            )
        if origin.partition("://")[2].lower() != host.lower():
            return f"the page {origin[:200]} may not write here"
        return None

    def _is_own(self, name: str) -> bool:
        if name in self._names:
            return True
        if not self._takes_addresses:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _name_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
