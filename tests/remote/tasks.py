"""Tasks of jobs that are started through a server."""

from __future__ import annotations

from jobtable.jobs.tasks import task


@task(inline=True)
def square(x: int) -> int:
    """Lowest at 0."""
    return x * x
