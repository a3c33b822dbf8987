"""The pages of journeys: the list, the board of one journey, and an execution of a stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response

from jobtable.errors import ObjectNotFoundError
from jobtable.store.changes import Change
from jobtable.systems.journeys.entities import Journey, journeys
from jobtable.systems.journeys.execution_records import ExecutionRecords
from jobtable.systems.journeys.running.step_reports import OWN_MEMBERS
from jobtable.systems.journeys.service import Journeys
from jobtable.web.events import LiveTopics, id_in
from jobtable.web.guard import READ, PageRoute, allow
from jobtable.web.injection import AllServices, JobId, path_id
from jobtable.web.pages.frame import render

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_PAGE = 30
_MOST_REPORTS = 20
_MOST_LINES = 300


@router.get("/journeys")
@allow(READ)
def show_journeys(request: Request, services: AllServices, cursor: str = "") -> Response:
    """Show all journeys, newest first."""
    page = services.get(Journeys).list_journeys(newest_first=True).page(cursor or None, size=_PAGE)
    return render(request, "journeys/journeys.html", title="Journeys", page=page, is_first=not cursor)


@router.get("/journeys/{journey_id}")
@allow(READ)
def show_journey(request: Request, journey_id: Annotated[str, path_id("JRN-1")], services: AllServices) -> Response:
    """Show one journey: the board of its stages, its rules and its executions."""
    whole = services.get(Journeys).get_complete_journey(journey_id, recent_executions=50, consistent=True)
    by_number = sorted(whole.recent_executions, key=lambda each: each.execution_number)
    return render(
        request,
        "journeys/journey.html",
        title=whole.journey.name,
        whole=whole,
        journey=whole.journey,
        stage_names={stage.stage_id: stage.name for stage in whole.stages},
        latest={execution.stage_id: execution for execution in by_number},
        recent=sorted(whole.recent_executions, key=lambda each: each.created_at, reverse=True),
    )


@router.get("/journeys/{journey_id}/executions/{job_id}")
@allow(READ)
def show_execution(
    request: Request, journey_id: Annotated[str, path_id("JRN-1")], job_id: JobId, services: AllServices
) -> Response:
    """Show one execution of a stage: its steps, its log and its reports."""
    execution = services.get(Journeys).get_execution(job_id)
    stage = services.get(Journeys).get_stage(execution.journey_id, execution.stage_id)
    records = list(services.get(Journeys).list_job_reports(job_id).take(_MOST_REPORTS))
    return render(
        request,
        "journeys/journey_execution.html",
        title=f"{stage.name} #{execution.execution_number}",
        journey=services.get(Journeys).get_journey(execution.journey_id),
        stage=stage,
        execution=execution,
        lines=list(services.get(Journeys).list_recent_job_logs(job_id, limit=_MOST_LINES))[::-1],
        reports=[(record, _sections(services, record)) for record in records],
    )


def _sections(services: AllServices, record: Any) -> dict[str, Any] | None:
    """Return the sections of a report without what its record says; None if its object is missing."""
    try:
        report = services.get(ExecutionRecords).read_report(record)
    except ObjectNotFoundError:
        return None
    return {name: part for name, part in report.items() if name not in OWN_MEMBERS and part not in (None, "", [], {})}


def _topics_of(change: Change) -> Iterator[str]:
    """Yield `journeys` for every change, and `journey:ID` for a journey and everything under it."""
    yield "journeys"
    yield f"journey:{id_in(change.new_item or change.old_item or {})}"


TOPICS = LiveTopics(
    (journeys,), _topics_of, ("journeys",), {"journey": lambda journey_id: Journey.key(journey_id=journey_id)}
)
