"""kill -9 of a writing process at random points: what was acknowledged is there, and the file needs no repair."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from faults import workload
from pydantic_core import from_json
from tests.embedded.storage.consistency import inconsistencies

from jobtable.embedded.storage import Storage

_REPOSITORY = Path(__file__).parents[1]


def run(trials: int = 200, seed: int = 1) -> Iterator[dict[str, object]]:
    """Kill that many writers, one after the other, on one file that goes on growing."""
    chance = random.Random(seed)
    acknowledged = 0
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="jobtable-kills-") as folder:
        path = Path(folder) / "kills.db"
        storage = Storage(path)
        workload.create_table(storage, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
        storage.close()
        for _ in range(trials):
            lines = kill_a_writer(path, chance)
            acknowledged += len(lines)
            problems += problems_after(path, lines)
    for problem in problems:
        print(problem, file=sys.stderr)
    yield {"fault": "kills", "trials": trials, "violations": len(problems), "acknowledged": acknowledged, "seed": seed}


def kill_a_writer(path: Path, chance: random.Random) -> list[str]:
    """The lines that a writer printed before it was killed."""
    command = [sys.executable, "-m", "faults.workload", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_REPOSITORY) as writer:
        if writer.stdout is None:
            raise RuntimeError("the writer has no output")
        first = writer.stdout.readline()
        time.sleep(chance.uniform(0, 0.2))
        os.kill(writer.pid, signal.SIGKILL)
        lines = (first + writer.stdout.read()).decode().split("\n")
    return lines[:-1]  # what follows the last line end was cut


def problems_after(path: Path, lines: list[str]) -> list[str]:
    """What is wrong with the file behind a writer that printed these lines."""
    last: dict[tuple[str, str], tuple[int, str]] = {}
    for line in lines:
        writer, key, acknowledged, kind = line.split()
        last[writer, key] = (int(acknowledged), kind)
    storage = Storage(path)
    try:
        found = inconsistencies(storage)
        table = storage.table(workload.TABLE)
        if table is None:
            return [*found, "the table is gone"]
        for (writer, key), (number, kind) in last.items():
            stored = storage.sized(table, table.position({"writer": {"S": writer}, "key": {"S": key}}))
            version = None if stored is None else int(from_json(stored[0])["version"]["N"])
            # The write after the acknowledged one may have been committed too, a delete included.
            is_later = version is not None and version > number
            is_right = version is None if kind == "delete" else version == number
            if not (is_right or is_later or (version is None and _next_was_on_its_way(lines, writer, key))):
                found.append(f"{writer} {key}: acknowledged {kind} {number}, found version {version}")
        return found
    finally:
        storage.close()


def _next_was_on_its_way(lines: list[str], writer: str, key: str) -> bool:
    """Whether the write that was under way at the end could have been a delete of this key."""
    numbers = [int(line.split()[2]) for line in lines if line.startswith(f"{writer} ")]
    following = max(numbers) + 1
    return workload.key_of(following) == key
