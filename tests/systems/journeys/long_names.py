"""A journey with long names."""

from __future__ import annotations

from tests.systems.journeys import access_patterns as journeys

from jobtable.app import Services
from jobtable.systems.journeys.default_stages import default_stages
from jobtable.systems.journeys.service import Journeys

PATHS = ["/journeys/J"]
"""The pages that show them."""


def fill(services: Services, long: str) -> None:
    """Store something with this name wherever a name is."""
    services.get(Journeys)  # with its table
    store = services.store
    store.put(journeys.journey("J").replace(name=long))
    for stage in default_stages("J", journeys.START):
        store.put(stage.replace(name=long))
