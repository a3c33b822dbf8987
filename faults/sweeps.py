"""A sweep of a real model is killed with kill -9, all its processes at once, at a random point, and resumed.

It must come to the same trials, the same decisions and the same best configuration as one that nobody disturbed.
The sweep is the one in examples/sweeps.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from faults.jobs import jobs_in_folder, problems_in, url_of

from jobtable.jobs.stored.field_types import Status
from jobtable.systems.sweeps.service import Sweeps

_FOLDER = Path(__file__).parent.parent / "examples" / "sweeps"
_FILE = "gradient_boosting.yaml"
_START = "from jobtable.cli.main import run; run()"
_PATIENCE_SECONDS = 300.0


def run(trials: int = 5, seed: int = 1) -> Iterator[dict[str, object]]:
    """Run the sweep once undisturbed, then so many times with a kill on the way."""
    chance = random.Random(seed)
    begin = time.monotonic()
    expected, problems = _swept(None)
    seconds = time.monotonic() - begin
    for number in range(trials):
        got, more = _swept(seconds * chance.uniform(0.1, 0.9))
        problems += more
        if got != expected:
            different = [one for one, other in zip(got, expected, strict=False) if one != other] or [len(got)]
            problems.append(f"run {number} came to something else: {different[0]}")
    for problem in problems:
        print(problem, file=sys.stderr)
    told = {"trials": trials, "violations": len(problems), "undisturbed_seconds": round(seconds, 1), "seed": seed}
    yield {"fault": "sweeps", **told}


def _swept(killed_after: float | None) -> tuple[list[object], list[str]]:
    """What every trial of the sweep came to, and what is wrong with its records."""
    with jobs_in_folder("sweeps") as (jobs, folder):
        options = ("--workers", "2", "--lease-seconds", "2", "--store", url_of(folder))
        process = _start("run", _FILE, "--id", "s", *options)
        if killed_after is not None:
            time.sleep(killed_after)
            _kill_with_workers(process)
            process.wait()
            # Whether the kill came before the submission, during the sweep, or after its end: this goes on.
            process = _start("run", _FILE, "--id", "s", *options)
        process.wait(_PATIENCE_SECONDS)
        problems = problems_in(jobs)
        sweeps = Sweeps(jobs)
        if sweeps.get_progress("s").status is not Status.COMPLETED:
            problems.append(f"the sweep is {sweeps.get_progress('s')}")
        best = sweeps.find_best("s")
        trials = [(trial.number, trial.params, trial.status, trial.value) for trial in sweeps.list_trials("s")]
        return [*trials, best], problems


def _start(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _START, "sweeps", *arguments]
    return subprocess.Popen(command, cwd=_FOLDER, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _kill_with_workers(process: subprocess.Popen[bytes]) -> None:
    """Kill a command, and first its workers, which would otherwise see that it is gone and end in order."""
    found = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False)
    for worker in found.stdout.split():
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.kill(int(worker), signal.SIGKILL)
    process.kill()
