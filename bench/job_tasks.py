"""The task that every job engine runs in the benchmark: nothing, so that only the engine is measured."""

from __future__ import annotations

from jobtable.jobs.tasks import task


@task(inline=True)
def add(a: int, b: int) -> int:
    """A result to store."""
    return a + b


def plain_add(a: int, b: int) -> int:
    """The same for engines that take any function."""
    return a + b
