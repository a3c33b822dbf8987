"""The statuses of states, read from the history of every case."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.workflows.asl.case_files import Case, read_cases
from tests.workflows.asl.memory_runner import MemoryRunner, run_case

from jobtable.workflows.asl.interpreter.strand import Phase, Strand
from jobtable.workflows.asl.machine import StateType
from jobtable.workflows.asl.state_progress.following import Progress
from jobtable.workflows.asl.state_progress.visits import Lane, StateStatus, Visit

CASES = [case for case in read_cases() if case.type == "STANDARD"]
FAILING = [case for case in CASES if case.expect["status"] == "FAILED"]


def progress_of(runner: MemoryRunner) -> Progress:
    progress = Progress(runner.machine)
    progress.follow(runner.history)
    return progress


def lanes_in(lane: Lane) -> Iterator[Lane]:
    yield lane
    for visit in lane.visits:
        for attempt in visit.attempts:
            for inner in attempt.lanes:
                yield from lanes_in(inner)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_state_that_was_entered_is_known_and_has_ended(case: Case) -> None:
    runner, _ = run_case(case)
    progress = progress_of(runner)

    entered = [event.event_id for event in runner.history if event.type.endswith("StateEntered")]
    exited = {event.event_id for event in runner.history if event.type.endswith("StateExited")}
    assert [visit.entered_id for visit in progress.visits] == entered
    assert {visit.exited_id for visit in progress.visits} - {None} == exited
    assert all(visit.ended_at is not None and not visit.is_open for visit in progress.visits)
    assert progress.root is not None
    lanes = list(lanes_in(progress.root))
    assert sorted(each.lane_id for each in lanes) == sorted(progress.lanes)
    assert [each for each in lanes if each.is_open] == []
    for visit in progress.visits:
        left = visit.exited_id is not None
        assert left == (visit.status in (StateStatus.SUCCEEDED, StateStatus.CAUGHT)), visit.state.name
        assert all(attempt.ended_at is not None for attempt in visit.attempts), visit.state.name


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_event_belongs_to_a_state_of_its_type(case: Case) -> None:
    runner, _ = run_case(case)
    progress = progress_of(runner)

    for event in runner.history:
        owner = progress.owner_of(event.event_id)
        if event.type.startswith("Execution"):
            assert owner is None
        elif event.type.startswith(("LambdaFunction", "Activity")) or event.type.endswith(("Submitted", "Scheduled")):
            assert owner is not None
            assert owner.state.type is StateType.TASK
        elif event.type.endswith(("StateEntered", "StateExited", "StateStarted", "StateSucceeded", "StateFailed")):
            assert owner is not None
            assert event.type.startswith(owner.state.type)


@pytest.mark.parametrize("case", [case for case in FAILING if case.name != "a loop without an end"], ids=str)
def test_exactly_those_states_failed_that_took_the_execution_with_them(case: Case) -> None:
    runner, _ = run_case(case)
    progress = progress_of(runner)
    assert progress.root is not None
    assert progress.root.status is StateStatus.FAILED
    last = progress.root.last
    assert last is not None
    assert last.status is StateStatus.FAILED


class Watching(MemoryRunner):
    """A runner that compares the states that are shown as open with its frames, after each transition."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.progress = Progress(self.machine)
        self.differences: list[tuple[list[str], list[str]]] = []

    def _store(self) -> None:
        taken = len(self.history)
        super()._store()
        self.progress.follow(self.history[taken:])
        if self.run.ended is None:
            shown = sorted(visit.state.name for visit in self.progress.visits if visit.is_open)
            strands = (Strand(self.run, frame) for frame in self.run.frames.values() if frame.memory["entered_id"])
            actual = sorted(each.state.name for each in strands if _is_inside(each))
            if shown != actual:
                self.differences.append((shown, actual))


@pytest.mark.parametrize("case", [case for case in CASES if case.subject != "limits"], ids=str)
def test_while_it_runs_the_open_states_are_those_of_the_frames(case: Case) -> None:
    runner, _ = run_case(case, kind=Watching)
    assert isinstance(runner, Watching)
    assert runner.differences == []


def _is_inside(strand: Strand) -> bool:
    has_left = strand.phase in (Phase.READY, Phase.FINISHED, Phase.DROPPED, Phase.STOPPED)
    return not has_left and strand.state.type is not StateType.FAIL  # which fails as soon as it is entered


def test_events_that_come_in_parts_lead_to_the_same() -> None:
    for case in CASES[::5]:
        runner, _ = run_case(case)
        whole, parts = progress_of(runner), Progress(runner.machine)
        for event in runner.history:
            parts.follow([event])
        assert [_seen(visit) for visit in parts.visits] == [_seen(visit) for visit in whole.visits]


def _seen(visit: Visit) -> tuple[object, ...]:
    return visit.entered_id, visit.status, visit.exited_id, visit.error, visit.event_ids, len(visit.attempts)
