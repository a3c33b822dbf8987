"""The main table, and the eleven job entities in it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from jobtable.jobs.records import (
    Count,
    InstanceJobRecord,
    InstanceRecord,
    JobCheckpointRecord,
    JobDependencyRecord,
    JobLogRecord,
    JobMetricRecord,
    JobRecord,
    JobResourceRecord,
    JobStatusRecord,
    Percent,
    QueueJobRecord,
    QueueRecord,
)
from jobtable.model import Attr, Index, Key, Name, Table, Timestamp, default

main = Table(
    "jobtable",
    pk="PK",
    sk="SK",
    type_attribute="TYPE",
    ttl="TimeToLive",
    indexes=[
        Index("GSI1", "GSI1PK", "GSI1SK"),
        Index("GSI2", "GSI2PK", "GSI2SK"),
        Index("GSI3", "GSI3PK", "GSI3SK"),
        Index("GSITYPE", "TYPE"),
    ],
)


class Job(JobRecord, table=main, type="JOB"):
    """A piece of work: what is to be done, how far it is, and who holds it. The truth about the job's status."""

    in_tree = Key("ROOT#{root_job_id}", "PARENT#{parent_job_id}#CREATED#{created_at}", index="GSI3")

    job_type: str = "job"
    parent_job_id: str | None = None
    root_job_id: str | None = None
    job_stage: str | None = None
    queue_name: Attr[str | None] = default(None)
    progress: Attr[Percent] = default(0)
    attempts: Attr[Count] = default(0)
    max_attempts: Attr[Annotated[int, Field(ge=1)]] = default(1)
    lease_epoch: Attr[Count] = default(0)
    heartbeat: Attr[Count] = default(0)
    instance_id: Attr[str | None] = default(None)
    started_at: Attr[Timestamp | None] = default(None)
    ended_at: Attr[Timestamp | None] = default(None)


class JobStatus(JobStatusRecord, table=main, type="JOB_STATUS"):
    """One change of a job's status: a line of its history."""


class JobResource(JobResourceRecord, table=main, type="JOB_RESOURCE"):
    """A machine or device that a job holds or held."""


class JobMetric(JobMetricRecord, table=main, type="JOB_METRIC"):
    """One value of one metric of a job at one instant.

    A report of a sweep's child stands under the sweep as well, with the child's id, and there in order of value.
    """

    by_name = Key("METRIC#{metric_name}", "{timestamp}", index="GSI1")
    by_name_and_job = Key("METRIC#{metric_name}", "JOB#{job_id}#{timestamp}", index="GSI2")
    by_value = Key(
        "JOB#{job_id}#METRIC#{metric_name}", "VALUE#{value:ordered}#JOB#{child_job_id}#{timestamp}", index="GSI3"
    )

    child_job_id: str | None = None
    time_to_live: Annotated[int | None, Name("TimeToLive")] = None


class JobCheckpoint(JobCheckpointRecord, table=main, type="JOB_CHECKPOINT"):
    """A saved state of a job in object storage, to resume from."""


class JobLog(JobLogRecord, table=main, type="JOB_LOG"):
    """One line that a job has logged."""

    time_to_live: Annotated[int | None, Name("TimeToLive")] = None


class JobDependency(JobDependencyRecord, table=main, type="JOB_DEPENDENCY"):
    """A job waits for another one: to start, or to be completed."""

    gate: Literal["start", "completion"] = "start"


class Instance(InstanceRecord, table=main, type="INSTANCE"):
    """A machine, or a process on one, that runs jobs."""


class InstanceJob(InstanceJobRecord, table=main, type="INSTANCE_JOB"):
    """A job that an instance runs or ran."""


class Queue(QueueRecord, table=main, type="QUEUE"):
    """A queue of jobs, and how many of them may run at once."""


class QueueJob(QueueJobRecord, table=main, type="QUEUE_JOB"):
    """A job in a queue. While it is ready to be claimed it has a rank: the lowest, then the oldest, is the next."""

    ready = Key("QUEUE#{queue_name}#READY", "{rank:03d}#{enqueued_at}", index="GSI3")

    rank: Attr[Annotated[int, Field(ge=0, le=999)] | None] = default(None)
    sweep_id: str | None = None
