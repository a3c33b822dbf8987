"""The main table, on each kind of store."""

from __future__ import annotations

import pytest

from jobtable.jobs.stored.entities import main
from jobtable.store import Store


@pytest.fixture
def store(each_store: Store) -> Store:
    each_store.tables.create(main)
    return each_store
