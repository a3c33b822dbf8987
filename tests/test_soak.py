"""What programs hold after they have done the same again and again: the short version of an experiment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]

_GREEDY = """
import subprocess, sys, threading, time
kept = []
for number in range(30):
    kept.append(open(sys.executable))
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
kept.append(subprocess.Popen(["true"]))
kept.append(b"x" * (100 << 20))
print("begins", flush=True)
time.sleep(600)
"""
_LOOK = """
import json, sys
from pathlib import Path
from faults.soak import Held, growth, held_by
before = Held(files=3, threads=1, processes=1)
print(json.dumps([growth(before, held_by(int(sys.argv[1]), Path(sys.argv[2]))), growth(before, before)]))
"""


def _said_by(*arguments: str) -> list[str]:
    """The lines that a program of the experiments prints."""
    done = subprocess.run([sys.executable, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_programs_hold_no_more_after_some_rounds() -> None:
    outcomes = [json.loads(line) for line in _said_by("-m", "faults", "--trials", "3", "soak")]
    assert [(outcome["program"], outcome["violations"]) for outcome in outcomes] == [("dynamodb serve", 0), ("up", 0)]


def test_whatever_a_program_keeps_is_seen(tmp_path: Path) -> None:
    (tmp_path / "left").touch()
    with subprocess.Popen([sys.executable, "-c", _GREEDY], stdout=subprocess.PIPE) as greedy:
        assert greedy.stdout is not None
        assert greedy.stdout.readline()
        (said,) = _said_by("-c", _LOOK, str(greedy.pid), str(tmp_path))
        greedy.kill()
    found, nothing = json.loads(said)
    kinds = ["files", "threads", "processes", "temporary_files", "megabytes"]
    assert [problem.partition(":")[0] for problem in found] == kinds
    assert nothing == []
