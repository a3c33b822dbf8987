"""What the commands of executions and tasks list."""

from __future__ import annotations

from collections.abc import Iterator

from tests.golden import TIMES, golden

from jobtable.model import Entity

LISTS = [
    "executions list",
    "executions list --status running",
    "tasks list",
    "tasks list --workflow-type step-functions",
]
ASKED_FOR: dict[str, str] = {}
LAST_SHOWN: set[str] = set()
EMPTY = {"executions": "executions start FILE"}


def listed() -> Iterator[Entity]:
    """Three of everything."""
    for number, at in enumerate(TIMES):
        yield golden("albums/Execution", execution_id=f"exec-{number}", created_at=at)
        yield golden("albums/ValidationTask", task_id=f"task-{number}", created_at=at)
