"""A worker of a batch job that kills itself with SIGKILL at a chosen point of its work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jobtable.app import open_jobs
from jobtable.assist.openai_batch_client import OpenAiBatches
from tests.assist.batch_runs import run_to_end
from tests.assist.killed_asking import Countdown, WatchedBackend

_REQUESTS = ("send_batch", "_uploaded", "look_at_batch", "read_batch", "discard_batch")


def work_until_killed(urls: tuple[str, str], folder: Path, points: int) -> None:
    """Run the only job to its end, with the settings of a folder, unless this process dies after so many points."""
    os.chdir(folder)
    countdown = Countdown(points)
    watched: Any = OpenAiBatches
    for name in _REQUESTS:
        setattr(watched, name, countdown.before(getattr(watched, name)))  # in this process alone
    with open_jobs(*urls) as jobs:
        jobs.store.backend = WatchedBackend(jobs.store.backend, countdown)
        jobs.objects.put = countdown.before(jobs.objects.put)  # type: ignore[method-assign]
        run_to_end(jobs)
