"""Checkpoints and artifacts that workers on other machines store for the jobs that they hold."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import Field

from jobtable.errors import ValueRefusedError
from jobtable.jobs.report.checkpoints import SavedState
from jobtable.jobs.report.recording import ReportRules, number, stored_number
from jobtable.jobs.stored.entities import JobArtifact, JobCheckpoint
from jobtable.jobs.stored.locations import checkpoint_key
from jobtable.objects.object_store import Readable
from jobtable.web.api.objects import chunks_of
from jobtable.web.api.route_parts import api_router
from jobtable.web.api.work import LeaseBody, held_lease
from jobtable.web.guard import WORK, allow
from jobtable.web.injection import JobId, TheJobs, path_id
from jobtable.web.limits import takes_file
from jobtable.web.uploads import binary_body, take

router = api_router("job files")

_Count = Annotated[int, Field(ge=0, le=10**15)]
_BYTES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}


class UploadQuery(LeaseBody):
    """The lease of an upload, and the digest that proves it is whole."""

    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$", description="Digest of the body.")


class CheckpointQuery(UploadQuery):
    """The description of a saved state."""

    step: _Count = 0
    training_epoch: _Count = Field(0, description="The epoch of the training; `epoch` is the epoch of the lease.")
    metric: list[str] = Field([], max_length=100, description="NAME=VALUE; repeat it for several metrics.")
    is_best: bool = Field(False, description="Marks this checkpoint as the best instead of the previous best.")
    keep_last: int | None = Field(None, ge=1, le=10**6, description="Keep only the last N and the best.")
    model_state: bool = True
    optimizer_state: bool = True
    ending: str = Field("", pattern=r"^(\.[A-Za-z0-9]{1,20})?$", description="Suffix of the file name.")

    def state(self) -> SavedState:
        """Return the state to store."""
        return SavedState(
            step=self.step,
            epoch=self.training_epoch,
            metrics=dict(map(_metric, self.metric)),
            is_best=self.is_best,
            model_state=self.model_state,
            optimizer_state=self.optimizer_state,
        )


class WhichQuery(LeaseBody):
    """The checkpoint to find."""

    best: bool = Field(False, description="Return the best checkpoint instead of the last.")


def _metric(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        stored = stored_number(number(name, float(value)))
    except ValueError:
        stored = None
    if not name or stored is None:
        raise ValueRefusedError(f"invalid checkpoint metric {text!r}; write NAME=VALUE with a finite number")
    return name, stored


@router.post("/jobs/{job_id}/checkpoints", openapi_extra=binary_body())
@allow(WORK)
@takes_file(whole=False)
async def save_checkpoint(
    job_id: JobId, request: Request, given: Annotated[CheckpointQuery, Query()], jobs: TheJobs
) -> JobCheckpoint:
    """Save the body as a checkpoint to resume the job from."""
    state = given.state()
    lease = await run_in_threadpool(held_lease, jobs, job_id, given)
    kept = ReportRules.of(lease.job).keep_checkpoints if given.keep_last is None else given.keep_last

    def save(body: Readable) -> JobCheckpoint:
        return jobs.recording.checkpoints(lease).add(body, state, ending=given.ending, keep_last=kept)

    return await take(request, save, sha256=given.sha256)


@router.get("/jobs/{job_id}/checkpoint")
@allow(WORK)
def find_checkpoint(job_id: JobId, given: Annotated[WhichQuery, Query()], jobs: TheJobs) -> JobCheckpoint | None:
    """Return the last or the best checkpoint of a held job, or null if it has none."""
    checkpoints = jobs.recording.checkpoints(held_lease(jobs, job_id, given))
    found = checkpoints.find_best() if given.best else checkpoints.find_latest()
    return None if found is None else found.record


@router.get("/jobs/{job_id}/checkpoints/{name}", response_class=StreamingResponse, responses=_BYTES)
@allow(WORK)
def get_checkpoint(
    job_id: JobId,
    name: Annotated[str, path_id("step-200-0f3a5b7c9d1e.pt")],
    given: Annotated[LeaseBody, Query()],
    jobs: TheJobs,
) -> StreamingResponse:
    """Return the content of a checkpoint of a held job; `name` is the last part of its `s3_key`."""
    held_lease(jobs, job_id, given)
    stream = jobs.objects.open(checkpoint_key(job_id, name))
    return StreamingResponse(chunks_of(stream), media_type="application/octet-stream")


@router.put("/jobs/{job_id}/artifacts/{name:path}", openapi_extra=binary_body())
@allow(WORK)
@takes_file(whole=False)
async def keep_artifact(
    job_id: JobId,
    name: Annotated[str, path_id("plots/loss.png")],
    request: Request,
    given: Annotated[UploadQuery, Query()],
    jobs: TheJobs,
) -> JobArtifact:
    """Store a file as an artifact of a held job; it replaces an artifact of the same name."""
    lease = await run_in_threadpool(held_lease, jobs, job_id, given)

    def keep(body: Readable) -> JobArtifact:
        return jobs.recording.artifacts(lease).put(name, body)

    return await take(request, keep, sha256=given.sha256)
