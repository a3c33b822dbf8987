"""Journeys: creation with stages and rules, and everything recorded about them."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import Body as JsonBody
from fastapi import Query
from pydantic import Field

from jobtable.errors import ValueRefusedError
from jobtable.systems.journeys.entities import (
    JobExecution,
    JobReport,
    Journey,
    LogEntry,
    SecondBrainRule,
    StageDefinition,
)
from jobtable.systems.journeys.journey_template import DEFAULT_TEMPLATE, JourneyTemplate
from jobtable.systems.journeys.parts import JourneyConfiguration, JourneySource, Priority
from jobtable.systems.journeys.service import CompleteJourney, Journeys
from jobtable.web.api.route_parts import Body, Id, NewestFirst, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import JobId, PageOf, Paging, TheStore, path_id, service

router = api_router("journeys")
creation = api_router("journeys", CreationRoute)

EXAMPLES: dict[str, Any] = {
    "create_journey": {
        "journey_id": "JRN-1",
        "name": "Product catalogue",
        "created_by": "data_team",
        "oda_component_type": "PRODUCTCATALOG",
        "source": {"schema_id": "schema-1", "schema_name": "Legacy products"},
        "parameters": {"source": "/data/catalogue.db", "batchRows": 200},
        "template": {"example_rules": True},
    }
}

TheJourneys = Annotated[Journeys, service(Journeys)]
JourneyId = Annotated[str, path_id("JRN-ABC123456789")]
StageId = Annotated[str, path_id("raw_analysis")]


class TemplateBody(Body):
    """The six default stages, each with a class that the server and its workers can import."""

    implementations: dict[str, Annotated[str, Field(pattern=r"^[\w.]+:[\w.]+$", max_length=500)]] = Field(
        {},
        max_length=100,
        description="Classes to use instead of the bundled example's: MODULE:CLASS by stage.",
        examples=[{"tmf_mapping": "jobtable.systems.journeys.example.tmf_mapping:TmfMapping"}],
    )
    skippable: list[str] = Field([], max_length=100, description="Stages that may be skipped.")
    example_rules: bool = Field(False, description="Whether to add the rules of the bundled example.")

    def template(self) -> JourneyTemplate:
        made = DEFAULT_TEMPLATE.allowing_skip(*self.skippable)
        for stage_id, implementation in self.implementations.items():
            made = made.replacing(stage_id, implementation)
        return made


class NewJourney(Body):
    """A journey to create: from a template, or with its own stages and rules; by default with the six stages."""

    journey_id: Id = Field(examples=["JRN-ABC123456789"])
    name: str = Field(examples=["Product Catalog Migration to TMF620"])
    description: str = ""
    priority: Priority = Priority.MEDIUM
    created_by: str = Field(examples=["data_team"])
    oda_component_type: str = Field(examples=["PRODUCTCATALOG"])
    source: JourneySource = Field(examples=[{"schema_id": "schema-001", "schema_name": "Legacy Product Database"}])
    configuration: JourneyConfiguration = JourneyConfiguration()
    parameters: dict[str, Any] | None = Field(
        None,
        description="Parameters of the stages; workers must be able to read the paths in them.",
        examples=[{"source": "/data/catalogue.db", "batchRows": 200}],
    )
    template: TemplateBody | None = Field(None, description="Instead of stages and rules.")
    stages: list[StageDefinition] | None = Field(None, max_length=100)
    rules: list[SecondBrainRule] = Field([], max_length=2000)


@creation.post("/journeys", status_code=201)
@allow(WRITE)
def create_journey(body: NewJourney, journeys: TheJourneys, store: TheStore) -> Journey:
    """Create a journey with its stages and rules, all or nothing."""
    now = store.clock.now()
    journey = Journey(**body.model_dump(exclude={"stages", "rules", "template"}), created_at=now, updated_at=now)
    if body.template is None:
        journeys.create_journey(journey, body.stages, body.rules)
    elif body.stages is not None or body.rules:
        raise ValueRefusedError("give either a template, or stages and rules")
    else:
        journeys.create_from_template(journey, body.template.template(), with_example_rules=body.template.example_rules)
    return journeys.get_journey(body.journey_id)


@router.get("/journeys/{journey_id}")
@allow(READ)
def get_journey(
    journey_id: JourneyId, journeys: TheJourneys, recent_executions: Annotated[int, Query(ge=0, le=200)] = 20
) -> CompleteJourney:
    """Return a journey with its stages, its rules and its latest executions."""
    return journeys.get_complete_journey(journey_id, recent_executions=recent_executions, consistent=True)


@router.get("/journeys/{journey_id}/rules")
@allow(READ)
def list_rules(
    journey_id: JourneyId,
    journeys: TheJourneys,
    stage_id: Annotated[str | None, Query(min_length=1, description="Only this stage.")] = None,
    priority: Annotated[Priority | None, Query(description="Only this priority; requires stage_id.")] = None,
) -> list[SecondBrainRule]:
    """List the rules of a journey or of one stage by priority: critical, high, medium, low."""
    if stage_id is None:
        if priority is not None:
            raise ValueRefusedError("`priority` requires `stage_id`")
        found = journeys.list_rules(journey_id)
    elif priority is None:
        found = journeys.list_stage_rules(journey_id, stage_id)
    else:
        found = list(journeys.list_rules_of_priority(journey_id, stage_id, priority))
    if not found:
        journeys.get_journey(journey_id)
    return found


@router.get("/journeys/{journey_id}/stages/{stage_id}/executions")
@allow(READ)
def list_stage_executions(
    journey_id: JourneyId, stage_id: StageId, journeys: TheJourneys, paging: Paging, newest_first: NewestFirst = False
) -> PageOf[JobExecution]:
    """List all executions of a stage, by number."""
    stage = journeys.get_stage(journey_id, stage_id)
    return paging.page(journeys.list_stage_executions(stage, newest_first=newest_first))


@router.get("/journey-executions/{job_id}/logs")
@allow(READ)
def list_job_logs(
    job_id: JobId,
    journeys: TheJourneys,
    paging: Paging,
    step: Annotated[str | None, Query(min_length=1, description="Only this step; requires journey_id.")] = None,
    journey_id: Annotated[str | None, Query(min_length=1, description="The journey of the execution.")] = None,
) -> PageOf[LogEntry]:
    """List the log entries of an execution, oldest first."""
    if step is None:
        return paging.page(journeys.list_job_logs(job_id), under=partial(journeys.get_execution, job_id))
    if journey_id is None:
        raise ValueRefusedError("`step` requires `journey_id`")
    entries = journeys.list_step_logs(journey_id, job_id, step)
    return paging.page(entries, under=partial(journeys.get_execution, job_id))


@router.get("/journey-executions/{job_id}/recent-logs")
@allow(READ)
def list_recent_job_logs(
    job_id: JobId, journeys: TheJourneys, limit: Annotated[int, Query(ge=1, le=500)] = 100
) -> list[LogEntry]:
    """List the latest log entries of an execution, newest first."""
    found = list(journeys.list_recent_job_logs(job_id, limit=limit))
    if not found:
        journeys.get_execution(job_id)
    return found


@creation.post("/journey-reports", status_code=201)
@allow(WRITE)
def add_report(report: JobReport, journeys: TheJourneys) -> JobReport:
    """Store the catalogue entry of a report."""
    journeys.add_report(report)
    return report


add_verbs(
    router,
    TheJourneys,
    {
        "journey_id": JourneyId,
        "stage_id": StageId,
        "job_id": JobId,
        "entries": Annotated[list[LogEntry], JsonBody(max_length=1000)],
        "newest_first": NewestFirst,
    },
    ("list_journeys", "GET /journeys", Journeys.list_journeys),
    ("list_stages", "GET /journeys/{journey_id}/stages", Journeys.list_stages),
    ("list_journey_executions", "GET /journeys/{journey_id}/executions", Journeys.list_executions),
    ("list_job_reports", "GET /journey-executions/{job_id}/reports", Journeys.list_job_reports),
    ("get_stage", "GET /journeys/{journey_id}/stages/{stage_id}", Journeys.get_stage),
    ("get_journey_execution", "GET /journey-executions/{job_id}", Journeys.get_execution),
    ("add_logs", "POST /journey-logs", Journeys.add_logs),
    under=[Journeys.get_journey, Journeys.get_execution],
)
