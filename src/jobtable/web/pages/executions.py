"""The page of an execution of a state machine: its graph, its states, its history, and what belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import Request, Response

from jobtable.app import Services
from jobtable.clock import wall_time
from jobtable.jobs.stored.entities import Job
from jobtable.store import Store
from jobtable.web.formats import segment
from jobtable.web.graphs.state_graph import draw_machine, is_distributed, what_it_does
from jobtable.web.guard import READ, allow
from jobtable.web.injection import AllServices, path_id
from jobtable.web.pages.frame import page_router, render
from jobtable.web.pages.gantt import Row, Span, span_of
from jobtable.web.pages.graph_choices import GraphChoices, TheChoices
from jobtable.web.pages.known_progress import read_progress
from jobtable.web.pages.machines import MachineName, find_state, parsed_definition, shown_json, text_of
from jobtable.workflows.asl.arns import find_states_arn
from jobtable.workflows.asl.entities import Execution, ExecutionEvent, ExecutionStatus
from jobtable.workflows.asl.execution.event_packs import History
from jobtable.workflows.asl.machine import State
from jobtable.workflows.asl.machine_transitions import describe_retry
from jobtable.workflows.asl.state_progress.following import Progress
from jobtable.workflows.asl.state_progress.shown_states import view_of
from jobtable.workflows.asl.state_progress.visits import Attempt, Lane, StateStatus, Visit

router = page_router()

_EVENTS = 50
_MOST_ROWS = 100
_MOST_VISITS = 20
_MOST_ITERATIONS = 100
_MOST_JOBS = 50
_MOST_RUNS = 20
_CHILDREN = 50
ExecutionName = Annotated[str, path_id("order-7")]
ENDED = frozenset(
    {ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT, ExecutionStatus.ABORTED}
)
REDRIVABLE = ENDED - {ExecutionStatus.SUCCEEDED}


@dataclass(frozen=True)
class Payloads:
    """What went into a visit of a state and came out, as JSON."""

    input: str
    output: str
    nested: str | None
    """The address of the execution that it started."""


@dataclass(frozen=True)
class ChosenState:
    """A state whose details are shown."""

    state: State
    visits: list[Visit]
    """The last ones, the newest first."""
    visit_count: int
    visit: Visit | None
    payloads: Payloads | None
    iterations: list[Lane]
    """Of a Map, the last ones with the chosen status."""
    iteration_counts: dict[StateStatus, int]


@router.get("/workflows/executions/{machine}/{name}")
@allow(READ)
def show_execution(
    request: Request, machine: MachineName, name: ExecutionName, services: AllServices, choices: TheChoices
) -> Response:
    """Show one execution of a state machine."""
    execution = services.executions.get(machine, name)
    definition = services.machines.read_definition(execution.definition_sha256)
    parsed = parsed_definition(definition)
    progress = None if parsed is None else read_progress(services, execution, definition)
    lane = None if progress is None else progress.lanes.get(choices.iteration)
    chosen = None
    if parsed is not None and progress is not None and (state := find_state(parsed, choices.state)):
        chosen = _chosen_state(services.store, execution, progress, state, lane, choices)
    folded = frozenset(choices.fold)
    job = services.store.find(Job.key(job_id=execution.job_id))
    children = services.engine.queries.list_children(job).page(size=_MOST_JOBS).items if job is not None else []
    return render(
        request,
        "workflows/execution.html",
        title=f"{name} of {machine}",
        execution=execution,
        machine_name=machine.partition("/")[0],
        is_ended=execution.status in ENDED,
        is_redrivable=execution.status in REDRIVABLE,
        input=shown_json(text_of(services, execution.input, execution.input_object)),
        output=shown_json(text_of(services, execution.output, execution.output_object)),
        parent=_parent(execution),
        picture=None if parsed is None else draw_machine(definition, folded, execution.processor_path or ""),
        choices=choices,
        view=None if progress is None else view_of(progress, lane),
        lane=lane,
        lane_path=[] if lane is None else [each for each in reversed(list(lane.around())) if each.parent is not None],
        chosen=chosen,
        describe_retry=describe_retry,
        what_it_does=what_it_does,
        is_distributed=is_distributed,
        waiting=[] if progress is None else _waiting(progress),
        rows=[] if progress is None else _rows(services, progress, lane, choices),
        visit_count=0 if progress is None else len(progress.visits),
        span=None if progress is None else _span(services, progress.visits),
        history=_history(services.store, execution, progress, chosen, choices),
        job=job,
        children=children,
        map_runs=list(services.executions.list_map_runs(machine, name).take(_MOST_RUNS)),
    )


@router.get("/workflows/map-runs/{map_run_id}")
@allow(READ)
def show_map_run(
    request: Request, map_run_id: Annotated[str, path_id("7d1b6c1e")], services: AllServices, cursor: str = ""
) -> Response:
    """Show one run of a distributed Map, with the executions that it started."""
    run = services.executions.get_map_run(map_run_id)
    page = services.executions.list(f"{run.machine}/{run.label}").page(cursor or None, size=_CHILDREN)
    return render(
        request,
        "workflows/map_run.html",
        title=f"Map run of {run.label}",
        run=run,
        executions=[each for each in page.items if each.map_run_id == map_run_id],
        cursor=page.cursor,
        is_first=not cursor,
    )


def _parent(execution: Execution) -> str | None:
    parent = execution.parent or {}
    return None if "name" not in parent else execution_address(parent["machine"], parent["name"])


def execution_address(machine: str, name: str) -> str:
    """Return the address of an execution's page."""
    return f"/workflows/executions/{segment(machine)}/{segment(name)}"


def _waiting(progress: Progress) -> list[Visit]:
    return [each for each in progress.visits if each.status is StateStatus.WAITING][:_MOST_VISITS]


# --- the chosen state -------------------------------------------------------------------------------------------------


def _chosen_state(
    store: Store, execution: Execution, progress: Progress, state: State, lane: Lane | None, choices: GraphChoices
) -> ChosenState:
    found = [each for each in progress.visits if each.state.path == state.path and _is_shown(each, lane)][::-1]
    visit = next((each for each in found if each.entered_id == choices.visit), found[0] if found else None)
    lanes = [] if visit is None or len(state.branches) != 1 else visit.lanes
    counts = {status: sum(each.status is status for each in lanes) for status in StateStatus}
    return ChosenState(
        state,
        found[:_MOST_VISITS],
        len(found),
        visit,
        None if visit is None else _payloads(store, execution, visit),
        [each for each in lanes if choices.status in ("", each.status)][:_MOST_ITERATIONS],
        {status: count for status, count in counts.items() if count},
    )


def _is_shown(visit: Visit, lane: Lane | None) -> bool:
    """Return whether a visit belongs to a chosen iteration: in it, inside it, or around it."""
    return lane is None or lane in visit.lane.around() or visit.lane in lane.around()


def _payloads(store: Store, execution: Execution, visit: Visit) -> Payloads:
    submitted = visit.attempts[-1].submitted_id if visit.attempts else None
    ended = visit.attempts[-1].ended_id if visit.attempts else None
    ids = [each for each in (visit.entered_id, visit.exited_id, submitted, ended) if each]
    found = _events_of(store, execution).pick(ids)
    details = {event.event_id: details_of(event) for event in found}
    outcome = details.get(submitted or 0) or details.get(ended or 0) or {}
    return Payloads(
        shown_json(details.get(visit.entered_id, {}).get("input")),
        shown_json(details.get(visit.exited_id or 0, {}).get("output")),
        _nested(outcome.get("output"), outcome.get("resourceType")),
    )


def _nested(output: Any, resource: Any) -> str | None:
    """Return the address of the execution that a state started."""
    found = None
    if resource == "states" and isinstance(output, str):
        start = output.partition('"ExecutionArn":"')[2].partition('"')[0]
        found = find_states_arn(start)
    return execution_address(*found.parts[:2]) if found is not None and found.kind == "execution" else None


def details_of(event: ExecutionEvent) -> dict[str, Any]:
    """Return the details of an event without the name of their member."""
    return dict(next(iter((event.details or {}).values()), {}))


# --- the history ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HistoryPage:
    """A part of the events of an execution, or of one state."""

    events: list[tuple[ExecutionEvent, dict[str, Any], Visit | None]]
    count: int
    has_more: bool


def _history(
    store: Store, execution: Execution, progress: Progress | None, chosen: ChosenState | None, choices: GraphChoices
) -> HistoryPage:
    ids: Sequence[int] = range(1, execution.last_event_id + 1)
    if chosen is not None and progress is not None:
        path = chosen.state.path
        ids = sorted(each for visit in progress.visits if visit.state.path == path for each in visit.event_ids)
    ordered = ids[::-1] if choices.order == "newest" else ids
    start = (choices.page - 1) * _EVENTS
    found = _events_of(store, execution).pick(ordered[start : start + _EVENTS])
    owners = {} if progress is None else {each.event_id: progress.owner_of(each.event_id) for each in found}
    events = [(each, details_of(each), owners.get(each.event_id)) for each in found]
    return HistoryPage(events, len(ids), start + _EVENTS < len(ids))


def _events_of(store: Store, execution: Execution) -> History:
    return History(store, execution.machine, execution.name, execution.last_event_id)


# --- times ------------------------------------------------------------------------------------------------------------


def _rows(services: Services, progress: Progress, lane: Lane | None, choices: GraphChoices) -> list[Row]:
    visits = [each for each in progress.visits if _is_shown(each, lane)][-_MOST_ROWS:]
    span = _span(services, visits)
    return [_row(each, span, choices) for each in visits]


def _span(services: Services, visits: Sequence[Visit]) -> Span:
    now = wall_time(services.store.clock)
    return span_of([each.entered_at for each in visits], [each.ended_at for each in visits], now)


def _row(visit: Visit, span: Span, choices: GraphChoices) -> Row:
    lanes = [each for each in visit.lane.around() if each.parent is not None]
    is_iteration = bool(lanes) and len(visit.lane.parent.state.branches) == 1 if visit.lane.parent else False
    bars = [span.bar(visit.entered_at, visit.ended_at, f"{visit.status}-ground", f"{visit.state.name}: {visit.status}")]
    if not visit.state.branches:
        bars += [_bar_of_attempt(span, visit, number, each) for number, each in enumerate(visit.attempts, 1)]
    return Row(
        visit.state.name,
        tuple(bars),
        len(lanes),
        choices.address(state=visit.state.path, visit=visit.entered_id),
        f"#{visit.lane.index}" if is_iteration else "",
    )


def _bar_of_attempt(span: Span, visit: Visit, number: int, attempt: Attempt) -> Any:
    status = (
        StateStatus.FAILED
        if attempt.has_failed
        else visit.status
        if attempt.ended_at is None
        else StateStatus.SUCCEEDED
    )
    began: datetime = attempt.started_at or attempt.began_at
    why = f" ({attempt.error})" if attempt.error else ""
    return span.bar(began, attempt.ended_at, status, f"attempt {number}: {status}{why}")
