"""What workers on other machines do: claim jobs, send heartbeats, report, and finish."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from fastapi import Request, Response
from pydantic import BaseModel, Field

from jobtable.errors import JobtableError, TaskError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.buffer import RecordBuffer
from jobtable.jobs.report.log_lines import log_line
from jobtable.jobs.report.recording import ReportRules, expiry_of
from jobtable.jobs.stored.entities import Instance, InstanceJob, Job, JobLog, JobMetric
from jobtable.jobs.stored.field_types import LogLevel
from jobtable.model import Timestamp
from jobtable.web.api.queues import QueueName
from jobtable.web.api.route_parts import Body, Id, Written, api_router
from jobtable.web.guard import WORK, allow
from jobtable.web.idempotency import ReportRoute
from jobtable.web.injection import JobId, TheJobs
from jobtable.workflows.table_and_queues import QUEUES

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 3.0

router = api_router("work")
creation = api_router("work", ReportRoute)


class ClaimBody(Body):
    """What a worker claims."""

    instance_id: Id = Field(examples=["worker-1"])
    limit: int = Field(1, ge=1, le=100)
    lease_seconds: float = Field(30.0, ge=1, le=3600)


class LeaseBody(Body):
    """The lease of a worker."""

    instance_id: str = Field(min_length=1, max_length=200, examples=["worker-1"])
    epoch: int = Field(ge=1, le=10**9, description="The `lease_epoch` of the claimed job.", examples=[1])


class ReportBody(LeaseBody):
    """The progress of a job."""

    progress: float | None = Field(None, ge=0, le=100)
    message: str | None = Field(None, max_length=10_000)


class FinishBody(LeaseBody):
    """The outcome of a run."""

    kind: Literal["completed", "failed", "stopped", "cancelled", "suspended"]
    result: Any = None
    message: str | None = Field(None, max_length=100_000)
    retryable: bool = True
    until: Timestamp | None = Field(
        None, description="When a suspended job starts again by itself; otherwise only an event wakes it."
    )


class ReleaseBody(LeaseBody):
    """Why a worker releases a job."""

    reason: str = Field("released by its worker", max_length=1000)
    is_unopened: bool = Field(False, description="The task did not start because its process could not open the store.")


class LogLineBody(Body):
    """One line of a log."""

    message: str = Field(max_length=1_000_000)
    level: LogLevel = LogLevel.INFO
    source: str | None = Field(None, max_length=1000)
    exception: str | None = Field(None, max_length=1_000_000)
    timestamp: datetime | None = Field(None, description="Time of the line; now by default.")


class MetricBody(Body):
    """One value of a metric."""

    metric_name: str = Field(min_length=1, max_length=1000, examples=["val_loss"])
    value: float
    unit: str | None = Field(None, max_length=1000)
    step: int | None = Field(None, ge=-(10**15), le=10**15)
    epoch: int | None = Field(None, ge=-(10**15), le=10**15)
    timestamp: datetime | None = Field(None, description="Time of the measurement; now by default.")


class LinesBody(LeaseBody):
    """Log lines of a job."""

    lines: list[LogLineBody] = Field(max_length=1000)


class MetricsBody(LeaseBody):
    """Metric values of a job."""

    metrics: list[MetricBody] = Field(max_length=1000)


class Leased(BaseModel):
    """A claimed job, and the epoch of its lease."""

    job: Job
    epoch: int


def last_lease(jobs: Jobs, job_id: str, body: LeaseBody) -> Lease:
    """Return the lease that a worker names if it is the job's last, even if its run has ended."""
    job = jobs.queries.get_job(job_id)
    if job.lease_epoch != body.epoch or job.instance_id not in (None, body.instance_id):
        raise Lease(job.model_copy(update={"lease_epoch": body.epoch}), body.instance_id).lost()
    return Lease(job, body.instance_id)


def held_lease(jobs: Jobs, job_id: str, body: LeaseBody) -> Lease:
    """Return the lease that a worker names if it still holds it."""
    lease = last_lease(jobs, job_id, body)
    if not lease.is_held_in(lease.job) or lease.job.instance_id is None:
        raise lease.lost()
    return lease


def _recorded(jobs: Jobs, lease: Lease) -> Lease:
    """Return a lease that knows whether it was recorded, which ending a run needs."""
    key = InstanceJob.key(instance_id=lease.instance_id, job_id=lease.job.job_id)
    return replace(lease, is_recorded=jobs.store.find(key) is not None)


class Recovery:
    """Takes jobs from dead workers while workers on other machines claim: they cannot see each other.

    Any thread may use it.
    """

    def __init__(self, jobs: Jobs) -> None:
        self._clock = jobs.clock
        self._observer = jobs.observer()
        self._lock = threading.Lock()
        self._next_at = self._clock.monotonic()

    def look(self) -> None:
        """Take jobs from workers whose heartbeats have stopped, unless that is being done or was done just now."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._clock.monotonic() >= self._next_at:
                self._next_at = self._clock.monotonic() + _LOOK_SECONDS
                self._observer.recover()
        except JobtableError as error:
            _LOG.warning("could not recover the jobs of dead workers; will retry: %s", error)
        finally:
            self._lock.release()


@router.post("/queues/{queue_name}/claim")
@allow(WORK)
def claim_jobs(queue_name: QueueName, body: ClaimBody, jobs: TheJobs, request: Request) -> list[Leased]:
    """Claim ready jobs of a queue, by priority; none if the queue is empty, paused or full.

    Send heartbeats well within the lease time, or the job goes to another worker.
    """
    if queue_name in QUEUES:  # a job of theirs would fail, and with it its execution
        raise TaskError(
            f"jobs of the queue {queue_name} need the store itself", hint="let workers at the store serve this queue"
        )
    request.app.state.recovery.look()
    jobs.promote_due(queue_name)
    leases = jobs.claim(
        queue_name,
        limit=body.limit,
        instance_id=body.instance_id,
        lease_seconds=body.lease_seconds,
        instance=jobs.store.find(Instance.key(instance_id=body.instance_id)),
    )
    return [Leased(job=lease.job, epoch=lease.epoch) for lease in leases]


@router.post("/jobs/{job_id}/heartbeat")
@allow(WORK)
def send_heartbeat(job_id: JobId, body: LeaseBody, jobs: TheJobs) -> Leased:
    """Extend a lease. `job.requested` in the response says whether to stop or cancel the job."""
    lease = jobs.heartbeat(held_lease(jobs, job_id, body))
    return Leased(job=lease.job, epoch=lease.epoch)


@router.post("/jobs/{job_id}/report", status_code=204)
@allow(WORK)
def report_progress(job_id: JobId, body: ReportBody, jobs: TheJobs) -> Response:
    """Report the progress of a job."""
    jobs.report(held_lease(jobs, job_id, body), progress=body.progress, message=body.message)
    return Response(status_code=204)


@router.post("/jobs/{job_id}/finish")
@allow(WORK)
def finish_job(job_id: JobId, body: FinishBody, jobs: TheJobs) -> Job:
    """End a run. A failed job with attempts left waits for its next attempt."""
    outcome = Outcome(body.kind, body.result, body.message, body.retryable, body.until)
    return jobs.finish(_recorded(jobs, held_lease(jobs, job_id, body)), outcome)


@router.post("/jobs/{job_id}/release")
@allow(WORK)
def release_job(job_id: JobId, body: ReleaseBody, jobs: TheJobs) -> Job:
    """Release a running job: it is ready for another worker at once, and the attempt does not count.

    A job whose process could not open the store 30 times in a row fails.
    """
    lease = _recorded(jobs, held_lease(jobs, job_id, body))
    return jobs.release(lease, body.reason, is_unopened=body.is_unopened)


@creation.post("/jobs/{job_id}/logs")
@allow(WORK)
def add_log_lines(job_id: JobId, body: LinesBody, jobs: TheJobs) -> Written:
    """Store log lines of a job, in order."""
    lease = held_lease(jobs, job_id, body)
    now, expiry = jobs.clock.now(), expiry_of(ReportRules.of(lease.job).logs_ttl_seconds, jobs.clock.seconds())
    return _write(
        jobs,
        job_id,
        [
            log_line(
                job_id,
                each.timestamp or now,
                each.level,
                each.message,
                source=each.source,
                exception=each.exception,
                time_to_live=expiry,
            )
            for each in body.lines
        ],
    )


@creation.post("/jobs/{job_id}/metrics")
@allow(WORK)
def add_metrics(job_id: JobId, body: MetricsBody, jobs: TheJobs) -> Written:
    """Store values that the job has measured, also under the job that its roll-up rule names."""
    rules = ReportRules.of(held_lease(jobs, job_id, body).job)
    now, expiry = jobs.clock.now(), expiry_of(rules.metrics_ttl_seconds, jobs.clock.seconds())
    values = [{**each.model_dump(), "timestamp": each.timestamp or now} for each in body.metrics]
    metrics = [JobMetric(job_id=job_id, time_to_live=expiry, **value) for value in values]
    written = _write(jobs, job_id, metrics)
    if rules.roll_up is not None:
        seconds = jobs.clock.seconds()
        _write(jobs, rules.roll_up.job_id, [copy for metric in metrics for copy in rules.copies(metric, seconds)])
    return written


def _write(jobs: Jobs, job_id: str, records: Sequence[JobLog | JobMetric]) -> Written:
    buffer = RecordBuffer(jobs.store, job_id)
    for record in records:
        buffer.add(record)
    buffer.close()
    return Written(count=len(records))
