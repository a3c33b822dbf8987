"""A worker as a program: `python -m tests.jobs.worker_process STORE_URL [SLOTS] [LEASE_SECONDS] [DRAIN_SECONDS]`."""

from __future__ import annotations

import logging
import sys
from functools import partial

from jobtable.app import open_jobs
from jobtable.jobs.worker.worker import Worker


def main(url: str, slots: str = "1", lease_seconds: str = "2", drain_seconds: str = "30") -> None:
    """Work until drained."""
    logging.basicConfig(level=logging.INFO)
    worker = Worker(
        partial(open_jobs, url),
        ["default"],
        slots=int(slots),
        lease_seconds=float(lease_seconds),
        drain_seconds=float(drain_seconds),
        preload=["tests.jobs.worker_tasks"],
    )
    print(worker.run(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
