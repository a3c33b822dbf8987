"""What routes are handed: the services, the caller, the position in a list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, BeforeValidator, Field

from jobtable import store as stores
from jobtable.access.tokens import Tokens
from jobtable.app import Services
from jobtable.jobs.engine import Jobs
from jobtable.jobs.read.queries import JobQueries
from jobtable.objects import ObjectStore
from jobtable.web.guard import Caller

T = TypeVar("T")

_MOST_EXAMINED = 10_000
"""A page of a list with a filter ends after so many items, with a cursor to look further."""


# All of them are coroutines: FastAPI would run a plain function in a thread of its own, for nothing.


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


AllServices = Annotated[Services, Depends(_services)]


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


async def _store(services: AllServices) -> stores.Store:
    return services.store


async def _objects(services: AllServices) -> ObjectStore:
    return services.objects


async def _jobs(services: AllServices) -> Jobs:
    return services.engine


async def _queries(services: AllServices) -> JobQueries:
    return services.jobs.queries


async def _tokens(request: Request) -> Tokens:
    tokens: Tokens = request.app.state.tokens
    return tokens


CallerOf = Annotated[Caller, Depends(_caller)]
TheStore = Annotated[stores.Store, Depends(_store)]
TheObjects = Annotated[ObjectStore, Depends(_objects)]
TheJobs = Annotated[Jobs, Depends(_jobs)]
TheQueries = Annotated[JobQueries, Depends(_queries)]
TheTokens = Annotated[Tokens, Depends(_tokens)]


def service(kind: type[T]) -> Any:
    """A dependency on a service of a system: `TheEvals = Annotated[Evals, service(Evals)]`."""

    async def get(services: AllServices) -> T:
        return services.get(kind)

    return Depends(get)


class PageOf(BaseModel, Generic[T]):
    """A part of a list, and the cursor that gives the next part; null behind the last one.

    With a filter it may be shorter than asked for, or empty, although its cursor leads on.
    """

    items: list[T]
    cursor: str | None = Field(None, examples=["eyJQSyI6"])


@dataclass(frozen=True)
class Position:
    """Where in a list a page begins, and how long it is."""

    cursor: str | None
    limit: int

    def page(self, query: stores.Query[T], under: Callable[[], object] | None = None) -> PageOf[T]:
        """The page of a query; CursorError where the cursor is of another one.

        `under` gets what the list belongs to, and raises where there is none. Only an empty list asks for it.
        """
        found = query.page(self.cursor, size=self.limit, most_examined=_MOST_EXAMINED)
        if under is not None and not found.items:
            under()
        return PageOf.model_construct(items=found.items, cursor=found.cursor)


async def _position(
    cursor: Annotated[
        str | None,
        Query(max_length=12_000, pattern="^[A-Za-z0-9_-]+$", description="From the page before, to go on behind it."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="The most items of the page.")] = 50,
) -> Position:
    return Position(cursor, limit)


Paging = Annotated[Position, Depends(_position)]


def path_id(example: str) -> Any:
    """A path parameter that is an id."""
    return Path(min_length=1, max_length=1000, examples=[example])


JobId = Annotated[str, path_id("3f6c1a2b-train")]


def _no_bare_number(value: Any) -> Any:
    """A time is written as ISO 8601 has it; a number of seconds would be taken for one otherwise."""
    if isinstance(value, str) and value.lstrip("+-").replace(".", "", 1).isdigit():
        raise ValueError("write it as ISO 8601 has it")
    return value


Instant = Annotated[datetime, BeforeValidator(_no_bare_number)]
Day = Annotated[date, BeforeValidator(_no_bare_number)]
