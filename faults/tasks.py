"""What the jobs of the experiments do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from jobtable.errors import LeaseLostError
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import task


@task
def work(job: JobContext, seconds: float) -> int:
    """Takes its time, and says so."""
    job.log("begins")
    job.checkpoint(b"state", step=1)
    time.sleep(seconds)
    job.progress(50, "half")
    return job.epoch


@task
def end(job: JobContext, how: str) -> None:
    """Comes to its end in the way that it is told to."""
    job.metric(f"metric of {job.job_id}", 1)
    match how:
        case "prints":
            print("line\n" * 2_000)
        case "raises":
            raise ValueError("as it was told to")
        case "leaves a process":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        case "hangs":
            time.sleep(3600)


@task
def outlive_the_lease(job: JobContext, folder: str) -> str:
    """In its first run waits until its lease is gone, then writes what it should not; notes what became of that."""
    if job.epoch > 1:
        return "done"
    notes = Path(folder) / job.job_id
    notes.with_suffix(".new").write_text(str(os.getpid()))
    notes.with_suffix(".new").rename(notes.with_suffix(".begun"))
    while not notes.with_suffix(".go").exists():
        time.sleep(0.02)
    lease = job._lease  # what a worker has, and a task should not use
    attempts: dict[str, Callable[[], object]] = {
        "status": lambda: job.jobs.report(lease, progress=99, message="stale"),
        "checkpoint": lambda: job.checkpoint(b"stale", step=99),
        "artifact": lambda: job.artifact("stale", b"stale"),
        "heartbeat": lambda: job.jobs.heartbeat(lease),
        "release": lambda: job.jobs.release(lease, "stale"),
        "completion": lambda: job.jobs.finish(lease, Outcome.completed("stale")),
    }
    lines = [f"{what} {_refusal_of(attempt)}" for what, attempt in attempts.items()]
    notes.with_suffix(".part").write_text("\n".join(lines))
    notes.with_suffix(".part").rename(notes.with_suffix(".noted"))
    return "stale"


def _refusal_of(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except LeaseLostError:
        return "refused"
    return "written"
