"""A journey with stages, rules, executions, logs and reports, and another one beside it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from tests.access_patterns import Question, World

from jobtable.model import Entity
from jobtable.store import Store
from jobtable.systems.journeys.default_stages import default_stages
from jobtable.systems.journeys.entities import JobExecution, JobReport, Journey, LogEntry, SecondBrainRule, journeys
from jobtable.systems.journeys.parts import JourneySource, Priority, ReportType, RuleMetadata, RuleType
from jobtable.systems.journeys.service import Journeys

START = datetime(2025, 11, 1, 20, tzinfo=UTC)


def journey(journey_id: str, created_at: datetime = START) -> Journey:
    """A journey without anything under it."""
    source = JourneySource(schema_id="schema-1", schema_name="Legacy Product Database")
    return Journey(
        journey_id=journey_id,
        name="Product Catalog Migration",
        created_by="data_team",
        oda_component_type="PRODUCTCATALOG",
        source=source,
        created_at=created_at,
        updated_at=created_at,
    )


def rule(journey_id: str, stage_id: str, index: int, priority: Priority, content: str = "Map it") -> SecondBrainRule:
    """A rule whose id says where it belongs."""
    return SecondBrainRule(
        rule_id=f"{stage_id}-{priority}-{index}",
        journey_id=journey_id,
        stage_id=stage_id,
        index=index,
        title="A rule",
        type=RuleType.FIELD_MAPPING,
        priority=priority,
        content=content,
        metadata=RuleMetadata(created_by="data_team"),
        created_at=START,
        updated_at=START,
    )


def execution(journey_id: str, order: int, stage_id: str, number: int, job_id: str) -> JobExecution:
    """An execution of a stage."""
    created_at = START + timedelta(minutes=number)
    return JobExecution(
        job_id=job_id,
        journey_id=journey_id,
        order=order,
        stage_id=stage_id,
        execution_number=number,
        created_at=created_at,
        updated_at=created_at,
    )


def log(journey_id: str, job_id: str, step: str, second: int, log_id: str) -> LogEntry:
    """A log entry at some second."""
    at = START + timedelta(seconds=second)
    return LogEntry(
        journey_id=journey_id, job_id=job_id, step=step, timestamp=at, log_id=log_id, message=log_id, created_at=at
    )


def report(journey_id: str, job_id: str, kind: ReportType, minute: int) -> JobReport:
    """A report whose id is its type."""
    at = START + timedelta(minutes=minute)
    return JobReport(
        journey_id=journey_id,
        report_id=kind.value,
        job_id=job_id,
        report_type=kind,
        title="A report",
        s3_location="s3://reports/x.json",
        generated_at=at,
        created_at=at,
    )


def items() -> Iterator[Entity]:
    """The world: J1 with all of it, J2 created earlier, with a rule and a log that nobody asks for."""
    yield journey("J1")
    yield journey("J2", START - timedelta(days=1))
    yield from default_stages("J1", START)
    for index, priority in enumerate([Priority.LOW, Priority.CRITICAL, Priority.MEDIUM, Priority.HIGH], start=1):
        yield rule("J1", "raw_analysis", index, priority)
    yield rule("J1", "tmf_mapping", 1, Priority.HIGH)
    yield rule("J2", "raw_analysis", 1, Priority.HIGH)
    yield execution("J1", 1, "raw_analysis", 1, "JOB-1")
    yield execution("J1", 1, "raw_analysis", 2, "JOB-2")
    yield execution("J1", 2, "stripped_schema", 1, "JOB-3")
    yield log("J1", "JOB-1", "schema_extraction", 3, "L3")
    yield log("J1", "JOB-1", "data_profiling", 1, "L1")
    yield log("J1", "JOB-1", "schema_extraction", 2, "L2")
    yield log("J2", "JOB-9", "schema_extraction", 2, "L9")
    yield report("J1", "JOB-1", ReportType.SUMMARY, 2)
    yield report("J1", "JOB-1", ReportType.TIMELINE, 1)


def _complete(store: Store) -> list[str]:
    found = Journeys(store).get_complete_journey("J1")
    stages = [stage.stage_id for stage in found.stages]
    rules = [rule.rule_id for rule in found.rules]
    return [found.journey.journey_id, *stages, *rules, *(e.job_id for e in found.recent_executions)]


_STAGES = [
    "raw_analysis",
    "stripped_schema",
    "tmf_mapping",
    "migration_planning",
    "data_migration",
    "verification_validation",
]
_RAW_RULES = ["raw_analysis-critical-2", "raw_analysis-high-4", "raw_analysis-medium-3", "raw_analysis-low-1"]
_RULES = [*_RAW_RULES, "tmf_mapping-high-1"]

WORLD = World(
    name="journeys",
    tables=(journeys,),
    items=items,
    questions={
        ("journeys", "Get specific journey by ID"): Question(
            lambda s: [Journeys(s).get_journey("J1").journey_id], ["J1"]
        ),
        ("journeys", "Pattern 1: Get Complete Journey Information"): Question(
            _complete, ["J1", *_STAGES, *_RULES, "JOB-3", "JOB-2", "JOB-1"]
        ),
        ("journeys", "Pattern 2: List All Journeys"): Question(
            lambda s: [j.journey_id for j in Journeys(s).list_journeys()], ["J2", "J1"]
        ),
        ("journeys", "Pattern 3: Get All Logs for a Job"): Question(
            lambda s: [entry.log_id for entry in Journeys(s).list_job_logs("JOB-1")], ["L1", "L2", "L3"]
        ),
        ("journeys", "Pattern 4: Get Stage-Specific Rules"): Question(
            lambda s: [r.rule_id for r in Journeys(s).list_stage_rules("J1", "raw_analysis")], _RAW_RULES
        ),
        ("journeys", "Pattern 5: Get Jobs for Specific Stage"): Question(
            lambda s: [e.job_id for e in Journeys(s).list_stage_executions(default_stages("J1", START)[0])],
            ["JOB-1", "JOB-2"],
        ),
        ("journeys", "Pattern 6: Get Recent Job Logs"): Question(
            lambda s: [entry.log_id for entry in Journeys(s).list_recent_job_logs("JOB-1", limit=2)], ["L3", "L2"]
        ),
        ("journeys", "List all stages for a journey in order"): Question(
            lambda s: [stage.stage_id for stage in Journeys(s).list_stages("J1")], _STAGES
        ),
        ("journeys", "Get all rules for a journey"): Question(
            lambda s: [r.rule_id for r in Journeys(s).list_rules("J1")], _RULES
        ),
        ("journeys", "List jobs for journey"): Question(
            lambda s: [e.job_id for e in Journeys(s).list_executions("J1")], ["JOB-1", "JOB-2", "JOB-3"]
        ),
        ("journeys", "Get a job by its ID"): Question(lambda s: [Journeys(s).get_execution("JOB-1").job_id], ["JOB-1"]),
        ("journeys", "Get the logs of one step of a job"): Question(
            lambda s: [entry.log_id for entry in Journeys(s).list_step_logs("J1", "JOB-1", "schema_extraction")],
            ["L2", "L3"],
        ),
        ("journeys", "List all reports for a job"): Question(
            lambda s: [r.report_id for r in Journeys(s).list_job_reports("JOB-1")], ["timeline", "summary"]
        ),
    },
)
