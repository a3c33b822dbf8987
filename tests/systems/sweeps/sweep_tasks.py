"""Tasks that the tests of sweeps run."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import StopTask, task

HELD_FROM = "TESTS_HOLD_TRIALS_FROM"
"""In the environment: the number of the first trial that is held after its first epoch, as are those after it."""


class Killed(BaseException):
    """The process is gone, as far as a test within it can say that."""


@dataclass
class Death:
    """After how many epochs the process dies."""

    after: int | None = None

    def come_nearer(self) -> None:
        """An epoch has passed."""
        if self.after is not None:
            self.after -= 1
            if self.after == 0:
                raise Killed


DEATH = Death()


@task(inline=True)
def bowl(x: float, y: float) -> float:
    """Lowest at (1, -2)."""
    DEATH.come_nearer()
    return (x - 1) ** 2 + (y + 2) ** 2


@task(inline=True)
def descend(job: JobContext, x: float, y: float, epochs: int = 9, seconds: float = 0.0) -> None:
    """Comes nearer to its value with every epoch; reports and keeps it. How fast differs from trial to trial."""
    saved = job.resume()
    first = 1 if saved is None else int(saved.read()) + 1
    for epoch in range(first, epochs + 1):
        time.sleep(seconds)
        DEATH.come_nearer()
        job.metric("loss", (x - 1) ** 2 + (y + 2) ** 2 + abs(x * y) / epoch, epoch=epoch)
        DEATH.come_nearer()
        job.checkpoint(str(epoch).encode(), epoch=epoch)


@task(inline=True)
def obey(job: JobContext, x: float, y: float) -> dict[str, float]:
    """Ends with what it has when it is asked to."""
    return {"so_far": x} if job.should_stop() else {"loss": x + y}


@task(inline=True)
def take_steps(job: JobContext, x: float, y: float) -> float:
    """Counts in steps, of which reinforcement learning takes very many."""
    for step in (1_000, 20_000_000, 99_999_999):
        job.metric("loss", x + y, step=step)
    return x + y


@task
def train(job: JobContext, x: float, y: float, epochs: int = 9, seconds: float = 0.0) -> None:
    """The same in a process of its own."""
    if HELD_FROM in os.environ and int(job.job_id.rpartition("-")[2]) >= int(os.environ[HELD_FROM]):
        descend(job, x, y, 1, seconds)
        job.flush()
        while True:
            time.sleep(0.05)
    descend(job, x, y, epochs, seconds)


@task(inline=True)
def struggle(job: JobContext, x: float, y: float, epochs: int = 9) -> float:
    """Descends as `descend` does, and fails on the way where x is very low."""
    descend(job, x, y, epochs if x > -3 else 4)
    if x <= -3:
        raise ValueError("x is too low")
    return x + y


@task(inline=True)
def worsen(job: JobContext, x: float) -> float:
    """Looks better on the way than it is at the end."""
    job.metric("loss", x, epoch=1)
    return x + 100


@task(inline=True)
def vanish(job: JobContext, x: float, y: float) -> float:
    """Comes nearer to zero than a table has numbers for."""
    for epoch in range(1, 10):
        job.metric("loss", 10.0 ** (-20 * epoch), epoch=epoch)
    return 5e-181


@task(inline=True)
def fail_below(x: float, y: float) -> dict[str, float]:
    """Fails for half of the plane."""
    if x < 0:
        raise ValueError("x is below 0")
    return {"loss": x + y, "x": x}


@task(inline=True)
def diverge(x: float, y: float) -> float:
    """Has no result that could be compared."""
    return float("nan")


@task(inline=True)
def explode(job: JobContext, x: float, y: float) -> float:
    """Has no number any more from its third epoch on, and does not look."""
    for epoch in range(1, 10):
        job.metric("loss", 1.0 if epoch < 3 else float("inf"), epoch=epoch)
    return 1.0


@task(inline=True)
def give_up(job: JobContext, x: float, y: float) -> float:
    """Sees by itself that half of the plane is not worth its time; or is told to stop."""
    job.metric("loss", x, epoch=1)
    if x < 0 or job.should_stop():
        raise StopTask("x is below 0")
    return x


@task(inline=True)
def say_nothing(x: float, y: float) -> None:
    """Forgets to say what came of it."""


@task(inline=True)
def echo(x: float) -> dict[str, float]:
    """Its parameter is its objective."""
    return {"x": x}
