"""Jobs that belong to a sweep, journey, analysis or execution: they are started and deleted with it, never alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jobtable.errors import ConflictError, JobStateError, NotFoundError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import NewJob

if TYPE_CHECKING:
    from jobtable.jobs.engine import Jobs

_COMMANDS = {
    "conversation": "conversations delete",
    "album-execution": "executions delete",
    "journey_stage": "journeys delete",
    "journey_end": "journeys delete",
}
_TASKS = (
    "jobtable.systems.sweeps.",
    "jobtable.systems.journeys.",
    "jobtable.systems.conversations.",
    "jobtable.systems.albums.",
)


def is_of_system(job: Job) -> bool:
    """Whether a system has made the job: a second one like it would write into what the first belongs to."""
    return command_to_delete(job) is not None or (job.definition.task or "").startswith(_TASKS)


def command_to_delete(job: Job) -> str | None:
    """The command that deletes a job with what it belongs to; None for a job that stands for itself."""
    definition = job.definition
    command = _COMMANDS.get(job.job_type)
    # Anyone may give a job such a type; only those of a system run a task of this package, or group such jobs.
    if command is None or not (definition.task is None or definition.task.startswith("jobtable.")):
        return None
    belongs_to = definition.params.get("journey_id") or job.root_job_id or job.job_id
    return f"jobtable {command} {belongs_to}"


def submit_for(
    jobs: Jobs,
    new: Sequence[NewJob],
    owner: str,
    *,
    is_going: Callable[[], bool],
    delete: Callable[[list[Job]], object],
) -> None:
    """Submit jobs of an owner that somebody may delete at the same time; ConflictError if so, and they go with it."""
    deleted = f"{owner} was deleted meanwhile"
    try:
        submitted = jobs.submit_many(new)
    except JobStateError as error:
        if is_going():
            raise ConflictError(deleted) from error
        raise
    if is_going():
        # Whoever deletes the owner may have looked for its jobs already.
        with contextlib.suppress(JobStateError, NotFoundError):
            delete(submitted)
        raise ConflictError(deleted)
