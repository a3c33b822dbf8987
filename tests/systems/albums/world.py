"""An execution that waits for a person, for the tests of pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.web.world import MARKUP

from jobtable.app import Services
from jobtable.systems.albums.example import PATHS
from jobtable.systems.albums.executions import Executions
from jobtable.systems.albums.service import AlbumWorkflows

MISSING: list[str] = []
"""Pages of what does not exist."""


def fill(services: Services, folder: Path) -> None:
    """Start what the worker of the world then runs."""
    albums = f"Radiohead - OK Computer (1997)\nBj\u00f6rk - {MARKUP} (1995)\n".encode()
    services.get(Executions).start(next(iter(PATHS.values())), albums, "shelf.txt", user="ada")


def made(services: Services) -> dict[str, str]:
    """The ids of what was made, by name."""
    task = next(iter(services.get(AlbumWorkflows).list_pending_tasks()))
    return {"execution": task.execution_id, "task": task.task_id}


def paths(made: Mapping[str, str]) -> list[str]:
    """Every page, with something on it."""
    execution, task = f"/executions/{made['execution']}", f"/executions/tasks/{made['task']}"
    return ["/executions", execution, "/executions/tasks", task]


def tables(made: Mapping[str, str]) -> list[str]:
    """Pages with tables that fit every width."""
    return ["/executions", "/executions/tasks"]


def owners(made: Mapping[str, str]) -> dict[str, set[str | None]]:
    """Where the pages of the jobs lead, by the type of the job."""
    return {"album-execution": {f"/executions/{made['execution']}"}}
