"""Metrics of a training run, stored durably one by one and in batches, against MLflow on SQLite."""

# The peers are installed in the environment of the benchmarks only.
# mypy: disable-error-code="import-not-found, misc, no-untyped-call, unused-ignore"
# pyright: reportMissingImports=false

from __future__ import annotations

import itertools
import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Metric

from bench.measure import Contender, compare
from jobtable.app import open_jobs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.submit.definition import NewJob
from jobtable.testing.servers import cache_folder

PEER = "MLflow on SQLite"
BATCH = 1000


def run() -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder()) as name:
        folder = Path(name)
        jobs = open_jobs(f"file:{folder / 'ours.db'}")
        jobs.submit(NewJob(name="train", task="bench.job_tasks:add"))
        (lease,) = jobs.claim("default", limit=1, instance_id="bench", lease_seconds=600)
        with JobContext(jobs, lease, flush_seconds=600) as context:
            ours, our_batch = _ours(context)
            peer, peer_batch = _mlflow(folder)
            compare("metrics, one by one", Contender("jobtable", ours), Contender(PEER, peer), targets={PEER: 10})
            compare(
                f"metrics, {BATCH} at once",
                Contender("jobtable", our_batch, BATCH),
                Contender(PEER, peer_batch, BATCH),
                targets={PEER: 3},
            )
        jobs.store.close()


def _ours(context: JobContext) -> tuple[Callable[[], None], Callable[[], None]]:
    steps = itertools.count()

    def one() -> None:
        context.metric("loss", 0.25, step=next(steps))
        context.flush()

    def many() -> None:
        for _ in range(BATCH):
            context.metric("loss", 0.25, step=next(steps))
        context.flush()

    return one, many


def _mlflow(folder: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.create_experiment("bench", artifact_location=str(folder / "artifacts"))
    run_id = client.create_run(experiment).info.run_id
    steps = itertools.count()

    def one() -> None:
        client.log_metric(run_id, "loss", 0.25, step=next(steps))

    def many() -> None:
        now = int(time.time() * 1000)
        client.log_batch(run_id, metrics=[Metric("loss", 0.25, now, next(steps)) for _ in range(BATCH)])

    return one, many
