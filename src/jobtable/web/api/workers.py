"""Workers on other machines: their registration, the state of their queues, and the output of their jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from jobtable.jobs.report.log_text import MOST_HEAD_BYTES, PART_BYTES
from jobtable.jobs.stored.entities import Instance, Job, JobLogText
from jobtable.jobs.stored.field_types import Health, InstanceStatus
from jobtable.objects.object_store import Readable
from jobtable.web.api.instances import InstanceId
from jobtable.web.api.kept_files import UploadQuery
from jobtable.web.api.route_parts import Body, Name, api_router
from jobtable.web.api.work import LeaseBody, held_lease, last_lease
from jobtable.web.guard import WORK, allow
from jobtable.web.injection import JobId, TheJobs
from jobtable.web.limits import takes_file
from jobtable.web.uploads import binary_body, take

router = api_router("workers")

_MOST_PARTS = MOST_HEAD_BYTES // PART_BYTES


class InstanceBody(Body):
    """The description of a worker."""

    instance_type: Name = Field(examples=["p3.2xlarge"])
    gpu_count: int = Field(0, ge=0, le=10**6)
    ip_address: str | None = Field(None, max_length=200)
    availability_zone: str | None = Field(None, max_length=200)
    is_spot: bool = False
    queues: list[Name] = Field([], max_length=1000, examples=[["gpu"]])
    slots: int = Field(1, ge=1, le=10**6)
    lease_seconds: float = Field(30.0, ge=1, le=3600)


class QueueStateView(BaseModel):
    """The state of a queue, as a worker needs it."""

    queue_name: str
    priority: int
    job_count: int
    running_count: int
    has_work: Annotated[bool, Field(description="Whether a job is ready, or will become ready without further action.")]


class TextQuery(UploadQuery):
    """The lease that printed a text, and the text's length."""

    line_count: int = Field(0, ge=0, le=10**15)
    part_count: int = Field(0, ge=0, le=_MOST_PARTS, description="Number of parts stored while the job ran.")


def _instance(instance_id: str, given: InstanceBody, jobs: TheJobs) -> Instance:
    return Instance(
        instance_id=instance_id,
        status=InstanceStatus.RUNNING,
        health_status=Health.HEALTHY,
        launched_at=jobs.clock.now(),
        **given.model_dump(),
    )


@router.put("/instances/{instance_id}")
@allow(WORK)
def register_instance(instance_id: InstanceId, body: InstanceBody, jobs: TheJobs) -> Instance:
    """Register a worker."""
    instance = _instance(instance_id, body, jobs)
    jobs.instances.register(instance)
    return instance


@router.post("/instances/{instance_id}/heartbeat", status_code=204)
@allow(WORK)
def beat_instance(instance_id: InstanceId, body: InstanceBody, jobs: TheJobs) -> Response:
    """Send a worker's heartbeat; a worker that is no longer known is registered again."""
    jobs.instances.beat(_instance(instance_id, body, jobs))
    return Response(status_code=204)


@router.post("/instances/{instance_id}/stop", status_code=204)
@allow(WORK)
def stop_instance(instance_id: InstanceId, body: InstanceBody, jobs: TheJobs) -> Response:
    """Record that a worker exited in good order."""
    jobs.instances.stop(_instance(instance_id, body, jobs))
    return Response(status_code=204)


@router.get("/queue-states")
@allow(WORK)
def list_queue_states(
    jobs: TheJobs,
    queue: Annotated[list[Name], Query(min_length=1, max_length=100, examples=[["gpu"]])],
    certain: Annotated[bool, Query(description="Also find work that the indexes do not show yet.")] = False,
) -> list[QueueStateView]:
    """Return the priority of each queue, and whether it has work; missing queues are skipped."""
    states = jobs.queue_states(queue, certain=certain)
    return [QueueStateView.model_validate(state, from_attributes=True) for state in states]


@router.get("/jobs/{job_id}/held")
@allow(WORK)
def get_held_job(job_id: JobId, given: Annotated[LeaseBody, Query()], jobs: TheJobs) -> Job:
    """Return the current state of a job to the worker that claimed it last, even if the job has ended."""
    return last_lease(jobs, job_id, given).job


@router.put("/jobs/{job_id}/log-text/parts/{number}", status_code=204, openapi_extra=binary_body())
@allow(WORK)
async def keep_text_part(
    job_id: JobId,
    number: Annotated[int, Field(ge=0, lt=_MOST_PARTS)],
    request: Request,
    given: Annotated[TextQuery, Query()],
    jobs: TheJobs,
) -> Response:
    """Store or replace a part of a running job's output."""
    lease = await run_in_threadpool(held_lease, jobs, job_id, given)

    def keep(body: Readable) -> None:
        data = b"".join(iter(lambda: body.read(PART_BYTES), b""))
        jobs.recording.run_text(lease).put_part(number, data, given.line_count)

    await take(request, keep, sha256=given.sha256)
    return Response(status_code=204)


@router.put("/jobs/{job_id}/log-text", openapi_extra=binary_body())
@allow(WORK)
@takes_file(whole=False)
async def keep_text(job_id: JobId, request: Request, given: Annotated[TextQuery, Query()], jobs: TheJobs) -> JobLogText:
    """Store the whole output of a job in place of its parts."""
    lease = await run_in_threadpool(held_lease, jobs, job_id, given)

    def keep(body: Readable) -> JobLogText:
        return jobs.recording.run_text(lease).put_whole(body, given.line_count, given.part_count)

    return await take(request, keep, sha256=given.sha256)
