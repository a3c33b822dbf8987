"""Submitting a job again, as a new one that may be changed."""

from __future__ import annotations

from jobtable.errors import JobStateError
from jobtable.jobs.lifecycle.owners import owner_of
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import DEFAULT_QUEUE, NewJob


def copy_of(job: Job) -> NewJob:
    """Return a new job that does the same, without user, key, id, parent and dependencies; or raise JobStateError."""
    problem = why_no_copy(job)
    if problem is not None:
        raise JobStateError(f"job {job.job_id} cannot be submitted again: {problem}")
    definition = job.definition
    return NewJob(
        name=job.name,
        task=definition.task,
        params=definition.params,
        queue=job.queue_name or DEFAULT_QUEUE,
        description=job.description,
        job_type=job.job_type,
        priority=job.priority,
        tags=job.tags,
        estimated_duration=job.estimated_duration,
        max_attempts=job.max_attempts,
        timeout_seconds=definition.timeout_seconds,
        memory_mb=definition.memory_mb,
        retry=definition.retry,
        most_interruptions=definition.most_interruptions,
        grace_seconds=definition.grace_seconds,
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
