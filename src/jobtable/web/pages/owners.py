"""Where a job that a system has made is shown as what it is: a trial of a sweep, a stage of a journey."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from jobtable.jobs.lifecycle.owners import is_of_system
from jobtable.jobs.stored.entities import Job


@dataclass(frozen=True)
class Owner:
    """What a job is part of."""

    name: str
    path: str


def owner_of(job: Job, parent: Job | None) -> Owner | None:
    """What a job, which stands under that parent, is part of; None for a job that stands for itself."""
    definition = job.definition
    if job.job_type in {"sweep", "planning"} and definition.is_group:
        return _owner("sweep", job.root_job_id or job.job_id)
    if not is_of_system(job):
        return None
    if (definition.task or "").startswith("jobtable.systems.sweeps."):
        return _owner("sweep", job.root_job_id)
    run = (parent or job).job_config
    return (
        _owner("journey", definition.params.get("journey_id"))
        or _owner("execution", definition.params.get("execution_id"))
        or _owner("conversation", run.get("conversation_id"))
    )


def _owner(kind: str, owner_id: object) -> Owner | None:
    return Owner(f"{kind} {owner_id}", f"/{kind}s/{quote(str(owner_id), safe='')}") if owner_id else None
