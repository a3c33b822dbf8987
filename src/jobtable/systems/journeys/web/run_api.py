"""Running journeys, their full logs and reports, and journeys as files."""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import Field
from starlette.background import BackgroundTask

from jobtable.errors import NotFoundError
from jobtable.objects.object_store import Readable, chunks
from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.archives.restore import Existing, Imported
from jobtable.systems.journeys.entities import JobReport, Journey, SecondBrainRule
from jobtable.systems.journeys.execution_records import ExecutionRecords
from jobtable.systems.journeys.parts import ReportType, RuleStatus
from jobtable.systems.journeys.rules import add_rule
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.web.api import JourneyId, StageId, TheJourneys
from jobtable.web.api.route_parts import Body, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import HEADER, CreationRoute
from jobtable.web.injection import CallerName, JobId, TheStore, path_id, service
from jobtable.web.limits import takes_file
from jobtable.web.uploads import binary_body, take

router = api_router("journeys as they run")
creation = api_router("journeys as they run", CreationRoute)

_EXECUTION = "/journeys/{journey_id}/stages/{stage_id}/executions/{job_id}"
_ZIP = "application/zip"


TheRunner = Annotated[JourneyRunner, service(JourneyRunner)]
TheRecords = Annotated[ExecutionRecords, service(ExecutionRecords)]
TheBackups = Annotated[JourneyBackups, service(JourneyBackups)]


class NewReport(Body):
    """A report of an execution to store."""

    report_type: ReportType
    title: str = Field(min_length=1, max_length=500, examples=["Field coverage"])
    summary: str = Field("", max_length=10_000)
    content: dict[str, Any] = Field(examples=[{"fields": 450, "mapped": 431}])


class RuleChange(Body):
    """The new status of a rule."""

    status: RuleStatus


@router.post("/journeys/{journey_id}/stages/{stage_id}/skip")
@allow(WRITE)
def skip_stage(journey_id: JourneyId, stage_id: StageId, runner: TheRunner, journeys: TheJourneys) -> Journey:
    """Skip a stage that allows it and has not started."""
    runner.skip(journey_id, stage_id)
    return journeys.get_journey(journey_id)


@creation.post("/journey-rules", status_code=201)
@allow(WRITE)
def create_rule(rule: SecondBrainRule, store: TheStore) -> SecondBrainRule:
    """Add a rule to a journey."""
    add_rule(store, rule)
    return rule


@router.patch("/journeys/{journey_id}/stages/{stage_id}/rules/{rule_id}")
@allow(WRITE)
def change_rule(
    journey_id: JourneyId,
    stage_id: StageId,
    rule_id: Annotated[str, path_id("rule-1")],
    body: RuleChange,
    journeys: TheJourneys,
) -> SecondBrainRule:
    """Switch a rule on or off."""
    found = next((rule for rule in journeys.list_stage_rules(journey_id, stage_id) if rule.rule_id == rule_id), None)
    if found is None:
        raise NotFoundError(f"stage {stage_id} of journey {journey_id} has no rule {rule_id}")
    return journeys.change_rule_status(found, body.status)


@router.get(_EXECUTION + "/log-lines")
@allow(READ)
def list_log_lines(
    journey_id: JourneyId,
    stage_id: StageId,
    job_id: JobId,
    records: TheRecords,
    step: Annotated[str | None, Query(min_length=1, description="Only this step.")] = None,
    first: Annotated[int, Query(ge=0, description="Number of the first line to return, from 0.")] = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> list[dict[str, Any]]:
    """List lines of the full log of an execution, oldest first; only finished steps have one."""
    lines = records.get_job_logs(journey_id, stage_id, job_id, step)
    return list(islice(lines, first, first + limit))


@router.get(_EXECUTION + "/full-reports")
@allow(READ)
def list_full_reports(
    journey_id: JourneyId,
    stage_id: StageId,
    job_id: JobId,
    records: TheRecords,
    report_type: ReportType | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> list[dict[str, Any]]:
    """List the full reports of an execution, by type and age."""
    return list(records.get_job_reports(journey_id, job_id, stage_id, report_type, limit=limit))


@creation.post("/journeys/{journey_id}/executions/{job_id}/reports", status_code=201)
@allow(WRITE)
def create_report(
    journey_id: JourneyId, job_id: JobId, body: NewReport, records: TheRecords, request: Request
) -> JobReport:
    """Store a report of an execution."""
    return records.create_job_report(
        journey_id,
        job_id,
        body.report_type,
        body.title,
        body.content,
        summary=body.summary,
        call_id=request.headers.get(HEADER),
    )


@router.get(
    "/journeys/{journey_id}/export",
    response_class=FileResponse,
    responses={200: {"content": {_ZIP: {"schema": {"type": "string", "format": "binary"}}}}},
)
@allow(READ)
def export_journey(journey_id: JourneyId, backups: TheBackups) -> Response:
    """Return a journey with all items and objects as one file; refused if the journey changes meanwhile."""
    folder = tempfile.TemporaryDirectory(prefix="jobtable-export-")
    try:
        path = Path(folder.name) / "journey.zip"
        backups.get_journey_complete(journey_id, path)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(path, media_type=_ZIP, filename=f"{journey_id}.zip", background=BackgroundTask(folder.cleanup))


@router.post("/journey-imports", openapi_extra=binary_body(_ZIP))
@allow(WRITE)
@takes_file(whole=False)
async def import_journey(
    request: Request,
    backups: TheBackups,
    existing: Annotated[Existing, Query(description="What to do if the journey already exists.")] = Existing.REFUSE,
) -> Imported:
    """Check an exported file, then import it. The same request again finishes an interrupted import."""

    def import_from(body: Readable) -> Imported:
        with tempfile.TemporaryDirectory(prefix="jobtable-import-") as folder:
            path = Path(folder) / "the file"  # errors call it by this name
            with path.open("wb") as kept:
                kept.writelines(chunks(body))
            return backups.import_journey_complete(path, existing)

    return await take(request, import_from)


add_verbs(
    router,
    TheRunner,
    {"journey_id": JourneyId, "by": CallerName},
    ("run_journey", "POST /journeys/{journey_id}/run", JourneyRunner.run),
    ("pause_journey", "POST /journeys/{journey_id}/pause", JourneyRunner.pause),
    ("resume_journey", "POST /journeys/{journey_id}/resume", JourneyRunner.resume),
    ("cancel_journey", "POST /journeys/{journey_id}/cancel", JourneyRunner.cancel),
    ("retry_journey", "POST /journeys/{journey_id}/retry", JourneyRunner.retry),
)
add_verbs(
    router,
    TheBackups,
    {
        "journey_id": JourneyId,
        "stop": Annotated[bool, Query(description="Cancel a running journey first, and wait for its worker.")],
        "by": CallerName,
    },
    ("delete_journey", "DELETE /journeys/{journey_id}", JourneyBackups.delete_journey),
)
