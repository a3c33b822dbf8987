"""Access rules: every route names one, and checks it before anything else."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute

from jobtable.access.entities import Role
from jobtable.access.tokens import Tokens
from jobtable.errors import DefinitionError, ErrorReason
from jobtable.web.fastapi_internals import body_type, query_parameters
from jobtable.web.limits import RateLimit
from jobtable.web.problems import Refusal
from jobtable.web.strictness import check_body, check_query, with_slashes

F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[Request], Coroutine[Any, Any, Response]]

COOKIE = "jobtable_token"
_RULE = "__jobtable_rule__"


@dataclass(frozen=True)
class AccessRule:
    """The roles that may use a route; if there are none, anyone may."""

    name: str
    roles: frozenset[Role]


ANYONE = AccessRule("anyone", frozenset())
READ = AccessRule("read", frozenset({Role.READ, Role.FULL}))
WRITE = AccessRule("write", frozenset({Role.FULL}))
WORK = AccessRule("work", frozenset({Role.WORKER, Role.FULL}))
KNOWN = AccessRule("known", frozenset(Role))


def allow(rule: AccessRule) -> Callable[[F], F]:
    """Set the access rule of the route that is declared with this function."""

    def mark(function: F) -> F:
        setattr(function, _RULE, rule)
        return function

    return mark


def rule_of(endpoint: object) -> AccessRule | None:
    """Return the access rule of a route's function, or None."""
    return getattr(endpoint, _RULE, None)


@dataclass(frozen=True)
class Caller:
    """The maker of a request."""

    name: str
    role: Role
    token_id: str | None = None


class GuardedRoute(APIRoute):
    """A route that needs an access rule, and checks it before it reads the request."""

    is_strict = True
    """Whether unknown query parameters are refused, and repeated ones that are not lists.

    A misspelled limit would otherwise return the whole list, and a second status only a part of what was asked for.
    """

    def get_route_handler(self) -> Handler:
        """Return the handler, which runs only for callers that the rule admits."""
        handle = self.behind_guard(super().get_route_handler())
        rule = rule_of(self.endpoint)
        if rule is None:
            raise DefinitionError(f"route {self.path} has no access rule; add @allow(...)")
        # Both take a while to make, so they are made for the first request.
        parameters, body = cache(partial(query_parameters, self)), cache(partial(body_type, self))

        async def guarded(request: Request) -> Response:
            guard: Guard = request.app.state.guard
            request.state.caller = await guard.admit(request, rule)
            request.scope["path_params"] = with_slashes(request.path_params)
            if self.is_strict and request.query_params:
                check_query(request.query_params, parameters())
            if (kind := body()) is not None:
                await check_body(request, kind)
            return await handle(request)

        return guarded

    def behind_guard(self, handle: Handler) -> Handler:
        """Return the handler for admitted requests."""
        return handle


class PageRoute(GuardedRoute):
    """A route for a page, or for anything else outside the API; it answers HEAD as well as GET."""

    is_strict = False  # sites that link to pages add parameters of their own

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        if self.methods and "GET" in self.methods:
            self.methods.add("HEAD")


class Guard:
    """Identifies callers, and refuses those whom a rule does not allow."""

    def __init__(self, tokens: Tokens, *, demands_token: bool, rate: RateLimit) -> None:
        self._tokens = tokens
        self._rate = rate
        self.demands_token = demands_token

    async def admit(self, request: Request, rule: AccessRule) -> Caller | None:
        """Return the caller, or raise Refusal with 401, 403 or 429; None for a route that is open to anyone."""
        if rule is ANYONE:
            return None
        caller = await self.find_caller(request)
        if caller is not None and caller.token_id is not None:
            self._rate.take(f"token {caller.token_id}")
        else:
            self.count_address(request)
        if caller is None:
            raise Refusal(
                401,
                "this needs a valid token",
                {"WWW-Authenticate": "Bearer"},
                hint="send it as `Authorization: Bearer TOKEN`, or log in at /login",
                reason=ErrorReason.UNAUTHENTICATED,
            )
        if caller.role not in rule.roles:
            raise Refusal(403, f"role {caller.role} may not do this; it needs {' or '.join(sorted(rule.roles))}")
        return caller

    async def still_admits(self, request: Request, rule: AccessRule) -> bool:
        """Return whether the rule still admits the caller of a stream. It does not count as a request."""
        caller = await self.find_caller(request)
        return caller is not None and caller.role in rule.roles

    def count_address(self, request: Request) -> None:
        """Count a request without a token against its address."""
        self._rate.take(f"address {request.client.host if request.client else 'unknown'}")

    async def find_caller(self, request: Request) -> Caller | None:
        """Return the caller of a request, or None if it needs a token and has no valid one."""
        text, local = _bearer(request), None
        if text is None:  # a request with an Authorization header is judged by it alone
            local = None if self.demands_token else Caller("local", Role.FULL)
            text = request.cookies.get(COOKIE)
        record = None if text is None else await run_in_threadpool(self._tokens.find_valid, text)
        if record is None:
            return local
        return Caller(record.name or record.token_id, record.role, record.token_id)


def _bearer(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
