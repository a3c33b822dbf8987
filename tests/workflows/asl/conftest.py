"""Functions that a case registers are gone after it."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from jobtable.workflows import functions


@pytest.fixture(autouse=True)
def _functions_of_one_test() -> Iterator[None]:
    with patch.dict(functions._REGISTERED):
        yield
