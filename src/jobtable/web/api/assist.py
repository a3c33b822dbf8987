"""Models that were asked: calls with their prompts and answers, and what they cost."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel

from jobtable.assist.costs import AssistReads, CostField, CostSum
from jobtable.assist.entities import AssistCall, AssistTotal
from jobtable.assist.provider_states import ProviderState
from jobtable.web.api.route_parts import NewestFirst, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, allow
from jobtable.web.injection import Day, JobId, PageOf, Paging, TheAssist, TheQueries, path_id

router = api_router("assist")

CallId = Annotated[str, path_id("chat-9f86d081884c7d659a2feaa0c55ad015")]


class CallContent(BaseModel):
    """A call with its content."""

    call: AssistCall
    request: dict[str, Any] | None
    """What was sent; null if the object store no longer has it."""
    answer: Any
    """The text, or the vectors."""
    next_call_id: str | None
    """The call that sent a refused answer back."""


class JobUsage(BaseModel):
    """What the calls of a job, and those of its tree, have used; null if there were none."""

    job: AssistTotal | None
    tree: AssistTotal | None


class Costs(BaseModel):
    """Sums over days, the first and the last included."""

    first: Day
    last: Day
    sums: list[CostSum]


@router.get("/jobs/{job_id}/assist/calls")
@allow(READ)
def list_assist_calls(
    job_id: JobId, assist: TheAssist, queries: TheQueries, paging: Paging, newest_first: NewestFirst = False
) -> PageOf[AssistCall]:
    """List the calls of a job, without their prompts."""
    calls = assist.list_calls(job_id, newest_first=newest_first)
    return paging.page(calls, under=partial(queries.get_job, job_id))


@router.get("/jobs/{job_id}/assist/usage")
@allow(READ)
def get_assist_usage(job_id: JobId, assist: TheAssist, queries: TheQueries) -> JobUsage:
    """Return what the calls of a job, and those of its tree, have used."""
    found = JobUsage(job=assist.find_total(job_id), tree=assist.find_total(job_id, "tree"))
    if found.job is found.tree is None:
        queries.get_job(job_id)
    return found


@router.get("/assist/calls/{job_id}/{call_id}")
@allow(READ)
def get_assist_call(job_id: JobId, call_id: CallId, assist: TheAssist) -> CallContent:
    """Return a call with its whole request and answer."""
    return CallContent(**vars(assist.read_call(job_id, call_id)))


@router.get("/assist/costs")
@allow(READ)
def get_assist_costs(
    assist: TheAssist,
    first: Annotated[Day | None, Query(alias="from", description="The first day, by default a month ago.")] = None,
    last: Annotated[Day | None, Query(alias="to", description="The last day, by default today.")] = None,
    by: Annotated[list[CostField], Query(max_length=5, description="What to sum by; without it, all together.")] = [],  # noqa: B006 - FastAPI copies it
) -> Costs:
    """Return what models cost, from the costs that stay when jobs are deleted. A span has at most 366 days."""
    start, end = assist.span(first, last)
    return Costs(first=start, last=end, sums=assist.sum_costs(list(dict.fromkeys(by)), first=start, last=end))


@router.get("/assist/providers")
@allow(READ)
def list_assist_providers(assist: TheAssist) -> list[ProviderState]:
    """Return the providers that the settings of the server name, without keys, and why one cannot be used there."""
    return assist.list_providers()


add_verbs(
    router,
    TheAssist,
    {"date": Annotated[Day, Path(examples=["2025-11-01"])], "newest_first": NewestFirst},
    ("list_assist_calls_of_day", "GET /assist/days/{date}/calls", AssistReads.list_calls_of_day),
)
