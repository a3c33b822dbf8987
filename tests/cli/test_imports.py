"""Small commands load little: nobody waits for libraries that a command does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jobtable import connect

HEAVY = ("boto3", "botocore", "fastapi", "uvicorn", "jinja2", "httpx", "numpy", "scipy", "plotly", "optuna")
COUNT = """
import sys
from jobtable.cli.main import run
sys.argv = ["jobtable", *sys.argv[1:]]
try:
    run()
except SystemExit as ended:
    assert not ended.code, ended
print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("command", "most"),
    [
        ("--help", 420),
        ("jobs --help", 520),
        ("jobs list", 630),
        ("queues list", 590),
        ("workers list", 590),
        ("sweeps list", 610),
        ("tables list", 590),
        ("config show", 420),
    ],
)
def test_a_small_command_loads_what_it_uses(tmp_path: Path, command: str, most: int) -> None:
    connect(f"file:{tmp_path}/.jobtable/jobtable.db").close()
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *command.split()], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = done.stderr.splitlines()[-1].split()
    assert [name for name in HEAVY if name in loaded] == []
    assert len(loaded) <= most
