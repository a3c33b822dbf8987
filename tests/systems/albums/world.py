"""An execution that waits for a person, for the tests of pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.web.world import MARKUP

from jobtable.app import Services
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.entities import WorkflowType
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.style_comparison import Comparisons

_DURABLE, _COMPARISON = "exec-durable", "compared"
MISSING: list[str] = ["/executions/none"]
"""Pages of what does not exist."""


def fill(services: Services, folder: Path) -> None:
    """Start what the worker of the world then runs."""
    albums = f"Radiohead - OK Computer (1997)\nBj\u00f6rk - {MARKUP} (1995)\n".encode()
    services.get(Executions).start(WorkflowType.STEP_FUNCTIONS, albums, "shelf.txt")
    services.get(Executions).start(WorkflowType.DURABLE_FUNCTIONS, albums, "shelf.txt", execution_id=_DURABLE)
    services.get(Comparisons).start([("shelf.txt", albums)], 1, comparison_id=_COMPARISON)


def made(services: Services) -> dict[str, str]:
    """The ids of what was made, by name."""
    services.get(Comparisons).confirm(_COMPARISON)
    tasks = {task.execution_id: task.task_id for task in services.get(AlbumWorkflows).list_pending_tasks()}
    durable = tasks.pop(_DURABLE)
    ((execution, task),) = tasks.items()
    return {"execution": execution, "task": task, "durable task": durable}


def paths(made: Mapping[str, str]) -> list[str]:
    """Every page, with something on it."""
    execution, task = f"/executions/{made['execution']}", f"/executions/tasks/{made['task']}"
    comparisons = ["/executions/compare", f"/executions/compare/{_COMPARISON}"]
    return ["/executions", execution, "/executions/tasks", task, f"/executions/{_DURABLE}", *comparisons]


def tables(made: Mapping[str, str]) -> list[str]:
    """Pages with tables that fit every width."""
    return ["/executions", "/executions/tasks"]


def owners(made: Mapping[str, str]) -> dict[str, set[str | None]]:
    """Where the pages of the jobs lead, by the type of the job."""
    step: set[str | None] = {f"/executions/{made['execution']}", f"/executions/{_COMPARISON}-1-1-sf"}
    durable: set[str | None] = {f"/executions/{_DURABLE}", f"/executions/{_COMPARISON}-1-1-df"}
    return {"state machine": step, "function": step, "durable execution": durable}
