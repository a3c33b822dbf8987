"""Jobs that belong to something of a system: they are started and deleted with it, never alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from jobtable.errors import ConflictError, JobStateError, NotFoundError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import NewJob
from jobtable.system import Owner, declared, system_named

if TYPE_CHECKING:
    from jobtable.jobs.engine import Jobs


def owner_of(job: Job, parent: Job | None = None) -> Owner | None:
    """Return what a job belongs to, as it says itself or as its system recognises it; None if it belongs to nothing."""
    carried = job.job_config.get("owner") if isinstance(job.job_config, Mapping) else None
    if isinstance(carried, Mapping) and carried.keys() == {"system", "id"}:
        return Owner(str(carried["system"]), str(carried["id"]))
    found = (system.load(path)(job, parent) for system, path in declared("owner"))
    return next((owner for owner in found if owner is not None), None)


def command_to_delete(job: Job) -> str | None:
    """Return the command that deletes a job with what it belongs to; None for a job that is deleted alone."""
    owner = owner_of(job)
    system = None if owner is None else system_named(owner.system)
    if owner is None or system is None or system.delete_command is None:
        return None
    return f"jobtable {system.delete_command.format(id=owner.id)}"


def submit_for(
    jobs: Jobs,
    new: Sequence[NewJob],
    owner: str,
    *,
    is_going: Callable[[], bool],
    delete: Callable[[list[Job]], object],
) -> None:
    """Submit jobs of an owner that may be deleted at the same time; ConflictError if so, and the jobs go with it."""
    deleted = f"{owner} was deleted meanwhile"
    try:
        submitted = jobs.submit_many(new)
    except JobStateError as error:
        if is_going():
            raise ConflictError(deleted) from error
        raise
    if is_going():
        # The deletion may have looked for the owner's jobs before these were submitted.
        with contextlib.suppress(JobStateError, NotFoundError):
            delete(submitted)
        raise ConflictError(deleted)
