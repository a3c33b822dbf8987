"""What routes receive: the services, the caller, the position in a list."""

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
from jobtable.assist.costs import AssistReads
from jobtable.inbox.inbox import Inbox
from jobtable.jobs.engine import Jobs
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.objects import ObjectStore
from jobtable.store.queries import Paged
from jobtable.web.guard import Caller
from jobtable.workflows.asl.catalogue.activities import Activities
from jobtable.workflows.asl.catalogue.machine_verbs import MachineVerbs
from jobtable.workflows.asl.verbs import ExecutionVerbs
from jobtable.workflows.durable.verbs import DurableVerbs
from jobtable.workflows.function_records import FunctionRecords

T = TypeVar("T")

_MOST_EXAMINED = 10_000
"""A page of a filtered list ends after examining this many items, with a cursor to continue."""


def _from_request(read: Callable[[Request], T]) -> Any:
    """Return a dependency as a coroutine: FastAPI would run a plain function in a thread of its own."""

    async def get(request: Request) -> T:
        return read(request)

    return Depends(get)


def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


AllServices = Annotated[Services, _from_request(_services)]
CallerOf = Annotated[Caller, _from_request(lambda request: request.state.caller)]
CallerName = Annotated[str, _from_request(lambda request: request.state.caller.name)]
TheStore = Annotated[stores.Store, _from_request(lambda request: _services(request).store)]
TheObjects = Annotated[ObjectStore, _from_request(lambda request: _services(request).objects)]
TheJobs = Annotated[Jobs, _from_request(lambda request: _services(request).engine)]
TheQueries = Annotated[JobQueries, _from_request(lambda request: _services(request).jobs.queries)]
TheMachines = Annotated[MachineVerbs, _from_request(lambda request: _services(request).machines)]
TheActivities = Annotated[Activities, _from_request(lambda request: _services(request).activities)]
TheExecutions = Annotated[ExecutionVerbs, _from_request(lambda request: _services(request).executions)]
TheFunctions = Annotated[FunctionRecords, _from_request(lambda request: _services(request).functions)]
TheDurable = Annotated[DurableVerbs, _from_request(lambda request: _services(request).durable)]
TheAssist = Annotated[AssistReads, _from_request(lambda request: _services(request).assist)]
TheInbox = Annotated[Inbox, _from_request(lambda request: _services(request).inbox)]
TheTokens = Annotated[Tokens, _from_request(lambda request: request.app.state.tokens)]


def service(kind: type[T]) -> Any:
    """Return a dependency on a service of a system: `TheEvals = Annotated[Evals, service(Evals)]`."""
    return _from_request(lambda request: _services(request).get(kind))


class PageOf(BaseModel, Generic[T]):
    """A page of a list, and the cursor of the next page, or null after the last.

    With a filter, a page may be shorter than its limit, or empty, although its cursor leads to more.
    """

    items: list[T]
    cursor: str | None = Field(None, examples=["eyJQSyI6"])


@dataclass(frozen=True)
class Position:
    """Where a page starts, and its maximum length."""

    cursor: str | None
    limit: int

    def page(self, query: Paged[T], under: Callable[[], object] | None = None) -> PageOf[T]:
        """Return a page of a query, or raise CursorError if the cursor belongs to another query.

        If the page is empty, `under` reads what the list belongs to, and raises NotFoundError if it is missing.
        """
        found = query.page(self.cursor, size=self.limit, most_examined=_MOST_EXAMINED)
        if under is not None and not found.items:
            under()
        return PageOf.model_construct(items=found.items, cursor=found.cursor)


async def _position(
    cursor: Annotated[
        str | None, Query(max_length=12_000, pattern="^[A-Za-z0-9_-]+$", description="The cursor of the previous page.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of items.")] = 50,
) -> Position:
    return Position(cursor, limit)


Paging = Annotated[Position, Depends(_position)]


def path_id(example: str, *, alias: str | None = None) -> Any:
    """Return a path parameter for an id; `alias` is its name in the path if that is another one."""
    return Path(min_length=1, max_length=1000, examples=[example], alias=alias)


JobId = Annotated[str, path_id("3f6c1a2b-train")]


def _no_bare_number(value: Any) -> Any:
    """Refuse a bare number, which pydantic would read as seconds."""
    if isinstance(value, str) and value.lstrip("+-").replace(".", "", 1).isdigit():
        raise ValueError("use ISO 8601, as in 2025-11-01T12:00:00Z")
    return value


Instant = Annotated[datetime, BeforeValidator(_no_bare_number)]
Day = Annotated[date, BeforeValidator(_no_bare_number)]
