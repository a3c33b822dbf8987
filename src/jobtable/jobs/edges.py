"""What the condition of an edge says about the job that it points to."""

from __future__ import annotations

from jobtable.jobs.definition import EdgeCondition
from jobtable.jobs.entities import Job, JobDependency
from jobtable.jobs.records import FINAL, Status


def condition_of(edge: JobDependency) -> EdgeCondition:
    """The condition of an edge; an edge without one waits for completion."""
    return EdgeCondition.COMPLETED if edge.condition is None else EdgeCondition(edge.condition)


def is_met_by(condition: EdgeCondition, dependency: Job) -> bool:
    """Whether the dependency, as it is, satisfies the condition."""
    match condition:
        case EdgeCondition.STARTED:
            return dependency.started_at is not None
        case EdgeCondition.COMPLETED:
            return dependency.status is Status.COMPLETED
        case EdgeCondition.FINISHED:
            return dependency.status in FINAL
        case EdgeCondition.FAILED:
            return dependency.status is Status.FAILED


def is_broken_by(condition: EdgeCondition, dependency: Job) -> bool:
    """Whether the dependency has ended so that the condition cannot be satisfied any more."""
    return dependency.status in FINAL and not is_met_by(condition, dependency)
