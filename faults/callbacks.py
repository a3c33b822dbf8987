"""Executions that wait for a callback hold no worker, and are found when they are answered or due.

A clock that jumps takes the place of the time that they wait.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

from faults.jobs import problems_in, url_of

from jobtable.app import Services
from jobtable.jobs.lifecycle.leases import has_lease
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.worker.inline import BATCH_SIZE, StopFlag, run_task
from jobtable.testing import FakeClock
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import Execution, ExecutionStatus
from jobtable.workflows.asl.execution.executions import executions_of
from jobtable.workflows.asl.verbs import RunnableMachine
from jobtable.workflows.message_handlers import message_handler
from jobtable.workflows.table_and_queues import EXECUTIONS_QUEUE

_NAME = "asking"
_TIMEOUT_SECONDS = 3600
_LEASE_SECONDS = 600.0
_MACHINE = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "Parameters": {"QueueUrl": "silent-inbox", "MessageBody": {"token.$": "$$.Task.Token"}},
            "TimeoutSeconds": _TIMEOUT_SECONDS,
            "End": True,
        }
    },
}


@message_handler("silent-inbox")
def receive(*_: object) -> None:
    """Keep silent: the experiment knows the tokens."""


def run(trials: int = 10_000) -> Iterator[dict[str, object]]:
    """Let so many executions wait; answer every second one, and let the others run out of time."""
    clock = FakeClock()
    with (
        tempfile.TemporaryDirectory(prefix="jobtable-callbacks-") as folder,
        Services.open(url_of(Path(folder)), clock=clock) as services,
    ):
        _ = services.executions
        seconds = {}
        begun = time.perf_counter()
        _start(services, trials)
        seconds["to wait"] = time.perf_counter() - begun
        problems = _not_waiting(services, trials)
        begun = time.perf_counter()
        _answer(services, range(0, trials, 2))
        answered = _work(services)
        seconds["to answer"] = time.perf_counter() - begun
        begun = time.perf_counter()
        clock.advance(_TIMEOUT_SECONDS + 1)
        due = _work(services)
        seconds["to time out"] = time.perf_counter() - begun
        problems += _ended_otherwise(services, trials, answered, due)
        problems += problems_in(services.engine)
    for problem in problems:
        print(problem, file=sys.stderr)
    rounded = {f"seconds {name}": round(value, 1) for name, value in seconds.items()}
    yield {"fault": "callbacks", "trials": trials, "violations": len(problems), **rounded}


def _start(services: Services, count: int) -> None:
    executions = executions_of(services.engine)
    machine = RunnableMachine(_NAME, json.dumps(_MACHINE))
    for number in range(count):
        executions.start(machine, "{}", f"run-{number}", arns=Arns())
    _work(services)


def _work(services: Services) -> int:
    """Do what is due or ready, as a worker does; return how many jobs that were."""
    jobs, done = services.engine, 0
    while True:
        while jobs.promote_due(EXECUTIONS_QUEUE):
            pass
        leases = jobs.claim(EXECUTIONS_QUEUE, limit=BATCH_SIZE, instance_id="experiment", lease_seconds=_LEASE_SECONDS)
        if not leases:
            return done
        ended = []
        for lease in leases:
            report = run_task(lease.job.definition, StopFlag(), partial(JobContext, jobs, lease))
            ended.append((lease, report.outcome()))
        jobs.finish_many(ended)
        done += len(leases)


def _not_waiting(services: Services, count: int) -> list[str]:
    held = [job.job_id for job in services.engine.queries.list_jobs() if has_lease(job)]
    running = services.store.count(Execution.by_status(machine=_NAME, status=ExecutionStatus.RUNNING))
    problems = [f"job {job_id} holds a worker" for job_id in held]
    return problems if running == count else [*problems, f"{running} of {count} executions wait"]


def _answer(services: Services, numbers: range) -> None:
    executions = executions_of(services.engine)
    for number in numbers:
        execution = executions.get(_NAME, f"run-{number}")
        executions.succeed(executions.core.token_of(execution, "0", 1), str(number))


def _ended_otherwise(services: Services, count: int, answered: int, due: int) -> list[str]:
    executions = executions_of(services.engine)
    ends = Counter(each.status for each in executions.list(_NAME))
    wanted = {ExecutionStatus.SUCCEEDED: (count + 1) // 2, ExecutionStatus.FAILED: count // 2}
    problems = [] if ends == wanted else [f"the executions ended as {dict(ends)}"]
    jobs = Counter(job.status for job in services.engine.queries.list_jobs())
    if jobs != {Status.COMPLETED: wanted[ExecutionStatus.SUCCEEDED], Status.FAILED: wanted[ExecutionStatus.FAILED]}:
        problems.append(f"their jobs ended as {dict(jobs)}")
    if (answered, due) != ((count + 1) // 2, count // 2):
        problems.append(f"{answered} were moved when they were answered, and {due} when they were due")
    for each in executions.list(_NAME):
        took = (each.stopped_at or each.started_at) - each.started_at
        if each.status is ExecutionStatus.FAILED and took > timedelta(seconds=_TIMEOUT_SECONDS + 5):
            problems.append(f"{each.name} was found after {took}")
    return problems
