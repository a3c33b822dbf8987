"""What the experiments with jobs share: a store in a folder, programs on it, and what must hold of its records."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobtable.app import open_jobs
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import has_lease
from jobtable.jobs.stored.field_types import FINAL, Status

REPOSITORY = Path(__file__).parents[1]


def url_of(folder: Path) -> str:
    """The store in a folder."""
    return f"file:{folder}/jobs.db"


@contextmanager
def jobs_in_folder(name: str) -> Iterator[tuple[Jobs, Path]]:
    """An engine on a new store, and the folder that it is in."""
    with tempfile.TemporaryDirectory(prefix=f"jobtable-{name}-", ignore_cleanup_errors=True) as folder:
        jobs = open_jobs(url_of(Path(folder)))
        try:
            yield jobs, Path(folder)
        finally:
            jobs.store.close()
            jobs.objects.close()


def start(module: str, *arguments: object) -> subprocess.Popen[str]:
    """A program of the experiments; its lines can be read."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> list[str]:
    """Wait for a program's end; gives its lines."""
    said, _ = process.communicate()
    return said.splitlines()


def problems_in(jobs: Jobs) -> list[str]:
    """What is wrong with the records: counts that differ from a recount, and histories that end twice or not at all."""
    found = []
    everyone = list(jobs.queries.list_jobs())
    for queue in jobs.queries.list_queues():
        name = queue.queue_name
        places = sum(1 for _ in jobs.queries.list_jobs_of_queue(name))
        held = sum(job.queue_name == name and has_lease(job) for job in everyone)
        if (queue.job_count, queue.running_count) != (places, held):
            found.append(f"queue {name} counts {queue.job_count} and {queue.running_count}, not {places} and {held}")
    for job in everyone:
        history = [line.status for line in jobs.queries.list_statuses(job.job_id)]
        finals = sum(status in FINAL for status in history)
        if history[-1] is not job.status or finals != (job.status in FINAL):
            found.append(f"job {job.job_id} is {job.status} with the history {', '.join(history)}")
    return found


def unfinished(jobs: Jobs) -> list[str]:
    """The jobs that are not COMPLETED."""
    rest = [job for job in jobs.queries.list_jobs() if job.status is not Status.COMPLETED]
    return [f"job {job.job_id} is {job.status}: {job.message}" for job in rest]
