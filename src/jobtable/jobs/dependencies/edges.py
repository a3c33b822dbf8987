"""What edges mean for the job that they point to and for the one that waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from jobtable.jobs.stored.entities import Job, JobDependency, JobGates
from jobtable.jobs.stored.fields import FINAL, Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition
from jobtable.model import Condition, unchanged


def count_edges(job_id: str, edges: Iterable[JobDependency], broken_by: str | None = None) -> JobGates:
    """Count what a job waits for from its edges."""
    counts: Counter[str] = Counter()
    for edge in edges:
        if edge.outcome is None:
            counts["open_starts" if edge.gate == "start" else "open_completions"] += 1
        elif edge.gate == "completion" and edge.outcome in FINAL:
            counts[edge.outcome.value.lower()] += 1
    return JobGates(job_id=job_id, broken_by=broken_by).model_copy(update=dict(counts))


def need_gates(edges: Iterable[JobDependency]) -> bool:
    """Return whether edges must be counted: not if their dependencies had already started, which is never undone."""
    return any(
        not (edge.met_at_once and edge.gate == "start" and condition_of(edge) is EdgeCondition.STARTED)
        for edge in edges
    )


def same_gates(gates: JobGates) -> Condition:
    """Return the condition that the gates are as they were read, so that decisions made by them still hold."""
    return unchanged(gates, JobGates.open_starts, JobGates.open_completions, JobGates.broken_by)


def new_edge(job_id: str, on: DependsOn, dependency: Job, now: datetime) -> JobDependency:
    """Return the edge by which a job waits for another one: open, or met at once if there is nothing to wait for."""
    is_met = is_met_by(on.condition, dependency)
    return JobDependency(
        job_id=job_id,
        dependency_job_id=on.job_id,
        type=on.type,
        condition=on.condition.value,
        gate=on.gate,
        created_at=now,
        outcome=dependency.status if is_met else None,
        met_at_once=True if is_met else None,
    )


def condition_of(edge: JobDependency) -> EdgeCondition:
    """Return the condition of an edge; an edge without one waits for completion."""
    return EdgeCondition.COMPLETED if edge.condition is None else EdgeCondition(edge.condition)


def is_met_by(condition: EdgeCondition, dependency: Job) -> bool:
    """Return whether the dependency, as it is, meets the condition."""
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
    """Return whether the dependency has ended in a way that breaks the condition."""
    return dependency.status in FINAL and not is_met_by(condition, dependency)
