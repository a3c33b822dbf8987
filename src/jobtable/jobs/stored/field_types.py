"""The fields and keys of the job system's items, the same in every table."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

from pydantic import Field

from jobtable.model import Attr, Entity, Json, Key, Stored, Timestamp, default

MOST_URGENT = 999
Priority: TypeAlias = Annotated[int, Field(ge=0, le=MOST_URGENT)]
"""0 to 999; of two jobs that wait, the one with the higher priority starts first."""
Percent: TypeAlias = Annotated[float, Field(ge=0, le=100)]
Count: TypeAlias = Annotated[int, Field(ge=0)]


def rank_of(priority: int) -> int:
    """Return the rank of a priority: keys sort ascending, so the most urgent job has the lowest rank."""
    return MOST_URGENT - priority


class Status(StrEnum):
    """The states of a job."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    STOPPED = "STOPPED"
    INTERRUPTED = "INTERRUPTED"


FINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.STOPPED})
"""Statuses of an ended job, which only a retry changes."""
CLAIMABLE = frozenset({Status.PENDING, Status.INTERRUPTED})
"""Statuses in which a job waits for a worker: it has not run yet, or its worker was lost."""


class InstanceStatus(StrEnum):
    """The states of an instance."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    TERMINATED = "TERMINATED"


class Health(StrEnum):
    """Known health of an instance."""

    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    UNKNOWN = "UNKNOWN"


class LogLevel(StrEnum):
    """The levels of log lines."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class JobRecord(Entity):
    """A job in any table."""

    key = Key("JOB#{job_id}", "JOB")
    by_status = Key("STATUS#{status}", "CREATED#{created_at}", index="GSI1")
    by_user = Key("USER#{created_by}", "CREATED#{created_at}", index="GSI2")

    job_id: str
    name: str
    description: str = ""
    created_at: Attr[Timestamp]
    created_by: str
    status: Attr[Status] = default(Status.PENDING)
    priority: Attr[Priority] = default(500)
    job_config: Json = None
    estimated_duration: Annotated[float, Field(ge=0)] | None = None
    tags: Attr[frozenset[str]] = default(frozenset())


class JobStatusRecord(Entity):
    """A status change of a job in any table."""

    key = Key("JOB#{job_id}", "STATUS#{updated_at}")
    by_status = Key("STATUS#{status}", "UPDATED#{updated_at}", index="GSI1")

    job_id: str
    status: Status
    progress: Percent | None = None
    message: str | None = None
    updated_at: Stored[Timestamp]
    updated_by: str | None = None
    instance_id: str | None = None


class JobResourceRecord(Entity):
    """A resource of a job in any table."""

    key = Key("JOB#{job_id}", "RESOURCE#{resource_id}")
    by_resource = Key("RESOURCE", "RESOURCE#{resource_id}", index="GSI1")

    job_id: str
    resource_id: str
    resource_type: str
    instance_id: str
    instance_type: str
    gpu_count: Count = 0
    allocated_at: Timestamp
    released_at: Attr[Timestamp | None] = default(None)
    status: Attr[str]


class JobMetricRecord(Entity):
    """A value of a metric in any table."""

    key = Key("JOB#{job_id}", "METRIC#{metric_name}#{timestamp}")

    job_id: str
    metric_name: Stored[str]
    timestamp: Stored[Timestamp]
    value: float
    unit: str | None = None
    step: int | None = None
    epoch: int | None = None


class JobCheckpointRecord(Entity):
    """A checkpoint in any table."""

    key = Key("JOB#{job_id}", "CHECKPOINT#{timestamp}")
    by_job = Key("CHECKPOINT", "JOB#{job_id}#{timestamp}", index="GSI1")

    job_id: str
    timestamp: Timestamp
    s3_bucket: str
    s3_key: str
    size_bytes: Count
    model_state: bool = True
    optimizer_state: bool = True
    metrics: dict[str, float] = {}
    step: int
    epoch: int
    is_best: Attr[bool] = default(False)


class JobLogRecord(Entity):
    """A log line in any table."""

    key = Key("JOB#{job_id}", "LOG#{timestamp}")
    by_job = Key("LOG", "JOB#{job_id}#{timestamp}", index="GSI1")

    job_id: str
    timestamp: Timestamp
    log_level: LogLevel = LogLevel.INFO
    message: str
    source: str | None = None
    exception: str | None = None


class JobDependencyRecord(Entity):
    """An edge between two jobs in any table."""

    key = Key("JOB#{job_id}", "DEPENDS_ON#{dependency_job_id}")
    by_dependent = Key("DEPENDENCY", "DEPENDENT#{job_id}#DEPENDENCY#{dependency_job_id}", index="GSI1")
    by_dependency = Key("DEPENDENCY", "DEPENDED_BY#{dependency_job_id}#DEPENDENT#{job_id}", index="GSI2")

    job_id: str
    dependency_job_id: str
    type: Attr[str]
    condition: str | None = None
    created_at: Timestamp


class InstanceRecord(Entity):
    """An instance in any table."""

    key = Key("INSTANCE#{instance_id}", "INSTANCE")
    by_status = Key("STATUS#{status}", "INSTANCE#{instance_id}", index="GSI1")

    instance_id: str
    instance_type: str
    gpu_count: Count = 0
    status: Attr[InstanceStatus] = default(InstanceStatus.PENDING)
    launched_at: Timestamp
    ip_address: str | None = None
    availability_zone: str | None = None
    is_spot: bool = False
    health_status: Attr[Health] = default(Health.UNKNOWN)


class InstanceJobRecord(Entity):
    """A job of an instance in any table."""

    key = Key("INSTANCE#{instance_id}", "JOB#{job_id}")
    by_job = Key("JOB", "JOB#{job_id}#INSTANCE#{instance_id}", index="GSI1")

    instance_id: str
    job_id: str
    assigned_at: Timestamp
    status: Attr[Status]
    resource_utilization: Attr[Json] = default(None)


class QueueRecord(Entity):
    """A queue in any table."""

    key = Key("QUEUE#{queue_name}", "QUEUE")
    by_name = Key("QUEUE", "QUEUE#{queue_name}", index="GSI1")

    queue_name: str
    description: Attr[str] = default("")
    created_at: Timestamp
    max_concurrent_jobs: Attr[Annotated[int, Field(ge=1)]] = default(1)
    priority: Attr[Priority] = default(500)
    job_count: Attr[Count] = default(0)


class QueueJobRecord(Entity):
    """A job of a queue in any table."""

    key = Key("QUEUE#{queue_name}", "JOB#{job_id}")
    by_job = Key("JOB", "JOB#{job_id}#QUEUE#{queue_name}", index="GSI1")

    queue_name: str
    job_id: str
    enqueued_at: Timestamp
    priority: Attr[Priority] = default(500)
    position: Attr[Count | None] = default(None)
