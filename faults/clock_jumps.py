"""Wall clocks that jump by a day, forwards and backwards: no lease is lost by it, and none is kept alive.

`python -m faults.clock_jumps URL JUMPS LEASE_SECONDS SLOTS` is a worker whose wall clock is off by as many seconds as
the file JUMPS says.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from faults.clocks import open_jumping
from faults.jobs import jobs_in_folder, problems_in, start, unfinished, url_of

from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.worker import Worker

_DAY_SECONDS = 86_400
_LEASE_SECONDS = 3.0
_LONGER_LEASES_SECONDS = (12.0, 48.0)
"""A lease is also lost where the machine stands still for so long: a longer one is not, and a day ends all of them."""
_MANY = 10_000
_PATIENCE_SECONDS = 240.0


def run(trials: int = 10, seed: int = 1) -> Iterator[dict[str, object]]:
    """Let the clocks of workers jump while jobs run, and while the jobs of dead workers wait to be taken over."""
    chance = random.Random(seed)
    problems: list[str] = []
    for _ in range(trials):
        problems += _healthy(chance)
        with jobs_in_folder("clock-jumps") as (jobs, folder):
            problems += _dead(jobs, folder, chance)
    for problem in problems:
        print(problem, file=sys.stderr)
    yield {"fault": "clock_jumps", "trials": trials, "violations": len(problems), "seed": seed}


def _healthy(chance: random.Random) -> list[str]:
    """Two workers whose clocks jump: no lease is lost by that."""
    lost: list[str] = []
    for lease_seconds in (_LEASE_SECONDS, *_LONGER_LEASES_SECONDS):
        with jobs_in_folder("clock-jumps") as (jobs, folder):
            lost = _lost(jobs, folder, chance, lease_seconds)
            problems = [*unfinished(jobs), *problems_in(jobs)]
        if problems or not lost:
            return problems
    return lost


def _lost(jobs: Jobs, folder: Path, chance: random.Random, lease_seconds: float) -> list[str]:
    """The jobs that did not run once, longer than their leases."""
    for _ in range(2):
        jobs.submit(_work(2 * lease_seconds))
    clocks = [_jump(folder / f"jumps-{number}", chance) for number in range(2)]
    workers = [start("faults.clock_jumps", url_of(folder), jumps, lease_seconds, 1) for jumps in clocks]
    while any(not job.is_final for job in jobs.queries.list_jobs()):
        time.sleep(0.3)
        for jumps in clocks:
            _jump(jumps, chance)
    for worker in workers:
        worker.terminate()
        worker.communicate()
    lost = [job for job in jobs.queries.list_jobs() if (job.lease_epoch, job.interruptions) != (1, 0)]
    return [f"job {job.job_id} lost its healthy lease of {lease_seconds:g} s" for job in lost]


def _dead(jobs: Jobs, folder: Path, chance: random.Random) -> list[str]:
    """A worker is killed: another one, whose clock jumps, takes over after the lease time of its own patience."""
    job_id = jobs.submit(_work(0)).job_id
    dead_jumps, jumps = (_jump(folder / f"jumps-{number}", chance) for number in range(2))
    dead = open_jumping(url_of(folder), str(dead_jumps))
    with dead.store:
        [lease] = dead.claim("default", limit=1, instance_id="dead", lease_seconds=_LEASE_SECONDS)
    begun = time.monotonic()
    worker = start("faults.clock_jumps", url_of(folder), jumps, _LEASE_SECONDS, 1)
    taken_after = None
    while not (job := jobs.queries.get_job(job_id)).is_final and time.monotonic() - begun < _PATIENCE_SECONDS:
        time.sleep(0.1)
        _jump(jumps, chance)
        if taken_after is None and job.status is not Status.RUNNING:
            taken_after = time.monotonic() - begun
    worker.terminate()
    worker.communicate()
    if job.status is not Status.COMPLETED:
        return [f"job {lease.job.job_id} of a dead worker was kept alive: it is {job.status}"]
    if taken_after is not None and taken_after < _LEASE_SECONDS:
        return [f"job {lease.job.job_id} was taken after {taken_after:.1f} s, before its lease had ended"]
    return problems_in(jobs)


def _work(seconds: float) -> NewJob:
    return NewJob(name="work", task="faults.tasks:work", params={"seconds": seconds}, most_interruptions=_MANY)


def _jump(jumps: Path, chance: random.Random) -> Path:
    """Set a clock to a time of up to a day before or after the real one."""
    written = jumps.with_suffix(".new")
    written.write_text(str(chance.choice([-_DAY_SECONDS, 0, _DAY_SECONDS])))
    return written.rename(jumps)


def main(url: str, jumps: str, lease_seconds: str, slots: str) -> None:
    """Work until drained."""
    opener = partial(open_jumping, url, jumps)
    Worker(opener, ["default"], slots=int(slots), lease_seconds=float(lease_seconds), drain_seconds=0).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
