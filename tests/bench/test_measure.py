"""What `make bench` prints can be read by a program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SLEEPING = """
import time
from bench.measure import Contender, compare

compare(
    "sleep",
    Contender("jobtable", lambda: time.sleep(0.001), operations=2),
    Contender("slow", lambda: time.sleep(0.01)),
    Contender("slower", lambda: time.sleep(0.02)),
    targets={"slow": 3},
    rounds=1,
)
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def test_each_peer_gives_one_line() -> None:
    lines = [json.loads(line) for line in python("-c", SLEEPING).stdout.splitlines()]
    assert [line["peer"] for line in lines] == ["slow", "slower"]
    assert [line.get("target") for line in lines] == [3, None]
    for line in lines:
        assert line.keys() - {"target"} == {"bench", "ours", "peer", "peer_value", "ratio", "unit"}
        assert line["ratio"] == pytest.approx(line["ours"] / line["peer_value"], rel=0.01)


def test_an_unknown_benchmark_is_refused_with_the_names_there_are() -> None:
    done = python("-m", "bench", "nonsense")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "no benchmark nonsense; there are round_trip," in done.stderr
