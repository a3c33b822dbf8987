"""What the pages of journeys look at as it changes."""

from __future__ import annotations

from collections.abc import Iterator

from jobtable.store.changes import Change
from jobtable.systems.journeys.entities import Journey, journeys
from jobtable.web.events import LiveTopics, id_in


def _topics_of(change: Change) -> Iterator[str]:
    """journeys: every change; journey:ID: a journey and everything under it."""
    yield "journeys"
    yield f"journey:{id_in(change.new_item or change.old_item or {})}"


TOPICS = LiveTopics(
    (journeys,), _topics_of, ("journeys",), {"journey": lambda journey_id: Journey.key(journey_id=journey_id)}
)
