"""Logs: eight processes write one under frozen clocks, writers are killed, and one log grows very long.

Nothing is lost or doubled, each writer's lines stay in order, memory is bounded, and reading the tail or following
costs the same however long the log is.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from jobtable.connection import connect
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.read.logs import JobLogs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import JobLog, main
from jobtable.jobs.submit.definition import NewJob
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store

_REPOSITORY = Path(__file__).parents[1]
_PROCESSES = 8
_MOST_GROWTH_MB = 64
_MOST_UNITS = 8
_LONGEST_LOSS_SECONDS = 5
"""Twice the flush time of a writer is 0.2 s; the rest is for a slow disk."""
_KILLS_FOR_ONE_LOSS = 4
"""A machine that stands still makes a loss long: it counts if it is so with other writers too."""


def run(trials: int = 1_000_000, seed: int = 1) -> Iterator[dict[str, object]]:
    """Write one log of so many lines; the other experiments are smaller by their nature."""
    with tempfile.TemporaryDirectory(prefix="jobtable-logs-") as folder:
        yield writers(f"file:{folder}/writers.db", max(trials // 200, 25))
        yield kills(f"file:{folder}/kills.db", max(trials // 50_000, 1), seed)
        yield long_log(f"file:{folder}/long.db", trials)


def writers(url: str, lines: int) -> dict[str, object]:
    """Processes whose clocks stand still at the same instant write lines and metrics of one job."""
    with connect(url) as store:
        lease = claimed(store)
        job_id = lease.job.job_id
        processes = [start_writer(url, job_id, f"w{number}", lines) for number in range(_PROCESSES)]
        problems = [f"writer {process.args!r} failed" for process in processes if process.wait() != 0]
        problems += order_problems((line.message for line in store.query(JobLog.key(job_id=job_id))), lines)
        metrics = Jobs(store, MemoryObjectStore()).queries.list_metric(job_id, "shared")
        problems += order_problems((f"{metric.unit} {metric.value:.0f}" for metric in metrics), lines)
    return _told("log_writers", lines * _PROCESSES, problems)


def order_problems(seen: Iterator[str], lines: int) -> list[str]:
    """What is wrong with the lines `w0 0`, `w0 1`, ... of each writer: missing, doubled, or out of order."""
    following = {f"w{number}": 0 for number in range(_PROCESSES)}
    problems = []
    for message in seen:
        writer, number = message.split()
        if int(number) != following[writer]:
            problems.append(f"{message} came when {following[writer]} was due")
        following[writer] = int(number) + 1
    return problems + [f"{writer} ends with {number}" for writer, number in following.items() if number != lines]


def kills(url: str, times: int, seed: int) -> dict[str, object]:
    """kill -9 of a writer: what it has logged is there up to some line, without a gap, and what was there stays."""
    chance = random.Random(seed)
    problems: list[str] = []
    longest_lost = 0.0
    with connect(url) as store:
        for _ in range(times):
            losses: list[float] = []
            while len(losses) < _KILLS_FOR_ONE_LOSS and all(lost > _LONGEST_LOSS_SECONDS for lost in losses):
                lost, found = _kill_writer(store, url, chance)
                losses.append(lost)
                problems += found
            longest_lost = max(longest_lost, min(losses))
    if longest_lost > _LONGEST_LOSS_SECONDS:
        problems.append(f"what was logged {longest_lost:.1f} s before the end was lost")
    return {**_told("log_kills", times, problems), "longest_loss_seconds": round(longest_lost, 2)}


def _kill_writer(store: Store, url: str, chance: random.Random) -> tuple[float, list[str]]:
    """How long before its end a writer had logged what was lost with it, and what is wrong with the rest."""
    problems: list[str] = []
    job_id = claimed(store).job.job_id
    with start_writer(url, job_id, "w", -1) as writer:
        before = 0
        while before == 0:
            time.sleep(chance.uniform(0.01, 0.3))
            before = store.count(JobLog.key(job_id=job_id))
        killed = time.monotonic()
        os.kill(writer.pid, signal.SIGKILL)
        times_of = writer.stdout.read().split() if writer.stdout else []
    there = [line.message for line in store.query(JobLog.key(job_id=job_id))]
    if there != [f"w {number}" for number in range(len(there))]:
        problems.append(f"the lines of job {job_id} have gaps or another order")
    if len(there) < before:
        problems.append(f"{before} lines of job {job_id} were there, then {len(there)}")
    lost = max((killed - float(first_lost) for first_lost in times_of[len(there) : len(there) + 1]), default=0.0)
    return lost, problems


def long_log(url: str, lines: int) -> dict[str, object]:
    """One log grows: memory stays, and the tail and a step of following cost what they cost at first."""
    with connect(url) as store:
        jobs = Jobs(store, MemoryObjectStore())
        logs = JobLogs(store, jobs.objects)
        lease = claimed(store)
        before_mb = _peak_mb()
        started = time.perf_counter()
        with JobContext(jobs, lease) as context:
            for number in range(lines):
                context.log(f"line {number} of a log that grows: loss 0.12345, 678 samples a second")
        written = time.perf_counter() - started
        tail = _measured(store, lambda: logs.tail(lease.job.job_id, 100))
        followed = logs.follow(lease.job.job_id, tail=1)
        list(islice(followed, 1))
        with JobContext(jobs, lease) as context:
            context.log("one more")
        step = _measured(store, lambda: next(followed))
        counted = sum(1 for _ in logs.lines(lease.job.job_id))
        growth_mb = _peak_mb() - before_mb
    problems = [] if counted == lines + 1 else [f"{counted} lines of {lines + 1}"]
    problems += [] if growth_mb <= _MOST_GROWTH_MB else [f"memory grew by {growth_mb:.0f} MB"]
    problems += [] if tail[0] <= _MOST_UNITS and step[0] <= 2 else [f"read units: tail {tail[0]}, step {step[0]}"]
    return {
        **_told("long_log", lines, problems),
        "lines_per_second": round(lines / written),
        "memory_growth_mb": round(growth_mb, 1),
        "tail_read_units": tail[0],
        "tail_ms": tail[1],
        "follow_step_read_units": step[0],
        "follow_step_ms": step[1],
    }


def claimed(store: Store) -> Lease:
    """The lease of a new job, on a store that may have no tables yet."""
    if main.name not in store.tables.names():
        store.tables.create(main)
    jobs = Jobs(store, MemoryObjectStore())
    jobs.submit(NewJob(name="job", task="module:function"))
    (lease,) = jobs.claim("default", limit=1, instance_id="writer", lease_seconds=3600)
    return lease


def start_writer(url: str, job_id: str, name: str, lines: int) -> subprocess.Popen[bytes]:
    """A process that logs."""
    command = [sys.executable, "-m", "faults.log_writer", url, job_id, name, str(lines)]
    return subprocess.Popen(command, cwd=_REPOSITORY, stdout=subprocess.PIPE if lines < 0 else None)


def _measured(store: Store, read: Callable[[], object]) -> tuple[float, float]:
    """The read units and the milliseconds that something takes."""
    with store.capacity.measure() as spent:
        started = time.perf_counter()
        read()
        took = time.perf_counter() - started
    return sum(units.read for units in spent.values()), round(took * 1000, 2)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _told(fault: str, trials: int, problems: list[str]) -> dict[str, object]:
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    return {"fault": fault, "trials": trials, "violations": len(problems)}
