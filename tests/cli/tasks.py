"""Tasks for the tests of the command line."""

from __future__ import annotations

from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import task


@task(inline=True)
def train(job: JobContext, learning_rate: float = 0.1, steps: int = 2) -> dict[str, float]:
    """Reports something of every kind."""
    for step in range(steps):
        job.info(f"step {step}")
        job.metric("loss", 1 / (step + 1), step=step)
    job.warning("nearly done")
    job.progress(90, "nearly done")
    job.checkpoint(b"weights", metrics={"loss": 0.5}, step=steps, is_best=True)
    job.artifact("model.txt", b"content")
    return {"learning_rate": learning_rate}


@task(inline=True)
def fail(job: JobContext, message: str = "no luck") -> None:
    """Fails, and says so in a way that no terminal should obey."""
    job.error("\x1b[31mred\x1b[0m [bold]markup[/bold]")
    raise RuntimeError(message)


@task(inline=True)
def pick(kind: str | None, sizes: object, rate: int = 0) -> float:
    """Has a value for a kind only."""
    if kind is None:
        raise ValueError("no kind")
    return 0.25
