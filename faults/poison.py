"""Jobs that do everything wrong, 1 GB of output among it: they fail with the reason while their neighbours finish.

`python -m faults.poison URL` is a worker with four slots, which says how much memory it has used.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from faults.jobs import end, jobs_in_folder, problems_in, start, url_of

from jobtable.app import open_jobs
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob, RetryPolicy
from jobtable.jobs.worker.worker import Worker

_TASKS = "tests.jobs.worker_tasks"
_ATTEMPTS = 3
_POISON: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "fail": ({"message": "no"}, {}, "RuntimeError: no"),
    "leave": ({"code": 3}, {}, "exit code 3"),
    "crash": ({}, {}, "SIGSEGV"),
    "kill_itself": ({"signum": 9}, {}, "SIGKILL"),
    "eat": ({"most_mb": 300}, {"memory_mb": 200}, "its limit is 200 MB"),
    "eat_at_once": ({"size_mb": 100_000}, {"memory_mb": 200}, "its limit is 200 MB"),
    "hang": ({}, {"timeout_seconds": 2, "grace_seconds": 1}, "timeout"),
}
_MOST_MEMORY_MB = 400


def run(trials: int = 5, size_mb: int = 1024) -> Iterator[dict[str, object]]:
    """Mix so many of each kind of poison with ten times as many good jobs, and one that prints 1 GB."""
    problems: list[str] = []
    with jobs_in_folder("poison") as (jobs, folder):
        begun = time.monotonic()
        poison = {kind: [_submit(jobs, kind, *_POISON[kind][:2]) for _ in range(trials)] for kind in _POISON}
        loud = _submit(jobs, "print_much", {"size_mb": size_mb}, {})
        good = [_submit(jobs, "add", {"a": 1, "b": 1}, {"timeout_seconds": 60}) for _ in range(10 * trials)]
        [used_mb] = end(start("faults.poison", url_of(folder)))
        seconds = time.monotonic() - begun
        for kind, job_ids in poison.items():
            problems += [p for job_id in job_ids for p in _problems(jobs, kind, job_id)]
        for job_id in [*good, loud]:
            job = jobs.queries.get_job(job_id)
            if job.status is not Status.COMPLETED:
                problems.append(f"the good job {job_id} is {job.status}: {job.message}")
        if int(used_mb) > _MOST_MEMORY_MB:
            problems.append(f"the worker used {used_mb} MB")
        problems += problems_in(jobs)
    for problem in problems:
        print(problem, file=sys.stderr)
    told = {"trials": trials, "violations": len(problems), "seconds": round(seconds), "worker_mb": int(used_mb)}
    yield {"fault": "poison", **told}


def _submit(jobs: Jobs, name: str, params: dict[str, Any], limits: dict[str, Any]) -> str:
    retry = RetryPolicy(first_delay_seconds=0.1)
    new = NewJob(name=name, task=f"{_TASKS}:{name}", params=params, max_attempts=_ATTEMPTS, retry=retry, **limits)
    return jobs.submit(new).job_id


def _problems(jobs: Jobs, kind: str, job_id: str) -> list[str]:
    job = jobs.queries.get_job(job_id)
    if (job.status, job.attempts) != (Status.FAILED, _ATTEMPTS):
        return [f"{kind} {job_id} is {job.status} after {job.attempts} attempts: {job.message}"]
    if _POISON[kind][2] not in (job.message or ""):
        return [f"{kind} {job_id} does not say why it failed: {job.message}"]
    return []


def main(url: str) -> None:
    """Work until nothing is left."""
    Worker(partial(open_jobs, url), ["default"], slots=4, until_empty=True, preload=[_TASKS]).run()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


if __name__ == "__main__":
    main(*sys.argv[1:])
