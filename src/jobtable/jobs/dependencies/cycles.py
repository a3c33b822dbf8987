"""Whether jobs would wait for each other forever.

A job has two events, its start and its end, and an edge makes one event wait for another: `gate` says which one of the
dependent, `condition` which one of the dependency. An end always waits for its own start. A cycle of events is a
deadlock, whatever gates it goes through; a group's child that waits for its parent's start, while the parent's end
waits for the child's end, is not a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from jobtable.jobs.dependencies.edges import condition_of
from jobtable.jobs.stored.entities import JobDependency
from jobtable.jobs.submit.definition import EdgeCondition, Gate

_MOST_NAMED = 10
EdgesOf = Callable[[str], Iterable[JobDependency]]


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
    """Return in words which event waits for which; of many only the first and the last."""
    named = [str(event) for event in events]
    if len(named) > _MOST_NAMED:
        half = _MOST_NAMED // 2
        named = [*named[:half], f"{len(named) - 2 * half} more, of which the last", *named[-half:]]
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
