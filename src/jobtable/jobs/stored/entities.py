"""The main table and its job entities.

Fields that the engine uses in expressions are declared here again: mypy forgets that an inherited field of a frozen
class is a descriptor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from jobtable.jobs.stored.field_types import (
    FINAL,
    Count,
    Health,
    InstanceJobRecord,
    InstanceRecord,
    InstanceStatus,
    JobCheckpointRecord,
    JobDependencyRecord,
    JobLogRecord,
    JobMetricRecord,
    JobRecord,
    JobResourceRecord,
    JobStatusRecord,
    Percent,
    Priority,
    QueueJobRecord,
    QueueRecord,
    Status,
)
from jobtable.jobs.submit.definition import Definition, is_on_end
from jobtable.model import Attr, Entity, Index, Json, Key, Name, Stored, Table, Timestamp, default

main = Table(
    "jobtable",
    pk="PK",
    sk="SK",
    type_attribute="TYPE",
    ttl="TimeToLive",
    stream=True,
    indexes=[
        Index("GSI1", "GSI1PK", "GSI1SK"),
        Index("GSI2", "GSI2PK", "GSI2SK"),
        Index("GSI3", "GSI3PK", "GSI3SK"),
        Index("GSITYPE", "TYPE"),
    ],
)


class Job(JobRecord, table=main, type="JOB"):
    """A piece of work: its task, its progress and the worker that holds it; the only source of its status."""

    in_tree = Key("ROOT#{root_job_id}", "PARENT#{parent_job_id}#CREATED#{created_at}", index="GSI3")

    created_at: Attr[Timestamp]
    status: Attr[Status] = default(Status.PENDING)
    priority: Attr[Priority] = default(500)
    tags: Attr[frozenset[str]] = default(frozenset())
    job_type: str = "job"
    parent_job_id: str | None = None
    root_job_id: str | None = None
    job_stage: str | None = None
    queue_name: Attr[str | None] = default(None)
    progress: Attr[Percent] = default(0)
    attempts: Attr[Count] = default(0)
    max_attempts: Attr[Annotated[int, Field(ge=1)]] = default(1)
    interruptions: Attr[Count] = default(0)
    unopened: Attr[Count | None] = default(None)
    """Number of its latest runs that did not start because their process could not open the store."""
    lease_epoch: Attr[Count] = default(0)
    lease_seconds: Attr[Annotated[float, Field(gt=0)] | None] = default(None)
    heartbeat: Attr[Count] = default(0)
    requested: Attr[Literal["cancel", "stop"] | None] = default(None)
    instance_id: Attr[str | None] = default(None)
    woken: Attr[bool | None] = default(None)
    """True if it was woken during its run: it starts again instead of being suspended."""
    dependents: Attr[Count] = default(0)
    is_gated: Attr[bool] = default(False)
    is_awaiting: Attr[bool] = default(False)
    message: Attr[str | None] = default(None)
    result: Attr[Json] = default(None)
    changed_at: Attr[Timestamp | None] = default(None)
    started_at: Attr[Timestamp | None] = default(None)
    ended_at: Attr[Timestamp | None] = default(None)
    deleted_at: Attr[Timestamp | None] = default(None)
    """When its deletion started; the job itself is deleted last."""
    tree_status: Attr[Status | None] = default(None)
    """CANCELLED or STOPPED if it ended so with its whole tree: until it restarts, neither it nor its ended children
    accept new children."""

    @property
    def definition(self) -> Definition:
        """The definition in `job_config`; empty and with a problem if that is invalid."""
        return Definition.read(self.job_config)

    @property
    def on_end(self) -> str | None:
        """The path of the function that adds to the transaction of its end, or None."""
        path = self.job_config.get("on_end") if isinstance(self.job_config, Mapping) else None
        return path if is_on_end(path) else None

    @property
    def is_final(self) -> bool:
        """Whether the job has ended; only a retry changes it."""
        return self.status in FINAL

    @property
    def duration_seconds(self) -> float | None:
        """How long the job ran, or None if unknown."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()


class JobStatus(JobStatusRecord, table=main, type="JOB_STATUS"):
    """One change of a job's status: a line of its history."""


class JobResource(JobResourceRecord, table=main, type="JOB_RESOURCE"):
    """A machine or device that a job holds or held."""

    released_at: Attr[Timestamp | None] = default(None)
    status: Attr[str]


class JobMetric(JobMetricRecord, table=main, type="JOB_METRIC"):
    """One value of one metric of a job at one instant.

    A rolled-up report is also stored under the other job, with the child's id, and is sorted there by value.
    """

    by_name = Key("METRIC#{metric_name}", "{timestamp}", index="GSI1")
    by_name_and_job = Key("METRIC#{metric_name}", "JOB#{job_id}#{timestamp}", index="GSI2")
    by_value = Key(
        "JOB#{job_id}#METRIC#{metric_name}", "VALUE#{value:ordered}#JOB#{child_job_id}#{timestamp}", index="GSI3"
    )

    child_job_id: Attr[str | None] = default(None)
    time_to_live: Annotated[int | None, Name("TimeToLive")] = None


class JobCheckpoint(JobCheckpointRecord, table=main, type="JOB_CHECKPOINT"):
    """A saved state of a job in object storage, to resume from."""

    is_best: Attr[bool] = default(False)
    sha256: str | None = None


class JobLog(JobLogRecord, table=main, type="JOB_LOG"):
    """One log line of a job."""

    time_to_live: Annotated[int | None, Name("TimeToLive")] = None


class JobDependency(JobDependencyRecord, table=main, type="JOB_DEPENDENCY"):
    """A dependency: a job waits for another one before it starts or completes."""

    type: Attr[str]
    gate: Literal["start", "completion"] = "start"
    outcome: Attr[Status | None] = default(None)
    met_at_once: Attr[bool | None] = default(None)
    """True if it was met when it was added: its dependency neither counts nor notifies it."""


class JobGates(Entity, table=main, type="JOB_GATES"):
    """Counts of a job's dependencies: its open gates, and how those of its completion closed.

    It changes in one transaction with the edges that it counts.
    """

    key = Key("JOB#{job_id}", "GATES")

    job_id: str
    open_starts: Attr[Count] = default(0)
    open_completions: Attr[Count] = default(0)
    completed: Attr[Count] = default(0)
    failed: Attr[Count] = default(0)
    stopped: Attr[Count] = default(0)
    cancelled: Attr[Count] = default(0)
    broken_by: Attr[str | None] = default(None)


class JobChild(Entity, table=main, type="JOB_CHILD"):
    """A child for which a job does not wait; the dependencies name the other children.

    The index of trees may lag behind a new child, which an operation on the tree must not miss.
    """

    key = Key("JOB#{job_id}", "CHILD#{child_job_id}")

    job_id: str
    child_job_id: str


class DependencyGraph(Entity, table=main, type="DEPENDENCY_GRAPH"):
    """Count of the edges added between existing jobs, so that concurrent additions conflict."""

    key = Key("DEPENDENCY_GRAPH", "VERSION")

    version: Attr[Count] = default(0)


class JobTimeline(Entity, table=main, type="JOB_TIMELINE"):
    """Latest time assigned to a log line or metric of a job; no two writers get the same one."""

    key = Key("JOB#{job_id}", "TIMELINE")

    job_id: str
    reserved_until: Attr[Timestamp]


class JobArtifact(Entity, table=main, type="JOB_ARTIFACT"):
    """A file that a job produced, in object storage."""

    key = Key("JOB#{job_id}", "ARTIFACT#{name}")

    job_id: str
    name: Stored[str]
    s3_bucket: str
    s3_key: str
    size_bytes: Count
    sha256: str
    content_type: str
    created_at: Timestamp


class JobLogText(Entity, table=main, type="JOB_LOG_TEXT"):
    """The full output of one run of a job, in object storage: in parts while it runs, then one object."""

    key = Key("JOB#{job_id}", "LOG_TEXT#{lease_epoch:05d}")

    job_id: str
    lease_epoch: Stored[Count]
    s3_bucket: str
    s3_key: str
    size_bytes: Attr[Count] = default(0)
    line_count: Attr[Count] = default(0)
    part_count: Attr[Count] = default(0)
    sha256: Attr[str | None] = default(None)
    created_at: Timestamp


class Instance(InstanceRecord, table=main, type="INSTANCE"):
    """A machine, or a process on one, that runs jobs."""

    status: Attr[InstanceStatus] = default(InstanceStatus.PENDING)
    health_status: Attr[Health] = default(Health.UNKNOWN)
    queues: list[str] = []
    slots: Count = 1
    heartbeat: Attr[Count] = default(0)
    lease_seconds: Annotated[float, Field(gt=0)] | None = None
    time_to_live: Annotated[Attr[int | None], Name("TimeToLive")] = default(None)


class InstanceJob(InstanceJobRecord, table=main, type="INSTANCE_JOB"):
    """A job that an instance runs or ran."""

    status: Attr[Status]
    resource_utilization: Attr[Json] = default(None)


DEFAULT_CONCURRENCY = 1000
"""Default number of jobs of a queue that run at once."""


class Queue(QueueRecord, table=main, type="QUEUE"):
    """A queue of jobs and its limit of running ones. `job_count` counts its QueueJob items."""

    description: Attr[str] = default("")
    max_concurrent_jobs: Attr[Annotated[int, Field(ge=1)]] = default(1)
    priority: Attr[Priority] = default(500)
    job_count: Attr[Count] = default(0)
    running_count: Attr[Count] = default(0)
    paused_at: Attr[Timestamp | None] = default(None)

    @property
    def waiting_count(self) -> int:
        """Number of its jobs that no worker runs: waiting jobs, and groups that have not ended."""
        return max(0, self.job_count - self.running_count)


class QueueJob(QueueJobRecord, table=main, type="QUEUE_JOB"):
    """A job in a queue, from its submission to its end.

    A ready entry has a rank: the lowest is claimed first, then the oldest. An entry that must be handled later has a
    time. Then it becomes ready unless its gates are open, or, if its job has ended, its dependents are notified.
    """

    ready = Key("QUEUE#{queue_name}#READY", "{rank:03d}#{enqueued_at}", index="GSI3")
    delayed = Key("QUEUE#{queue_name}#DELAYED", "{not_before}", index="GSI2")

    priority: Attr[Priority] = default(500)
    rank: Attr[Annotated[int, Field(ge=0, le=999)] | None] = default(None)
    not_before: Attr[Timestamp | None] = default(None)
    group_id: Annotated[Attr[str | None], Name("sweep_id")] = default(None)
    """The group to which the job belongs."""
