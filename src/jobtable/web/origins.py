"""Check the host name and the origin of requests."""

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
    """Middleware that refuses requests under a foreign host name, and writes from other sites' pages.

    An attacker can point a name of theirs at this machine, and then a browser treats their page as the server's own.
    IP addresses cannot be redirected, so they are accepted if the server listens on all addresses.
    """

    def __init__(self, app: ASGIApp, listens_on: str, names: Sequence[str]) -> None:
        self._app = app
        bound = listens_on.strip("[]").lower()
        self._takes_addresses = bound in {"0.0.0.0", "::"}  # noqa: S104 - compared, not bound to
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
            return f"unknown host name {name!r}; if it is this server's, add it to the setting host_names"
        if method in _SAFE:
            return None
        origin = headers.get("origin")
        if origin is None:
            # A browser that sends the cookie always sends the origin of the page too.
            return (
                "a request with the login cookie needs an Origin header"
                if COOKIE in headers.get("cookie", "")
                else None
            )
        if origin.partition("://")[2].lower() != host.lower():
            return f"pages of {origin[:200]} may not send this request"
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
