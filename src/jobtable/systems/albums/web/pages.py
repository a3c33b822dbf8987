"""The pages of executions and their tasks."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from jobtable.app import Services
from jobtable.clock import wall_time
from jobtable.errors import ObjectNotFoundError
from jobtable.objects import content_type
from jobtable.store import Store
from jobtable.systems.albums.album_executions import FORMER, Executions, is_former
from jobtable.systems.albums.entities import (
    Execution,
    TaskStatus,
    ValidationTask,
    WorkflowMetrics,
    WorkflowType,
    workflows,
)
from jobtable.systems.albums.metrics import count_if_few
from jobtable.systems.albums.style_comparison import MEASURES, Measured
from jobtable.systems.albums.web.api import TheAlbums
from jobtable.systems.albums.web.run_api import ComparisonId, TheComparisons
from jobtable.systems.albums.workflow_runs import run_of, runs_of
from jobtable.web.events import LiveTopics
from jobtable.web.formats import NOTHING
from jobtable.web.guard import READ, PageRoute, allow
from jobtable.web.injection import AllServices, TheStore, path_id
from jobtable.web.pages.frame import find_gone, picture_address, render

router = APIRouter(route_class=PageRoute, include_in_schema=False)
TOPICS = LiveTopics((workflows,), lambda _change: ["executions"], ("executions",))
"""Pages reload on any change to executions, tasks or metrics."""

_SHOWN = 15
_MOST_PENDING = 100
_MOST_DAYS = 60
_MOST_TODAY = 2000
_MOST_LISTED = 20_000
_MEASURES = (
    ("execution_count", "Executions per day", 1, ",d"),
    ("avg_duration_ms", "Average duration in seconds", 1000, ",.3~f"),
    ("avg_cost_per_execution", "Average cost per execution", 1, "$.6~f"),
)
"""The compared fields: name, title, divisor to the unit of the title, and plotly.js number format."""
_COLOURS = {WorkflowType.STEP_FUNCTIONS: "accent-ground", WorkflowType.DURABLE_FUNCTIONS: "good-fill"}
_PLOTTED = ("elapsed_ms", "work_ms", "queue_ms", "state_bytes", "gb_seconds", "cost")


@router.get("/executions")
@allow(READ)
def show_executions(request: Request, store: TheStore, albums: TheAlbums) -> Response:
    """Show the executions of both workflow types and compare them by day."""
    sides = [(kind, albums.list_newest_executions(kind, limit=_SHOWN)) for kind in WorkflowType]
    day = wall_time(store.clock).date()
    today = {kind: count_if_few(store, day, kind, most=_MOST_TODAY) for kind in WorkflowType}
    metrics = {kind: _days(store, kind, counted) for kind, counted in today.items()}
    return render(
        request,
        "albums/executions.html",
        title="Executions",
        sides=sides,
        plots=_comparisons(metrics),
        is_uncounted=None in today.values(),
        waiting=len(list(albums.list_pending_tasks(limit=_MOST_PENDING + 1))),
        most_counted=_MOST_PENDING,
    )


def _days(store: Store, kind: WorkflowType, today: WorkflowMetrics | None) -> list[WorkflowMetrics]:
    """Return the stored metrics of the last days, and those of today unless it has too many executions to count."""
    kept = store.query(WorkflowMetrics.by_period(workflow_type=kind), newest_first=True, limit=_MOST_DAYS)
    days = list(kept)[::-1]
    if today is None or not today.execution_count:
        return days
    return [*(each for each in days if each.date != today.date), today]


def _comparisons(metrics: dict[WorkflowType, list[WorkflowMetrics]]) -> list[dict[str, Any]]:
    """Return a plot for each measure that has values."""
    days = [day for each in metrics.values() for day in each]
    return [
        {
            "traces": [_trace(kind, of_kind, name, units) for kind, of_kind in metrics.items()],
            "isByDay": True,
            "title": title,
            "format": form,
            "isCount": name == "execution_count",
        }
        for name, title, units, form in _MEASURES
        if any(getattr(day, name) for day in days)
    ]


def _trace(kind: WorkflowType, days: list[WorkflowMetrics], name: str, units: int) -> dict[str, Any]:
    return {
        "type": "bar",
        "x": [day.date.isoformat() for day in days],
        "y": [getattr(day, name) / units for day in days],
        "name": kind.value,
        "colour": _COLOURS[kind],
    }


@router.get("/executions/tasks")
@allow(READ)
def show_tasks(request: Request, store: TheStore, albums: TheAlbums) -> Response:
    """Show the tasks that wait for a person, and those answered recently."""
    pending = list(albums.list_pending_tasks(limit=_MOST_PENDING + 1))
    of_kinds = [ValidationTask.by_status(workflow_type=kind, status=TaskStatus.COMPLETED) for kind in WorkflowType]
    answered = [task for key in of_kinds for task in store.query(key, newest_first=True, limit=_SHOWN)]
    answered.sort(key=lambda task: task.completed_at or task.created_at, reverse=True)
    return render(
        request,
        "albums/tasks.html",
        title="Tasks",
        pending=pending[:_MOST_PENDING],
        answered=answered[:_SHOWN],
        has_more=len(pending) > _MOST_PENDING,
    )


@router.get("/executions/tasks/{task_id}")
@allow(READ)
def show_task(
    request: Request, task_id: Annotated[str, path_id("task-77aa")], services: AllServices, albums: TheAlbums
) -> Response:
    """Show a task with a form to check and correct its albums."""
    task = albums.get_task(task_id)
    return render(
        request,
        "albums/task.html",
        title="Check albums",
        task=task,
        source=_source(services, task.image_s3_key),
    )


@router.get("/executions/compare")
@allow(READ)
def show_comparisons(request: Request, comparisons: TheComparisons) -> Response:
    """Show the newest comparisons of the two styles."""
    return render(request, "albums/comparisons.html", title="Comparisons", comparisons=comparisons.list_newest())


@router.get("/executions/compare/{comparison_id}")
@allow(READ)
def show_comparison(request: Request, comparison_id: ComparisonId, comparisons: TheComparisons) -> Response:
    """Show what the executions of both styles measured, in a table and in plots."""
    compared = comparisons.read(comparison_id)
    rows = [
        (each.title, [figure_text(each.medians[kind], each.unit) for kind in WorkflowType])
        for each in compared.measured
        if any(each.values.values())
    ]
    return render(
        request,
        "albums/comparison.html",
        title="Comparison",
        compared=compared,
        rows=rows,
        kinds=list(WorkflowType),
        plots=[_plot(each) for each in compared.measured if each.name in _PLOTTED and any(each.values.values())],
    )


def _plot(measured: Measured) -> dict[str, Any]:
    """Return a plot with a bar for each execution."""
    unit = f" in {measured.unit}" if measured.unit else ""
    traces = [
        {
            "type": "bar",
            "x": list(range(1, len(values) + 1)),
            "y": values,
            "name": kind.value,
            "colour": _COLOURS[kind],
        }
        for kind, values in measured.values.items()
    ]
    return {"traces": traces, "title": f"{measured.title}{unit}", "x": "run"}


@router.get("/executions/{execution_id}")
@allow(READ)
def show_execution(
    request: Request, execution_id: Annotated[str, path_id("exec-2f1c")], services: AllServices, albums: TheAlbums
) -> Response:
    """Show an execution with its albums and tasks."""
    found = albums.get_execution_with_albums(execution_id)
    tasks = albums.list_execution_tasks(found.execution.workflow_type, execution_id).page(size=50).items
    return render(
        request,
        "albums/execution.html",
        title=f"Execution {execution_id}",
        execution=found.execution,
        albums=found.albums,
        tasks=tasks,
        source=_source(services, found.execution.image_s3_key),
        run=_run_page(services, found.execution),
        figures=_figures(found.execution),
        former=FORMER.format(id=execution_id) if is_former(services.get(Executions).find_watch(execution_id)) else None,
    )


def _run_page(services: Services, execution: Execution) -> str | None:
    """Return the page of the run of an execution; None if there is no run."""
    if runs_of(services.engine, execution.workflow_type).look(execution) is None:
        return None
    kind = "executions" if execution.workflow_type is WorkflowType.STEP_FUNCTIONS else "durable"
    return "/".join(["/workflows", kind, *(quote(each, safe="") for each in run_of(execution))])


def _figures(execution: Execution) -> list[tuple[str, str]]:
    """Return what was measured of an execution, as titles and texts."""
    found = execution.figures if isinstance(execution.figures, dict) else {}
    return [
        (title, figure_text(found[name], unit)) for name, title, unit in MEASURES if found.get(name) not in (None, 0)
    ]


def figure_text(value: float | None, unit: str) -> str:
    """Return a figure with its unit."""
    if value is None:
        return NOTHING
    if unit == "$":
        return f"${value:.6f}"
    return f"{value:,.6g} {unit}".strip()


class _Source(NamedTuple):
    """The image or listing of an execution, as far as a page can show it."""

    picture: str | None = None
    listing: str | None = None
    gone: str | None = None
    """The key of an object that no longer exists."""


def _source(services: Services, key: str) -> _Source:
    if find_gone(services.objects, [key]):
        return _Source(gone=key)
    return _Source(picture=picture_address(key), listing=_listing(services, key))


def _listing(services: Services, key: str) -> str | None:
    """Return the start of the object if it is text."""
    if not content_type(key).startswith("text/"):
        return None
    try:
        return services.objects.get_range(key, 0, _MOST_LISTED).decode(errors="replace")
    except ObjectNotFoundError:
        return None
