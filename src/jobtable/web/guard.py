"""Who may use a route: every route names its rule, and nobody gets past it."""

from __future__ import annotations

import ipaddress
import json
import math
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter
from starlette.datastructures import QueryParams

from jobtable.access.entities import Role
from jobtable.access.tokens import Tokens
from jobtable.errors import DefinitionError, ErrorReason
from jobtable.web.limits import RateLimit
from jobtable.web.problems import Refused
from jobtable.web.slashes import with_slashes
from jobtable.web.strictness import is_deeper, mistyped

F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[Request], Coroutine[Any, Any, Response]]

COOKIE = "jobtable_token"
_RULE = "__jobtable_rule__"
_MOST_LEVELS = 100
"""More than an item may have; what is nested much deeper could not be written into an answer."""


@dataclass(frozen=True)
class Rule:
    """Which roles may use a route; none means that everybody may."""

    name: str
    roles: frozenset[Role]


ANYONE = Rule("anyone", frozenset())
READ = Rule("read", frozenset({Role.READ, Role.FULL}))
WRITE = Rule("write", frozenset({Role.FULL}))
WORK = Rule("work", frozenset({Role.WORKER, Role.FULL}))
KNOWN = Rule("known", frozenset(Role))


def allow(rule: Rule) -> Callable[[F], F]:
    """Say who may use the route that is declared with this function."""

    def mark(function: F) -> F:
        setattr(function, _RULE, rule)
        return function

    return mark


def rule_of(endpoint: object) -> Rule | None:
    """The rule of a route's function."""
    return getattr(endpoint, _RULE, None)


@dataclass(frozen=True)
class Caller:
    """Who makes a request."""

    name: str
    role: Role
    token_id: str | None = None


class GuardedRoute(APIRoute):
    """A route that cannot be declared without a rule, and that asks for it before it reads the request."""

    is_strict = True
    """Whether a parameter of the query that it does not have is refused, and a second value of one that has only one.
    A list would otherwise be whole instead of cut where somebody has mistaken the name of the limit, and hold some of
    what was asked for where two statuses are given."""

    def get_route_handler(self) -> Handler:
        """The handler behind its guard."""
        handle = self.behind_guard(super().get_route_handler())
        rule = rule_of(self.endpoint)
        if rule is None:
            raise DefinitionError(f"the route {self.path} says not who may use it: mark its function with @allow(...)")

        body_schema, parameters = cache(self._body_schema), cache(self._parameters)

        async def guarded(request: Request) -> Response:
            guard: Guard = request.app.state.guard
            request.state.caller = await guard.admit(request, rule)
            request.scope["path_params"] = with_slashes(request.path_params)
            if self.is_strict and request.query_params:
                _refuse_wrong_query(request.query_params, parameters())
            if self.body_field is not None:
                await _refuse_mistyped(request, body_schema())
            return await handle(request)

        return guarded

    def _body_schema(self) -> dict[str, Any]:
        """What a body looks like; made when the first one comes, because it takes a while."""
        if self.body_field is None:
            return {}
        return TypeAdapter[Any](self.body_field.field_info.rebuild_annotation()).json_schema()

    def _parameters(self) -> dict[str, bool]:
        """The names of what a query may have, and of each whether it may have it several times."""
        return dict(_query_parameters(self.dependant))

    def behind_guard(self, handle: Handler) -> Handler:
        """What a request that was admitted goes through."""
        return handle


class PageRoute(GuardedRoute):
    """A page, or what else is read without the API: who asks only for its head, to see that it is there, gets that."""

    is_strict = False  # links to pages get parameters from those who pass them on

    def __init__(self, path: str, endpoint: Callable[..., Any], **told: Any) -> None:
        super().__init__(path, endpoint, **told)
        if self.methods and "GET" in self.methods:
            self.methods.add("HEAD")


class Guard:
    """Finds out who a caller is, and refuses those whom a rule does not allow."""

    def __init__(self, tokens: Tokens, *, demands_token: bool, rate: RateLimit) -> None:
        self._tokens = tokens
        self._rate = rate
        self.demands_token = demands_token

    async def admit(self, request: Request, rule: Rule) -> Caller | None:
        """The caller, or Refused with 401, 403 or 429. What is open to anyone is not asked about."""
        if rule is ANYONE:
            return None
        caller = await self.find_caller(request)
        if caller is not None and caller.token_id is not None:
            self._rate.take(f"token {caller.token_id}")
        else:
            self.count_address(request)
        if caller is None:
            raise Refused(
                401,
                "this needs a valid token",
                {"WWW-Authenticate": "Bearer"},
                hint="send it as `Authorization: Bearer TOKEN`, or log in at /login",
                reason=ErrorReason.UNAUTHENTICATED,
            )
        if caller.role not in rule.roles:
            allowed = " or ".join(sorted(rule.roles))
            raise Refused(403, f"the role {caller.role} does not allow this; it needs {allowed}")
        return caller

    async def still_admits(self, request: Request, rule: Rule) -> bool:
        """Whether somebody who was admitted would be now, for answers that go on; it counts as no request."""
        caller = await self.find_caller(request)
        return caller is not None and caller.role in rule.roles

    def count_address(self, request: Request) -> None:
        """Count a request of somebody who is only known by an address."""
        self._rate.take(f"address {request.client.host if request.client else 'unknown'}")

    async def find_caller(self, request: Request) -> Caller | None:
        """Who makes a request, whatever that allows; None for those whom nobody knows."""
        local = None if self.demands_token else Caller("local", Role.FULL)
        text = _bearer(request)
        if text is None:
            text = request.cookies.get(COOKIE)
            if text is None:
                return local
        else:
            local = None  # whoever shows a token is judged by it
        record = await run_in_threadpool(self._tokens.find_valid, text)
        if record is None:
            return local
        return Caller(record.name or record.token_id, record.role, record.token_id)


def _query_parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    for field in dependant.query_params:
        kind = field.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):  # each of its fields is a parameter
            yield from ((told.alias or name, _is_list(told.annotation)) for name, told in kind.model_fields.items())
        else:
            yield field.alias, _is_list(kind)
    for inner in dependant.dependencies:
        yield from _query_parameters(inner)


def _is_list(kind: Any) -> bool:
    return any(get_origin(each) is list for each in (kind, *get_args(kind)))


def _refuse_wrong_query(given: QueryParams, known: dict[str, bool]) -> None:
    unknown = sorted(set(given) - known.keys())
    if unknown:
        names = ", ".join(repr(name[:40]) for name in unknown[:5])
        takes = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
        raise Refused(422, f"the query has {names}, which this does not know: {takes}")
    if len(given.multi_items()) == len(given):
        return
    for name, takes_several in known.items():
        if not takes_several and (count := len(given.getlist(name))) > 1:
            raise Refused(422, f"the query has {name!r} {count} times: give it once")


async def _refuse_mistyped(request: Request, schema: dict[str, Any]) -> None:
    try:
        body = json.loads(await request.body() or b"null", parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return  # the route itself says what is wrong with it
    if is_deeper(body, _MOST_LEVELS):
        raise Refused(422, f"the request is nested deeper than {_MOST_LEVELS} levels")
    found = None if body is None else mistyped(body, schema, schema.get("$defs", {}))
    if found is not None:
        raise Refused(422, f"{found} has a type that is not allowed there")


def _finite(text: str) -> float:
    """A number of a body. Python would read NaN, Infinity and 1e400 too, which could only be stored as null."""
    value = float(text)
    if not math.isfinite(value):
        raise Refused(422, f"{text[:40]} is no finite number")
    return value


def _bearer(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
