"""What edges mean for the job that they point to and for the one that waits, and whether jobs would wait forever.

A job has two events, its start and its end, and an edge makes one event wait for another: `gate` says which one of the
dependent, `condition` which one of the dependency. An end always waits for its own start. A cycle of events is a
deadlock, whatever gates it goes through; a group's child that waits for its parent's start, while the parent's end
waits for the child's end, is not a cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from jobtable.jobs.stored.entities import Job, JobDependency, JobGates
from jobtable.jobs.stored.field_types import FINAL, Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, Gate
from jobtable.model import Condition, unchanged

_MOST_NAMED = 10
EdgesOf = Callable[[str], Iterable[JobDependency]]


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


class Event(NamedTuple):
    """The start or the end of a job."""

    job_id: str
    moment: Literal["start", "end"]

    def __str__(self) -> str:
        return f"the {self.moment} of {self.job_id}"


def gated(job_id: str, gate: Gate) -> Event:
    """Return the event of a dependent that waits."""
    return Event(job_id, "start" if gate == "start" else "end")


def awaited(job_id: str, condition: EdgeCondition) -> Event:
    """Return the event of a dependency that is awaited."""
    return Event(job_id, "start" if condition is EdgeCondition.STARTED else "end")


def find_path(first: Event, last: Event, edges_of: EdgesOf) -> list[Event] | None:
    """Return how the first event waits for the last one, step by step, or None if it does not."""
    came_from: dict[Event, Event | None] = {first: None}
    waiting = [first]
    while waiting:
        event = waiting.pop()
        if event == last:
            return _steps(came_from, last)
        for following in _awaited_by(event, edges_of):
            if following not in came_from:
                came_from[following] = event
                waiting.append(following)
    return None


def describe(events: Sequence[Event]) -> str:
    """Describe which event waits for which; of many, only the first and the last."""
    named = [str(event) for event in events]
    if len(named) > _MOST_NAMED:
        half = _MOST_NAMED // 2
        named = [*named[:half], f"... ({len(named) - 2 * half} more) ...", *named[-half:]]
    return " waits for ".join(named)


def _awaited_by(event: Event, edges_of: EdgesOf) -> Iterable[Event]:
    if event.moment == "end":
        yield Event(event.job_id, "start")
    for edge in edges_of(event.job_id):
        if gated(edge.job_id, edge.gate) == event:
            yield awaited(edge.dependency_job_id, condition_of(edge))


def _steps(came_from: dict[Event, Event | None], last: Event) -> list[Event]:
    steps = []
    step: Event | None = last
    while step is not None:
        steps.append(step)
        step = came_from[step]
    return steps[::-1]
