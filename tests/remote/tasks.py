"""Tasks of jobs that are started through a server."""

from __future__ import annotations

import time

from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import task


@task(inline=True)
def square(x: int) -> int:
    """Lowest at 0."""
    return x * x


@task
def train(job: JobContext, steps: int = 3) -> dict[str, object]:
    """Tells and keeps something of every kind, and goes on from where it stood."""
    found = job.resume()
    begin = 0 if found is None else int(found.read())
    print(f"from step {begin}")
    for step in range(begin, begin + steps):
        job.info(f"step {step}")
        job.metric("loss", 1 / (step + 1), step=step)
        job.progress(100 * (step + 1) / (begin + steps))
    job.checkpoint(str(begin + steps).encode(), step=begin + steps, metrics={"loss": 0.5}, is_best=True)
    job.artifact("out/model.txt", b"weights")
    return {"begin": begin}


@task
def wait(job: JobContext) -> str:
    """Waits until it is asked to stop."""
    job.info("waiting")
    while not job.should_stop():
        time.sleep(0.05)
    return "asked to stop"


@task
def walk(job: JobContext, steps: int) -> str:
    """Tells every step, and keeps some."""
    for step in range(steps):
        job.info(f"step {step}")
        job.metric("height", step, step=step)
        if step % 5 == 4:
            job.checkpoint(str(step).encode(), step=step)
        time.sleep(0.1)
    job.artifact("path", b"straight on")
    return "there"
