"""What the commands of journeys list."""

from __future__ import annotations

from collections.abc import Iterator

from tests.golden import TIMES, golden

from jobtable.model import Entity

LISTS = ["journeys list", "journeys list --status running", "journeys logs JRN-0"]
ASKED_FOR: dict[str, str] = {}
LAST_SHOWN = {"journeys logs JRN-0"}
EMPTY = {"journeys": "journeys create SOURCE"}


def listed() -> Iterator[Entity]:
    """Three of everything."""
    yield golden("journeys/StageDefinition", journey_id="JRN-0")
    yield golden("journeys/JobExecution", journey_id="JRN-0")
    for number, at in enumerate(TIMES):
        yield golden("journeys/Journey", journey_id=f"JRN-{number}", created_at=at)
        yield golden("journeys/LogEntry", journey_id="JRN-0", log_id=f"LOG-{number}", timestamp=at)
