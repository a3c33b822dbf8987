"""Small jobs end to end, submitted, run and with their results stored, durably, against other engines.

Ours has a lease, a history item for each status and the counts of its queue; Huey and RQ have none of these. Each
engine gets the fastest way that it has: ours submits and runs in batches with its real worker, Huey runs without its
consumer's threads, DBOS in its own queue, RQ in one SimpleWorker in burst mode. All of them sync every write.
"""

# The peers are installed in the environment of the benchmarks only.
# mypy: disable-error-code="import-not-found, misc, no-untyped-call, unused-ignore"
# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import functools
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dbos import DBOS
from huey import SqliteHuey
from redis import Redis
from rq import Queue, SimpleWorker

from bench.job_tasks import plain_add
from bench.measure import not_measured, report
from bench.peer_servers import redis_server
from jobtable.app import open_jobs
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.worker import Worker
from jobtable.testing.servers import ServerUnavailable, cache_folder

ROUNDS = 5
OURS, OURS_SINGLE = "jobtable", "jobtable, submitted one by one"
JOBS = {OURS: 1500, OURS_SINGLE: 500, "Huey on SQLite": 500, "DBOS on SQLite": 40, "RQ on Redis": 200}
TARGETS = {"Huey on SQLite": 1.5}

RunJobs = Callable[[int], object]


def run() -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder())))
        engines: dict[str, RunJobs] = {
            OURS: functools.partial(_with_jobtable, f"file:{folder / 'ours.db'}"),
            OURS_SINGLE: functools.partial(_with_jobtable, f"file:{folder / 'single.db'}", one_by_one=True),
            "Huey on SQLite": _huey(folder),
            "DBOS on SQLite": stack.enter_context(_dbos(folder)),
        }
        try:
            engines["RQ on Redis"] = _rq(stack.enter_context(redis_server(folder)))
        except ServerUnavailable as error:
            not_measured("jobs against RQ", error)
        rates = _measure(engines)
    for name, rate in rates.items():
        if name != OURS:
            report("jobs end to end", rates[OURS], name, rate, target=TARGETS.get(name))


def _measure(engines: dict[str, RunJobs]) -> dict[str, float]:
    """Jobs per second of each engine, in turns, by medians; the first round warms up and is not counted."""
    rates: dict[str, list[float]] = {name: [] for name in engines}
    for number in range(ROUNDS + 1):
        for name, run_jobs in engines.items():
            start = time.perf_counter()
            run_jobs(JOBS[name])
            if number:
                rates[name].append(JOBS[name] / (time.perf_counter() - start))
    return {name: statistics.median(measured) for name, measured in rates.items()}


def _with_jobtable(url: str, count: int, *, one_by_one: bool = False) -> None:
    jobs = open_jobs(url)
    new = [NewJob(name="add", task="bench.job_tasks:add", params={"a": n, "b": 1}) for n in range(count)]
    submitted = [jobs.submit(each) for each in new] if one_by_one else jobs.submit_many(new)
    Worker(functools.partial(open_jobs, url), ["default"], mode="inline", until_empty=True).run()
    last = jobs.queries.get_job(submitted[-1].job_id)
    if (last.status, last.result) != (Status.COMPLETED, count):
        raise RuntimeError(f"the last job is {last}")
    jobs.store.close()


def _huey(folder: Path) -> RunJobs:
    huey: Any = SqliteHuey(filename=str(folder / "huey.db"), fsync=True)
    add = huey.task()(plain_add)

    def run_jobs(count: int) -> None:
        last = [add(number, 1) for number in range(count)][-1]
        while (task := huey.dequeue()) is not None:
            huey.execute(task)
        if last.get() != count:
            raise RuntimeError("Huey has lost the last result")

    return run_jobs


@contextlib.contextmanager
def _dbos(folder: Path) -> Iterator[RunJobs]:
    url = f"sqlite:///{folder / 'dbos.sqlite'}"
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False})
    add: Any = DBOS.workflow()(plain_add)
    DBOS.launch()
    DBOS.register_queue("bench", polling_interval_sec=0.01)

    def run_jobs(count: int) -> None:
        handles: list[Any] = [DBOS.enqueue_workflow("bench", add, number, 1) for number in range(count)]
        if [handle.get_result() for handle in handles][-1] != count:
            raise RuntimeError("DBOS has lost the last result")

    try:
        yield run_jobs
    finally:
        DBOS.destroy()


def _rq(port: int) -> RunJobs:
    connection = Redis(port=port)

    def run_jobs(count: int) -> None:
        queue = Queue(f"bench-{uuid.uuid4()}", connection=connection)
        last = [queue.enqueue(plain_add, number, 1) for number in range(count)][-1]
        SimpleWorker([queue], connection=connection).work(burst=True, logging_level="ERROR")
        if last.return_value() != count:
            raise RuntimeError("RQ has lost the last result")

    return run_jobs
