"""An execution with long names."""

from __future__ import annotations

from tests.systems.albums import access_patterns as albums

from jobtable.app import Services
from jobtable.systems.albums.entities import WorkflowType
from jobtable.systems.albums.service import AlbumWorkflows

PATHS = ["/executions/e", "/executions/tasks"]
"""The pages that show them."""


def fill(services: Services, long: str) -> None:
    """Store something with this name wherever a name is."""
    services.get(AlbumWorkflows)  # with its table
    store = services.store
    store.put(albums.execution("e", WorkflowType.STEP_FUNCTIONS, 0))
    named = {"album_name": long, "artist": long}
    store.put(albums.album("e", 1).replace(**named, year_original=1950, year_validated=True, price_estimate=1000))
    task = albums.task("t", WorkflowType.STEP_FUNCTIONS, 0)
    store.put(task.replace(albums=[each.replace(**named) for each in task.albums]))
