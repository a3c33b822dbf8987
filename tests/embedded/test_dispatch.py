"""Operations are found by name, and their modules load with the first request that needs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jobtable.embedded.dispatch import OPERATIONS, handler_of
from jobtable.errors import RequestRefused

PROGRAM = """
import sys
from jobtable.cli.main import app

sys.argv = ["jobtable", "--store", "file:jobs.db", *sys.argv[1:]]
try:
    app()
finally:
    print(*(name for name in sys.modules if name.startswith("jobtable.embedded")))
"""
RARE = (".server", ".partiql", ".older", "backup", "restor", "recovery")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_has_a_function(operation: str) -> None:
    assert callable(handler_of(operation))


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(RequestRefused, match="no operation 'GetEverything'"):
        handler_of("GetEverything")


def test_a_list_of_jobs_loads_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    _loaded_by(tmp_path, "tables", "create")
    loaded = _loaded_by(tmp_path, "jobs", "list")
    assert "jobtable.embedded.backend" in loaded
    assert not [name for name in loaded if any(word in name for word in RARE)]


def _loaded_by(folder: Path, *command: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command], capture_output=True, text=True, cwd=folder, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()
