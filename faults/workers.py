"""kill -9 of workers at random points: every job reaches a final status, once.

`python -m faults.workers URL LEASE_SECONDS SLOTS` is a worker that says when it begins, and works until it is killed.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial

from faults.jobs import jobs_in_folder, problems_in, start, unfinished, url_of

from jobtable.app import open_jobs
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.worker import Worker

_LEASE_SECONDS = 1.5
_JOBS_PER_WORKER = 5
_MANY = 10_000
"""Leases as short as these are also lost by a machine that stands still for a moment."""


def run(trials: int = 200, seed: int = 1, at_once: int = 4) -> Iterator[dict[str, object]]:
    """Kill so many workers, some of which work at once; then let one finish what is left."""
    chance = random.Random(seed)
    with jobs_in_folder("workers") as (jobs, folder):
        url = url_of(folder)
        workers = [start("faults.workers", url, _LEASE_SECONDS, 2) for _ in range(min(at_once, trials))]
        for number in range(trials):
            for _ in range(_JOBS_PER_WORKER):
                params = {"seconds": chance.uniform(0, 1.0)}
                jobs.submit(NewJob(name="work", task="faults.tasks:work", params=params, most_interruptions=_MANY))
            kill(workers.pop(0), chance.uniform(0, 1.5))
            if number + at_once < trials:
                workers.append(start("faults.workers", url, _LEASE_SECONDS, 2))
        opener = partial(open_jobs, url)
        Worker(opener, ["default"], slots=4, lease_seconds=_LEASE_SECONDS, until_empty=True).run()
        interrupted = sum(job.interruptions for job in jobs.queries.list_jobs())
        problems = problems_in(jobs) + unfinished(jobs)
    for problem in problems:
        print(problem, file=sys.stderr)
    told = {"trials": trials, "violations": len(problems), "interrupted": interrupted, "seed": seed}
    yield {"fault": "workers", **told}


def kill(worker: subprocess.Popen[str], seconds: float) -> None:
    """Kill a worker so many seconds after it has begun."""
    if worker.stdout is None or not worker.stdout.readline():
        raise RuntimeError("a worker did not begin")
    time.sleep(seconds)
    worker.kill()
    worker.communicate()


def main(url: str, lease_seconds: str, slots: str) -> None:
    """Work until killed."""
    worker = Worker(partial(open_jobs, url), ["default"], slots=int(slots), lease_seconds=float(lease_seconds))
    print("begins", flush=True)
    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
