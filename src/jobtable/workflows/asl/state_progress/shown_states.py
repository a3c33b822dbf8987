"""What a graph shows of an execution: each state once, with how far it is in all iterations or in a chosen one."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from jobtable.workflows.asl.state_progress.following import Progress
from jobtable.workflows.asl.state_progress.visits import Lane, StateStatus, Visit

_MOST_TELLING = list(StateStatus)
"""The statuses in the order in which they are declared: of several, the first one is shown."""


@dataclass
class StateProgress:
    """How far a state is in the lanes that are shown."""

    visits: list[Visit] = field(default_factory=list)
    """The last visit of each lane."""
    visit_count: int = 0
    """How often it was entered, in these lanes."""
    lanes: Counter[StateStatus] = field(default_factory=Counter)
    """Of a Parallel or Map: its branches or iterations, by status."""

    @property
    def status(self) -> StateStatus:
        """The most telling status of the visits."""
        return min((visit.status for visit in self.visits), key=_MOST_TELLING.index)


@dataclass
class ProgressView:
    """The states that are shown by their path, and the transitions that were taken, as pairs of paths."""

    states: dict[str, StateProgress] = field(default_factory=lambda: defaultdict(StateProgress))
    taken: set[tuple[str, str]] = field(default_factory=set)


def view_of(progress: Progress, chosen: Lane | None = None) -> ProgressView:
    """Return how far the states are: of a Map in all its iterations, or only in the one that holds a chosen lane."""
    view = ProgressView()
    shown = set() if chosen is None else set(chosen.around())
    if progress.root is not None:
        _add(view, [progress.root], shown)
    return view


def _add(view: ProgressView, lanes: list[Lane], shown: set[Lane]) -> None:
    inner: dict[str, list[Lane]] = defaultdict(list)
    for lane in lanes:
        last: dict[str, Visit] = {}
        for number, visit in enumerate(lane.visits):
            path = visit.state.path
            last[path] = visit
            view.states[path].visit_count += 1
            if number:
                view.taken.add((lane.visits[number - 1].state.path, path))
        for path, visit in last.items():
            view.states[path].visits.append(visit)
            view.states[path].lanes.update(each.status for each in visit.lanes)
            inner[path] += visit.lanes
    for below in inner.values():
        if below:
            _add(view, _shown_of(below, shown), shown)


def _shown_of(lanes: list[Lane], shown: set[Lane]) -> list[Lane]:
    """Return the lanes to show: of a Map with a chosen iteration that one, of a Parallel all branches."""
    chosen = [lane for lane in lanes if lane in shown]
    if not chosen or chosen[0].parent is None or len(chosen[0].parent.state.branches) > 1:
        return lanes
    return chosen
