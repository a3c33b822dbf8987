"""Workers that are stopped with SIGSTOP past their lease and then go on: all that they write is rejected."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from faults.jobs import jobs_in_folder, problems_in, start, unfinished, url_of

from jobtable.app import open_jobs
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Instance, Job
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.worker import Worker

_LEASE_SECONDS = 3.0
_ATTEMPTS = ("status", "checkpoint", "artifact", "heartbeat", "release", "completion")


def run(trials: int = 100, at_once: int = 5) -> Iterator[dict[str, object]]:
    """Make so many zombies, some at once."""
    problems: list[str] = []
    zombies = 0
    with jobs_in_folder("zombies") as (jobs, folder):
        while zombies < trials:
            made = _make_zombies(jobs, folder, min(at_once, trials - zombies))
            zombies += len(made)
            problems += [problem for found in made for problem in found]
        problems += problems_in(jobs) + unfinished(jobs)
    for problem in problems:
        print(problem, file=sys.stderr)
    refused = zombies * len(_ATTEMPTS) - len(problems)
    yield {"fault": "zombies", "trials": trials, "violations": len(problems), "refused": refused}


def _make_zombies(jobs: Jobs, folder: Path, count: int) -> list[list[str]]:
    """What is wrong with each zombie; a worker that lost its job before it was stopped, or has ended it, is none."""
    url = url_of(folder)
    new = NewJob(name="outlive", task="faults.tasks:outlive_the_lease", params={"folder": str(folder)})
    notes = [folder / jobs.submit(new).job_id for _ in range(count)]
    workers = [start("faults.workers", url, _LEASE_SECONDS, 1) for _ in range(count)]
    stopped: list[int] = []
    try:
        _wait_for(lambda: all(note.with_suffix(".begun").exists() for note in notes))
        stopped = [pid for worker in workers for pid in (worker.pid, *_children_of(worker.pid))]
        _stop(stopped, jobs)
        notes = [note for note in notes if jobs.queries.get_job(note.name).lease_epoch == 1]
        Worker(partial(open_jobs, url), ["default"], slots=2, lease_seconds=_LEASE_SECONDS, until_empty=True).run()
        before = {note.name: _items_of(jobs, note.name) for note in notes}
        for note in notes:
            note.with_suffix(".go").touch()
        _wait_for(lambda: all(note.with_suffix(".noted").exists() or _has_ended(note) for note in notes))
        notes = [note for note in notes if note.with_suffix(".noted").exists()]
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        for worker in workers:
            worker.terminate()
            worker.communicate()
    return [_problems(jobs, note, before[note.name]) for note in notes]


def _stop(pids: list[int], jobs: Jobs) -> None:
    """Stop processes, but none in the middle of a write: it would hold the lock of the file, and all would wait."""
    while True:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        probe = Instance(instance_id="probe", instance_type="probe", launched_at=jobs.clock.now())
        writing = threading.Thread(target=jobs.store.put, args=(probe,), daemon=True)
        writing.start()
        writing.join(2.0)
        if not writing.is_alive():
            return
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        writing.join()


def _problems(jobs: Jobs, note: Path, before: set[str]) -> list[str]:
    noted = dict(line.split() for line in note.with_suffix(".noted").read_text().splitlines())
    found = [
        f"the stale {what} of {note.name} was {noted.get(what)}" for what in _ATTEMPTS if noted.get(what) != "refused"
    ]
    job = jobs.queries.get_job(note.name)
    if job.result != "done" or job.lease_epoch < 2:
        found.append(f"job {job.job_id} has the result {job.result!r} in epoch {job.lease_epoch}")
    if _items_of(jobs, note.name) != before:
        found.append(f"job {job.job_id} has items that were written after it had ended")
    return found


def _has_ended(note: Path) -> bool:
    """Whether the first process of a job is gone: its worker noticed in time that it had lost the job."""
    try:
        return ") Z " in Path(f"/proc/{note.with_suffix('.begun').read_text()}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def _items_of(jobs: Jobs, job_id: str) -> set[str]:
    """The items of a job that leases protect; log lines are not fenced."""
    kinds = ("JobStatus", "JobCheckpoint", "JobArtifact", "Job")
    items = jobs.store.collection(Job.key(job_id=job_id))
    return {repr(item) for item in items if type(item).__name__ in kinds}


def _children_of(pid: int) -> list[int]:
    """The process that forks for a worker; the jobs' own processes go on."""
    said = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in said.stdout.split()]


def _wait_for(is_so: Callable[[], bool], seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError("the zombies did not do what they should")
        time.sleep(0.02)
