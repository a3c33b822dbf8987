"""The choices and the nested models of the journey entities."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from jobtable.jobs.stored.field_types import Count
from jobtable.model import Attribute, Condition, Json, OrNull, Part, Timestamp, camel_case
from jobtable.model.conditions import AttributeIs

Percent: TypeAlias = Annotated[int, Field(ge=0, le=100)]
_RUNNING_BEFORE = "in_progress"
"""What older programs write instead of `running`."""


class _Status(StrEnum):
    @classmethod
    def _missing_(cls, value: object) -> _Status | None:
        return cls("running") if value == _RUNNING_BEFORE else None


def is_running(status: Attribute[Any]) -> Condition:
    """Return the condition that a status is `running`, in either form."""
    return (status == "running") | AttributeIs(status.field.path, {"S": _RUNNING_BEFORE})


class JourneyStatus(_Status):
    """The states of a journey."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    PAUSED = "paused"
    CANCELLED = "cancelled"


class StageStatus(_Status):
    """The states of a stage."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class JobExecutionStatus(_Status):
    """The states of a job execution and of its steps."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Priority(StrEnum):
    """How urgent a journey or a rule is, the most urgent first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """From 0 for critical to 3 for low."""
        return list(Priority).index(self)


class RuleType(StrEnum):
    """The subject of a rule."""

    FIELD_MAPPING = "field_mapping"
    CONTEXTUAL_RECOMMENDATIONS = "contextual_recommendations"
    DATA_INTERPRETATION = "data_interpretation"
    VALIDATION_RULES = "validation_rules"
    BUSINESS_LOGIC = "business_logic"
    COMPLIANCE_CHECK = "compliance_check"


class RuleScope(StrEnum):
    """Where a rule applies."""

    GLOBAL = "global"
    PROJECT = "project"
    STAGE = "stage"


class RuleStatus(StrEnum):
    """Whether a rule applies."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    DEPRECATED = "deprecated"


class LogEntryLevel(StrEnum):
    """The levels of log entries."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ReportType(StrEnum):
    """The kinds of reports."""

    SUMMARY = "summary"
    PERFORMANCE = "performance"
    ERROR_ANALYSIS = "error_analysis"
    CUSTOM = "custom"
    TIMELINE = "timeline"
    METRICS = "metrics"


class JourneySource(Part, alias=camel_case):
    """The source of a journey's data."""

    type: str = "schema-based"
    schema_id: str
    schema_name: str
    schema_version: str = "1.0.0"


class ExecutionConfiguration(Part, alias=camel_case):
    """How to run a stage."""

    timeout: Annotated[int, Field(gt=0)] = 1800
    retry_attempts: Count = 3
    enable_detailed_logging: bool = True


class JourneyConfiguration(ExecutionConfiguration, alias=camel_case):
    """How to run a whole journey."""

    max_depth: Count = 5
    tmf_spec_version: str = "4.0.0"
    output_format: str = "json"
    validate_at_each_stage: bool = True
    second_brain_enabled: bool = True
    rule_engine_version: str = "v1.0"


class Aggregates(Part, alias=camel_case):
    """Totals over everything that belongs to a journey."""

    total_jobs: Count = 0
    completed_jobs: Count = 0
    failed_jobs: Count = 0
    total_execution_time: str = "0m"
    total_logs: Count = 0
    total_errors: Count = 0
    total_warnings: Count = 0
    total_rules: Count = 0
    active_rules: Count = 0
    total_execution_seconds: Decimal | None = None
    """The exact sum; `total_execution_time` shows it in whole minutes."""


class Creation(Part, alias=camel_case):
    """How far the creation or import of a journey has come, if it takes more than one transaction."""

    done: Count
    total: Count
    fingerprint: str


class StepDefinition(Part, alias=camel_case):
    """A task within a stage."""

    step_id: str
    name: str
    description: str = ""
    ai_assisted: bool = False
    estimated_duration: str


class RuleMetadata(Part, alias=camel_case):
    """The origin of a rule, and the stages that it applies to."""

    created_by: str
    version: str = "1.0"
    tags: list[str] = []
    applicable_stages: list[str] = []
    rule_engine: str = "second_brain_v1"


class LogCounts(Part, alias=camel_case):
    """The number of log lines of each level."""

    total_logs: Count = 0
    error_count: Count = 0
    warning_count: Count = 0
    info_count: Count = 0
    debug_count: Count = 0

    def __add__(self, other: LogCounts) -> LogCounts:
        return LogCounts(**{name: getattr(self, name) + getattr(other, name) for name in LogCounts.model_fields})

    def __sub__(self, other: LogCounts) -> LogCounts:
        return LogCounts(**{name: getattr(self, name) - getattr(other, name) for name in LogCounts.model_fields})


class Buckets(Part, alias=camel_case):
    """The buckets with the full logs and reports of an execution."""

    logs_bucket: str
    reports_bucket: str


class StepLogFile(Part, alias=camel_case):
    """The full log of a step in object storage."""

    lines: Count
    size: Count
    sha256: str
    run: Count | None = None
    """The run of the execution that stored it, after the first; each run has its own folder."""


class StepRun(Part, alias=camel_case):
    """One step of an execution."""

    step_id: str
    status: JobExecutionStatus = JobExecutionStatus.PENDING
    start_time: OrNull[Timestamp] = None
    end_time: OrNull[Timestamp] = None
    duration: OrNull[float] = None
    progress: Percent | None = None
    position: Json = None
    """How far the step has come, in its own terms; it resumes there after a crash."""
    log: StepLogFile | None = None
    reports: Count | None = None
    """The number of reports that an unfinished step has stored with its position."""


class ReportMetrics(Part, alias=camel_case):
    """The size of a report, and how long it took to generate."""

    content_size: Count
    generation_time: float
    report_sections: Count
    sha256: str | None = None
