"""Functions of the tests, and a worker for them in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from aws_durable_execution_sdk_python import DurableContext, durable_execution

from jobtable.app import Services
from jobtable.cli.background import beside
from jobtable.jobs.engine import Jobs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.workflows.functions import function

QUEUES = ("functions", "workflows")


@function(inline=True)
def add(event: dict[str, Any]) -> Any:
    """Return a sum."""
    return event["a"] + event["b"]


@function(inline=True)
def broken(event: dict[str, Any]) -> Any:
    """Fail."""
    raise ValueError("it does not work")


@function(inline=True)
@durable_execution
def ask(event: dict[str, Any], context: DurableContext) -> Any:
    """Return the answer of a person."""
    return context.wait_for_callback(lambda callback_id, _: print(callback_id), name=event["question"])


def driving(services: Services) -> AbstractContextManager[None]:
    """Call the functions and move the executions of a store in this process while the block runs."""

    def drive(is_over: threading.Event) -> None:
        while not is_over.wait(0.02):
            for queue in QUEUES:
                work_once(services.engine, queue)

    return beside(drive, "worker of functions")


def wait_until(is_true: Callable[[], bool]) -> None:
    """Return when something is true."""
    while not is_true():
        time.sleep(0.01)


def work_once(jobs: Jobs, queue: str) -> int:
    """Run the jobs of a queue that are ready, once; gives their number."""
    jobs.promote_due(queue)
    leases = jobs.claim(queue, limit=10, instance_id="driver", lease_seconds=60)
    for lease in leases:
        context = JobContext(jobs, lease)
        report = run_task(lease.job.definition, StopFlag(), partial(_same, context))
        context.close()
        jobs.finish(lease, report.outcome())
    return len(leases)


def _same(context: JobContext) -> JobContext:
    return context
