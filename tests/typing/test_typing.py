"""mypy and pyright see the types of entities, queries and expressions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BIN = Path(sys.executable).parent


def mypy_faults(path: Path) -> set[int]:
    command = [str(BIN / "mypy"), "--no-error-summary", "--show-error-codes", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    name = str(path.relative_to(ROOT))
    lines = [line.split(":") for line in done.stdout.splitlines()]
    return {int(parts[1]) for parts in lines if parts[0] == name and parts[2].strip() == "error"}


def pyright_faults(path: Path) -> set[int]:
    command = [str(BIN / "pyright"), "--outputjson", "--project", str(HERE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    faults = [each for each in found if each["severity"] == "error" and each["file"] == str(path)]
    return {each["range"]["start"]["line"] + 1 for each in faults}


CHECKERS = pytest.mark.parametrize("faults", [mypy_faults, pyright_faults])


@CHECKERS
def test_what_is_right_is_accepted(faults: object) -> None:
    assert callable(faults)
    assert faults(HERE / "accepted.py") == set()


@CHECKERS
def test_what_is_wrong_is_rejected(faults: object) -> None:
    assert callable(faults)
    lines = (HERE / "rejected.py").read_text().splitlines()
    expected = {number for number, line in enumerate(lines, 1) if line.endswith("# REJECTED")}
    assert faults(HERE / "rejected.py") == expected
