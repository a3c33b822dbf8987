"""Tasks that the jobs of the tests' world run."""

from __future__ import annotations

from typing import Any

from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import task


@task(inline=True)
def work(job: JobContext, text: str = "") -> dict[str, str]:
    """Logs, measures, keeps a checkpoint and an artifact."""
    for step in range(10):
        job.log(f"step {step} {text}", "WARNING" if step == 5 else "INFO")
        job.metric("loss", 1 / (step + 1), step=step)
        job.progress(10 * step, f"step {step}")
    job.checkpoint(b"state", step=9, metrics={"loss": 0.1}, is_best=True)
    job.artifact("report.html", f"<h1>{text}</h1>".encode())
    return {"text": text}


@task(inline=True)
def fail(job: JobContext, text: str) -> None:
    """Ends badly."""
    job.error(f"cannot go on: {text}")
    raise RuntimeError(text)


@task(inline=True)
def bowl(x: float, kind: str) -> float:
    """Lowest at 1, and lower for a."""
    return (x - 1) ** 2 + (kind == "b")


@task(inline=True)
def measure_anything(**given: Any) -> float:
    """Takes whatever it is given, and the shorter that is, the better."""
    return float(len(str(given)))
