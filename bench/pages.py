"""The pages with 100,000 jobs in the store: how long the overview and the first page of jobs take to answer."""

from __future__ import annotations

import statistics
import threading
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.measure import report
from jobtable.app import Services
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.submit.definition import NewJob
from jobtable.settings import Settings
from jobtable.web.application import create_app
from jobtable.web.listening import address_of, bind, server_on

JOBS = 100_000
ENDED = 5_000
REQUESTS = 30
LIMIT_MS = 100
PAGES = {
    "overview": "/",
    "first page of jobs": "/jobs",
    "failed jobs": "/jobs?status=FAILED",
    "API: first page of jobs": "/api/v1/jobs",
}


def run() -> None:
    """Fill a store, serve it, and ask for each page some times."""
    with TemporaryDirectory() as folder:
        store = f"file:{Path(folder) / 'pages.db'}?durability=normal"
        objects = f"file:{Path(folder) / 'objects'}"
        with Services.open(store, objects) as services:
            fill(services, JOBS)
            settings = Settings(requests_per_minute=1_000_000)
            server = server_on(create_app(services, settings))
            with bind("127.0.0.1", 0) as listening:
                thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
                thread.start()
                for name, path in PAGES.items():
                    rate = 1000 / median_ms(address_of(listening) + path)
                    report(f"{name}, with {JOBS:,} jobs", rate, f"{LIMIT_MS} ms a page", 1000 / LIMIT_MS, target=1.0)
                server.should_exit = True
                thread.join()


def fill(services: Services, count: int) -> None:
    """Jobs of some users in some queues, of which some have ended."""
    jobs = services.engine
    for queue in range(8):
        jobs.submit_many(
            NewJob(name=f"job {number}", task="x:y", queue=f"queue-{queue}", user=f"user-{number % 20}")
            for number in range(count // 8)
        )
        leases = jobs.claim(f"queue-{queue}", limit=ENDED // 8, instance_id="bench", lease_seconds=3600)
        ended = [
            (lease, Outcome.failed("no", retryable=False) if number % 10 == 0 else Outcome.completed(None))
            for number, lease in enumerate(leases[: len(leases) * 9 // 10])
        ]
        jobs.finish_many(ended)


def median_ms(url: str) -> float:
    """How long a page takes, after a first request that is not counted."""
    request = urllib.request.Request(url, headers={"Accept": "text/html"})
    times = []
    for _ in range(REQUESTS + 1):
        begin = time.perf_counter()
        with urllib.request.urlopen(request) as answer:
            answer.read()
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times[1:])
