"""Journeys on a store in memory; those that run on each kind of store have a world of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.systems.journeys.worlds import World, world_on

from jobtable.embedded import EmbeddedBackend
from jobtable.store import Store


@pytest.fixture
def world() -> Iterator[World]:
    with Store(EmbeddedBackend(None)) as store:
        yield world_on(store)
