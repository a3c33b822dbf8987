"""Waiting until no worker holds a job any more, before what it works on is taken away."""

from __future__ import annotations

from collections.abc import Iterable

from jobtable.errors import ConflictError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import has_lease
from jobtable.jobs.stored.entities import Job

STOPPING_SECONDS = 30.0
"""How long a worker gets to notice that its job is to stop: it looks with each heartbeat."""
_LOOK_SECONDS = 0.1


def await_workers(
    jobs: Jobs, waited_for: Iterable[Job], what: str, *, patience_seconds: float = STOPPING_SECONDS
) -> None:
    """Return when no worker holds one of the jobs; ConflictError, with what cannot be done, if that takes too long."""
    until = jobs.clock.monotonic() + patience_seconds
    for each in waited_for:
        job: Job | None = each
        while job is not None and has_lease(job):
            if jobs.clock.monotonic() >= until:
                raise ConflictError(f"cannot {what}: a worker runs job {job.job_id}. Stop it, and wait for its end")
            jobs.clock.sleep(_LOOK_SECONDS)
            job = jobs.store.find(Job.key(job_id=job.job_id))
