"""Short runs of the experiments in faults/: what must hold of workers holds, and the faults did happen."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = str(Path(__file__).parents[2])


@pytest.fixture(autouse=True)
def faults_on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(REPOSITORY)
    yield
    for name in [name for name in sys.modules if name.startswith("faults")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "options", "counted", "at_least"),
    [
        ("claims", {"trials": 120, "claimers": 3}, "claims", 120),
        ("workers", {"trials": 3, "at_once": 3}, "interrupted", 0),
        ("zombies", {"trials": 2, "at_once": 2}, "refused", 12),
        ("clock_jumps", {"trials": 1}, "trials", 1),
        ("machine", {"trials": 3}, "trials", 3),
        ("cloud", {"trials": 3}, "trials", 3),
    ],
)
def test_nothing_is_violated(name: str, options: dict[str, Any], counted: str, at_least: int) -> None:
    [outcome] = importlib.import_module(f"faults.{name}").run(**options)
    assert outcome["violations"] == 0
    assert outcome[counted] >= at_least
