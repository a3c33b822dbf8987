"""The table of journeys and its six entities."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from jobtable.jobs.stored.field_types import Count
from jobtable.model import Attr, Beside, Entity, Index, Json, Key, OrNull, Stored, Table, Timestamp, camel_case, default
from jobtable.systems.journeys.parts import (
    Aggregates,
    Buckets,
    Creation,
    ExecutionConfiguration,
    JobExecutionStatus,
    JourneyConfiguration,
    JourneySource,
    JourneyStatus,
    LogCounts,
    LogEntryLevel,
    Percent,
    Priority,
    ReportMetrics,
    ReportType,
    RuleMetadata,
    RuleScope,
    RuleStatus,
    RuleType,
    StageStatus,
    StepDefinition,
    StepRun,
)

journeys = Table(
    "TransformationSystem",
    pk="PK",
    sk="SK",
    type_attribute="EntityType",
    indexes=[Index("GSI1", "GSI1PK", "GSI1SK")],
    stream=True,
    recovery=True,
)


class Journey(Entity, table=journeys, type="Journey", envelope="Data", alias=camel_case):
    """A transformation journey: its purpose, its progress, and totals over what belongs to it."""

    key = Key("JOURNEY#{journey_id}", "METADATA")
    by_creation = Key("JOURNEYS", "{created_at}", index="GSI1")

    journey_id: Stored[str]
    name: str
    description: str = ""
    status: Attr[JourneyStatus] = default(JourneyStatus.PENDING)
    priority: Attr[Priority] = default(Priority.MEDIUM)
    created_by: str
    oda_component_type: str
    source: JourneySource
    configuration: JourneyConfiguration = JourneyConfiguration()
    parameters: dict[str, Json] | None = None
    current_stage_index: Attr[Count] = default(0)
    current_stage_id: Attr[str | None] = default(None)
    overall_progress: Attr[Percent] = default(0)
    current_jobs: Attr[dict[str, str]] = default({})
    aggregates: Attr[Aggregates] = default(Aggregates())
    execution_counts: Attr[dict[str, int] | None] = default(None)
    creation: Attr[Creation | None] = default(None)
    created_at: Annotated[Timestamp, Beside("CreatedAt")]
    updated_at: Attr[Annotated[Timestamp, Beside("UpdatedAt")]]


class StageDefinition(Entity, table=journeys, type="StageDefinition", envelope="Data", alias=camel_case):
    """A stage of a journey with its steps; stages run by their order."""

    key = Key("JOURNEY#{journey_id}", "STAGE#{order:02d}#{stage_id}")
    by_order = Key("JOURNEY#{journey_id}#STAGES", "{order:02d}", index="GSI1")

    journey_id: str
    stage_id: Stored[str]
    name: str
    description: str = ""
    order: Stored[Annotated[int, Field(ge=0, le=99)]]
    can_skip: bool = False
    estimated_duration: str
    status: Attr[StageStatus] = default(StageStatus.PENDING)
    second_brain_enabled: bool = True
    implementation: str | None = None
    rule_types: list[RuleType] = []
    steps: list[StepDefinition] = []
    created_at: Annotated[Timestamp, Beside("CreatedAt")]
    updated_at: Attr[Annotated[Timestamp, Beside("UpdatedAt")]]


class SecondBrainRule(Entity, table=journeys, type="SecondBrainRule", envelope="Data", alias=camel_case):
    """A rule that guides mapping and validation in a stage."""

    key = Key("JOURNEY#{journey_id}", "RULE#{stage_id}#{index:03d}#{rule_id}")
    by_priority = Key("JOURNEY#{journey_id}#RULES", "{stage_id}#{priority}#{index:03d}", index="GSI1")

    rule_id: Stored[str]
    journey_id: Stored[str]
    stage_id: Stored[str]
    index: Annotated[int, Field(ge=0, le=999)]
    title: str
    description: str = ""
    type: RuleType
    priority: Attr[Priority] = default(Priority.MEDIUM)
    scope: RuleScope = RuleScope.STAGE
    status: Attr[RuleStatus] = default(RuleStatus.ACTIVE)
    context: str = ""
    content: str
    metadata: RuleMetadata
    created_at: Annotated[Timestamp, Beside("CreatedAt")]
    updated_at: Attr[Annotated[Timestamp, Beside("UpdatedAt")]]


class JobExecution(Entity, table=journeys, type="JobExecution", envelope="Data", alias=camel_case):
    """One execution of a stage; a retry is a new execution with the next number."""

    key = Key("JOURNEY#{journey_id}", "JOB#{order:02d}#{stage_id}#{execution_number:03d}#{created_at}")
    by_job = Key("JOB#{job_id}", "{created_at}", index="GSI1")

    job_id: str
    journey_id: Stored[str]
    order: Annotated[int, Field(ge=0, le=99)]
    stage_id: Stored[str]
    execution_number: Stored[Annotated[int, Field(ge=1, le=999)]]
    status: Attr[JobExecutionStatus] = default(JobExecutionStatus.PENDING)
    progress: Attr[Percent] = default(0)
    current_step: Attr[OrNull[str]] = default(None)
    start_time: Attr[OrNull[Timestamp]] = default(None)
    end_time: Attr[OrNull[Timestamp]] = default(None)
    duration: Attr[OrNull[float]] = default(None)
    triggered_by: str = "user"
    configuration: ExecutionConfiguration = ExecutionConfiguration()
    results: Attr[dict[str, Json]] = default({})
    metrics: Attr[LogCounts] = default(LogCounts())
    measurements: Attr[dict[str, Json] | None] = default(None)
    error_message: Attr[OrNull[str]] = default(None)
    steps: Attr[list[StepRun]] = default([])
    s3_config: Buckets | None = None
    created_at: Annotated[Stored[Timestamp], Beside("CreatedAt")]
    updated_at: Attr[Annotated[Timestamp, Beside("UpdatedAt")]]


class LogEntry(Entity, table=journeys, type="LogEntry", envelope="Data", alias=camel_case):
    """A recent or important log line; the full log is in object storage."""

    key = Key("JOURNEY#{journey_id}", "LOG#{job_id}#{step}#{timestamp}#{log_id}")
    by_job = Key("JOB#{job_id}", "{timestamp}", index="GSI1")

    journey_id: str
    job_id: Stored[str]
    step: Stored[str]
    timestamp: Stored[Timestamp]
    log_id: str
    level: LogEntryLevel = LogEntryLevel.INFO
    message: str
    source: str | None = None
    s3_location: str | None = None
    details: dict[str, Json] = {}
    created_at: Annotated[Timestamp, Beside("CreatedAt")]


class JobReport(Entity, table=journeys, type="JobReport", envelope="Data", alias=camel_case):
    """The catalogue entry of a report; the report itself is in object storage."""

    key = Key("JOURNEY#{journey_id}", "REPORT#{job_id}#{report_type}#{generated_at}#{report_id}")
    by_job = Key("REPORTS#{job_id}", "{generated_at}", index="GSI1")

    journey_id: str
    report_id: Stored[str]
    job_id: Stored[str]
    report_type: Stored[ReportType]
    title: str
    summary: str = ""
    s3_location: str
    generated_at: Stored[Timestamp]
    status: str = "generated"
    metrics: ReportMetrics | None = None
    created_at: Annotated[Timestamp, Beside("CreatedAt")]
