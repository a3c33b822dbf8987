"""The steps of a durable function, written with AWS's SDK, against DBOS on SQLite and the SDK's own local runner."""

# The SDK's runner is installed for the tests and the benchmarks only.
# mypy: disable-error-code="import-not-found, unused-ignore"
# pyright: reportMissingImports=false
from __future__ import annotations

import json
import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from aws_durable_execution_sdk_python import DurableContext, durable_execution

from bench.measure import not_measured
from bench.step_rates import STEPS, Workflow, compare_steps, dbos_steps
from jobtable.app import Services
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.testing.servers import cache_folder
from jobtable.workflows.functions import function
from jobtable.workflows.table_and_queues import FUNCTIONS_QUEUE

_noted: dict[str, list[float]] = {}


def run() -> None:
    logging.disable(logging.INFO)
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder()) as name, _jobtable(Path(name)) as ours:
        folder, bench = Path(name), "steps of a durable function"
        try:
            with dbos_steps(folder) as peer:
                compare_steps(bench, ours, "DBOS on SQLite", peer, target=3)
        except ImportError as error:
            not_measured(f"{bench} against DBOS", error)
        try:
            compare_steps(bench, ours, "AWS's local runner on SQLite", _local_runner(folder), target=10)
        except ImportError as error:
            not_measured(f"{bench} against AWS's local runner", error)


@function(name="note-times", inline=True)
@durable_execution
def note_times(event: Any, context: DurableContext) -> int:
    """Note the time in every step."""

    def note(_: object) -> int:
        _noted[event].append(time.perf_counter())
        return len(_noted[event])

    return sum(context.step(note, name=f"step {number}") for number in range(STEPS))


@contextmanager
def _jobtable(folder: Path) -> Iterator[Workflow]:
    """A durable execution on the embedded engine, whose lease fences every step."""
    with Services.open(f"file:{folder / 'durable.db'}") as services:
        jobs = services.engine

        def workflow(times: list[float]) -> None:
            name = str(time.perf_counter_ns())
            _noted[name] = times
            services.durable.start("note-times", name, name=name)
            (lease,) = jobs.claim(FUNCTIONS_QUEUE, limit=1, instance_id="bench", lease_seconds=60)
            with JobContext(jobs, lease) as context:
                report = run_task(lease.job.definition, StopFlag(), partial(_same, context))
            jobs.finish(lease, report.outcome())

        yield workflow


def _local_runner(folder: Path) -> Workflow:
    """The runner that AWS ships for tests, with its store on disk; it waits for no disk (synchronous=NORMAL)."""
    from aws_durable_execution_sdk_python_testing.runner import DurableFunctionTestRunner  # noqa: PLC0415
    from aws_durable_execution_sdk_python_testing.stores.sqlite import SQLiteExecutionStore  # noqa: PLC0415

    store = SQLiteExecutionStore.create_and_initialize(folder / "runner.db")

    def workflow(times: list[float]) -> None:
        name = str(time.perf_counter_ns())
        _noted[name] = times
        with DurableFunctionTestRunner(note_times, poll_interval=0.02, store=store) as runner:
            runner.run(json.dumps(name))

    return workflow


def _same(context: JobContext) -> JobContext:
    return context
