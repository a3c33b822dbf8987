"""A store that holds many of everything, written as items: what a page reads may not depend on how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.contributions import contributions

from jobtable.access.entities import AccessToken, Role
from jobtable.app import Services
from jobtable.assist.entities import AssistCall, AssistCost, CallStatus
from jobtable.jobs.stored.entities import (
    Instance,
    InstanceJob,
    Job,
    JobArtifact,
    JobCheckpoint,
    JobDependency,
    JobGates,
    JobLog,
    JobLogText,
    JobMetric,
    JobResource,
    JobStatus,
    Queue,
    QueueJob,
)
from jobtable.jobs.stored.field_types import Health, InstanceStatus, Status, rank_of
from jobtable.model import Entity

START = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def at(number: int) -> datetime:
    """So many milliseconds after the beginning of this day."""
    return START + timedelta(milliseconds=number)


def fill(services: Services, count: int) -> None:
    """Write so many of everything."""
    _ = services.engine  # with its table
    services.objects.put("reports/x.json", b"{}")
    services.store.batch_put(_jobs(count))
    services.store.batch_put(_places_of_jobs(count))
    services.store.batch_put(_calls(count))
    for system in contributions("crowd"):
        system.fill(services, count)


def _jobs(count: int) -> Iterator[Entity]:
    yield Job(
        job_id="job",
        name="job",
        created_at=at(0),
        created_by="ada",
        status=Status.RUNNING,
        queue_name="gpu",
        is_gated=True,
        is_awaiting=True,
        job_config={"group": True},
        dependents=count,
    )
    yield JobGates(job_id="job", open_completions=count)
    for n in range(count):
        status = Status.COMPLETED if n % 10 else Status.RUNNING if n % 20 else Status.PENDING
        yield Job(
            job_id=f"child-{n}",
            name=f"child {n}",
            created_at=at(n),
            created_by="ada",
            status=status if n else Status.PENDING,
            queue_name="gpu",
            parent_job_id="job",
            root_job_id="job",
            dependents=1,
        )
        yield JobDependency(job_id="job", dependency_job_id=f"child-{n}", type="child", created_at=at(n))
        yield JobDependency(job_id=f"child-{n}", dependency_job_id="job", type="parent", created_at=at(n))
        yield JobStatus(job_id="job", status=Status.RUNNING, updated_at=at(n))
        yield JobStatus(job_id=f"child-{n}", status=Status.COMPLETED, updated_at=at(n))
        yield JobLog(job_id="job", timestamp=at(n), message=f"line {n}")
        yield JobMetric(job_id="job", metric_name="loss", timestamp=at(n), value=float(n), epoch=n % 7)
        yield JobMetric(job_id="job", metric_name=f"metric {n:06d}", timestamp=at(n), value=1.0)
        yield JobCheckpoint(
            job_id="job", timestamp=at(n), s3_bucket="b", s3_key="reports/x.json", size_bytes=2, step=n, epoch=0
        )
        file: dict[str, Any] = {"job_id": "job", "s3_bucket": "b", "s3_key": f"jobs/{n}", "created_at": at(n)}
        yield JobArtifact(**file, name=f"{n}.bin", size_bytes=1, sha256="0", content_type="text/plain")
        yield JobLogText(**file, lease_epoch=n)
        yield JobResource(
            job_id="job",
            resource_id=f"gpu-{n}",
            resource_type="GPU",
            instance_id=f"i-{n}",
            instance_type="p3",
            allocated_at=at(0),
            status="held",
        )
        yield JobResource(
            job_id=f"child-{n}",
            resource_id="gpu-0",
            resource_type="GPU",
            instance_id="i",
            instance_type="p3",
            allocated_at=at(0),
            status="held",
        )


def _places_of_jobs(count: int) -> Iterator[Entity]:
    yield Queue(queue_name="gpu", created_at=at(0), job_count=count, max_concurrent_jobs=10)
    here: dict[str, Any] = {"instance_type": "p3", "launched_at": at(0)}
    yield Instance(instance_id="i", status=InstanceStatus.RUNNING, **here)
    for n in range(count):
        yield Queue(queue_name=f"queue-{n}", created_at=at(0))
        yield QueueJob(queue_name="gpu", job_id=f"child-{n}", enqueued_at=at(n), rank=rank_of(500), group_id="s")
        yield QueueJob(queue_name=f"queue-{n}", job_id="job", enqueued_at=at(n))
        for status in InstanceStatus:
            yield Instance(instance_id=f"{status}-{n}", status=status, health_status=Health.HEALTHY, **here)
        yield InstanceJob(instance_id="i", job_id=f"child-{n}", assigned_at=at(n), status=Status.RUNNING)
        yield InstanceJob(instance_id=f"i-{n}", job_id="job", assigned_at=at(n), status=Status.RUNNING)
        yield AccessToken(
            token_id=f"t{n}", name="n", role=Role.READ, secret_sha256="0", created_at=at(0), created_by="ada"
        )


def _calls(count: int) -> Iterator[Entity]:
    known: dict[str, Any] = {"system": "jobs", "purpose": "label", "provider": "openai", "model": "small"}
    for n in range(count):
        yield AssistCost(date=START.date() - timedelta(days=n), calls=1, **known)
        yield AssistCall(
            **known,
            job_id="job",
            call_id=f"chat-{n}",
            root_job_id="job",
            date=START.date(),
            kind="chat",
            request_sha256="0",
            request_key="reports/x.json",
            started_at=at(n),
            status=CallStatus.REFUSED,
        )
