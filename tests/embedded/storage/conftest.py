"""A storage with one table, and what the tests do with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.embedded.storage.samples import create_table

from jobtable.embedded.storage import Storage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "test.db"


@pytest.fixture
def storage(path: Path) -> Iterator[Storage]:
    """A storage on a file, with the table `tab`: key (p, s), indexes by_group (g, r) and by_rank (r, keys only)."""
    made = Storage(path)
    create_table(made)
    yield made
    made.close()
