"""Submitting a job again, as a new one that may be changed."""

from __future__ import annotations

from jobtable.errors import JobStateError
from jobtable.jobs.lifecycle.owners import owner_of
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import DEFAULT_QUEUE, Definition, NewJob


def copy_of(job: Job) -> NewJob:
    """Return a new job that does the same, without user, key, id, parent and dependencies; or raise JobStateError."""
    problem = why_no_copy(job)
    if problem is not None:
        raise JobStateError(f"job {job.job_id} cannot be submitted again: {problem}")
    definition = job.definition
    own = ("name", "description", "job_type", "priority", "tags", "estimated_duration", "max_attempts")
    return NewJob(
        **{name: getattr(job, name) for name in own},
        **{name: getattr(definition, name) for name in Definition.model_fields},
        queue=job.queue_name or DEFAULT_QUEUE,
        config={name: value for name, value in (definition.model_extra or {}).items() if name != "roll_up"},
    )


def why_no_copy(job: Job) -> str | None:
    """Return why a job cannot be submitted again, or None."""
    definition = job.definition
    if definition.problem is not None:
        return definition.problem
    if definition.task is None:
        return "it is a group"
    if owner_of(job) is not None:
        return "it is part of something larger; start that again"
    return None
