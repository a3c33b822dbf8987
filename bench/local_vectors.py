"""`job.embed` with the local model: 2,000 comments of 50 tokens that are new, and the same again for another job."""

from __future__ import annotations

import random
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.measure import report
from jobtable.app import open_jobs
from jobtable.assist.assist_settings import AssistSettings
from jobtable.assist.job_assistant import JobAssistant
from jobtable.assist.minilm.sentence_model import shared_model
from jobtable.jobs.engine import Jobs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.submit.definition import NewJob
from jobtable.testing.servers import cache_folder

COMMENTS = 2_000
WORDS = 45
LIMIT_SECONDS = 15
"""On two cores."""


def run() -> None:
    """Embed the comments on a store in a file."""
    words = ("the", "a", "parcel", "phone", "arrived", "broke", "was", "never", "late", "in", "my", "great")
    chosen = random.Random(1)
    comments = [f"{number} {' '.join(chosen.choices(words, k=WORDS))}" for number in range(COMMENTS)]
    shared_model()
    cache_folder().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="bench-", dir=cache_folder()) as folder:
        jobs = open_jobs(f"file:{Path(folder) / 'vectors.db'}")
        limit = COMMENTS / LIMIT_SECONDS
        for name in ("new", "known"):
            rate = COMMENTS / _seconds(jobs, comments)
            report(f"vectors of {name} comments", rate, f"{LIMIT_SECONDS} s for all", limit, target=1.0)
        jobs.store.close()


def _seconds(jobs: Jobs, comments: list[str]) -> float:
    jobs.submit(NewJob(name="embed", task="x:y"))
    (lease,) = jobs.claim("default", limit=1, instance_id="bench", lease_seconds=3600)
    with JobContext(jobs, lease) as context:
        start = time.perf_counter()
        JobAssistant(context, AssistSettings()).embed(comments)
        return time.perf_counter() - start
