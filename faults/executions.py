"""kill -9 of workers of state machines: every execution ends once, its history has no gap, and no job is left.

`python -m faults.executions URL LEASE_SECONDS` is a worker that says when it begins, and works until it is killed.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from faults.execution_machine import FAR_ITEMS, ITEMS, MACHINE
from faults.jobs import jobs_in_folder, problems_in, start, url_of
from faults.workers import kill

from jobtable.app import Services, open_jobs
from jobtable.errors import TaskClosedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.worker import Worker
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import (
    Execution,
    ExecutionCommands,
    ExecutionFrame,
    ExecutionSignal,
    ExecutionStatus,
)
from jobtable.workflows.asl.execution.executions import Executions, executions_of
from jobtable.workflows.asl.verbs import RunnableMachine
from jobtable.workflows.function_records import FunctionRecords
from jobtable.workflows.message_handlers import MessageHandlers
from jobtable.workflows.table_and_queues import QUEUES, TASK_MODULES

_LEASE_SECONDS = 1.5
_SLOTS = 2
_PATIENCE_SECONDS = 900.0
_NAME = "faulty"
_MOST_INTERRUPTIONS = NewJob(name="any").most_interruptions
_WHY_LOST = (
    f"each lost more than {_MOST_INTERRUPTIONS} workers, which fails a job, and the Retry of its state called the "
    "function again in a job of its own; its execution SUCCEEDED"
)


def run(trials: int = 200, seed: int = 1, at_once: int = 3) -> Iterator[dict[str, object]]:
    """Kill so many workers, each after a new execution was started; then let the last ones finish what is left."""
    chance = random.Random(seed)
    with jobs_in_folder("executions") as (jobs, folder), Services.open(url_of(folder)) as services:
        _ = services.executions
        FunctionRecords(services.store).publish()
        MessageHandlers(services.store).publish()
        executions = executions_of(services.engine)
        url, notes, answered = url_of(folder), folder / "notes", set[str]()
        workers = [start("faults.executions", url, _LEASE_SECONDS) for _ in range(at_once)]
        for number in range(trials):
            payload = {"notes": str(notes), "name": number, "items": list(range(ITEMS)), "far": list(range(FAR_ITEMS))}
            machine = RunnableMachine(_NAME, MACHINE)
            executions.start(machine, json.dumps(payload), f"run-{number}", arns=Arns())
            kill(workers.pop(0), chance.uniform(0, 1.5))
            workers.append(start("faults.executions", url, _LEASE_SECONDS))
            _answer(executions, notes, answered)
        until = time.monotonic() + _PATIENCE_SECONDS
        while _has_running(executions) and time.monotonic() < until:
            _answer(executions, notes, answered)
            time.sleep(0.1)
        for worker in workers:
            worker.terminate()
            worker.communicate()
        histories = (jobs.queries.list_statuses(job.job_id) for job in jobs.queries.list_jobs())
        interrupted = sum(line.status is Status.INTERRUPTED for history in histories for line in history)
        problems = [each for number in range(trials) for each in problems_of(executions, number)]
        lost, others = _failed_jobs(jobs)
        problems += problems_in(jobs) + others + _leftovers(services)
        lines = notes.read_text().splitlines()
    for problem in problems:
        print(problem, file=sys.stderr)
    repeated = sum(Counter(line for line in lines if line.startswith(("item", "job"))).values()) - len(
        {line for line in lines if line.startswith(("item", "job"))}
    )
    if lost:
        print(f"{len(lost)} function jobs are FAILED, which is no violation: {_WHY_LOST}", file=sys.stderr)
    counts = {"interrupted": interrupted, "calls": trials * (ITEMS + 1), "repeated": repeated, "seed": seed}
    counts["failed_function_jobs"] = len(lost)
    yield {"fault": "executions", "trials": trials, "violations": len(problems), **counts}


def _has_running(executions: Executions) -> bool:
    return executions.list(_NAME, status=ExecutionStatus.RUNNING).first() is not None


def _answer(executions: Executions, notes: Path, answered: set[str]) -> None:
    """Answer the tokens that were noted; a crash may have let one be noted twice."""
    lines = notes.read_text().splitlines() if notes.exists() else []
    for token in {line.split()[1] for line in lines if line.startswith("token ")} - answered:
        try:
            executions.succeed(token, '"yes"')
        except TaskClosedError as error:
            print(f"a token that nobody answered is closed: {error}", file=sys.stderr)
        answered.add(token)


def problems_of(executions: Executions, number: int) -> list[str]:
    """Return what is wrong with an execution."""
    name = f"run-{number}"
    execution = executions.get(_NAME, name)
    if execution.status is not ExecutionStatus.SUCCEEDED:
        return [f"{name} is {execution.status}: {execution.error} {execution.cause}"]
    problems = []
    each, asked, _, job, far = json.loads(executions.core.output_of(execution) or "null")
    if (each, asked, job, far) != (list(range(ITEMS)), "yes", "done", list(range(FAR_ITEMS))):
        problems.append(f"{name} has another output: {execution.output}")
    events = list(executions.history(_NAME, name))
    if [event.event_id for event in events] != list(range(1, len(events) + 1)):
        problems.append(f"{name}: its history has a gap or a repetition")
    if any(event.previous_id >= event.event_id for event in events):
        problems.append(f"{name}: an event follows a later one")
    counts = Counter(event.type for event in events)
    wanted = {"ExecutionStarted": 1, "ExecutionSucceeded": 1, "MapIterationSucceeded": ITEMS, "MapRunSucceeded": 1}
    problems += [f"{name}: {kind} {counts[kind]} times" for kind, count in wanted.items() if counts[kind] != count]
    (map_run,) = executions.list_map_runs(_NAME, name)
    if (map_run.succeeded_count, map_run.running_count) != (FAR_ITEMS, 0):
        problems.append(f"{name}: its map run counts {map_run.succeeded_count} and {map_run.running_count}")
    return problems


def _failed_jobs(jobs: Jobs) -> tuple[list[Job], list[str]]:
    """Return the jobs of functions that lost too many workers, and what other jobs FAILED."""
    failed = [job for job in jobs.queries.list_jobs() if job.status is Status.FAILED]
    lost = [job for job in failed if job.job_type == "function" and job.interruptions > _MOST_INTERRUPTIONS]
    return lost, [f"job {job.job_id} FAILED: {job.message}" for job in failed if job not in lost]


def _leftovers(services: Services) -> list[str]:
    kinds = (ExecutionFrame, ExecutionCommands, ExecutionSignal)
    found = [f"there is still {item!r:.200}" for kind in kinds for item in services.store.scan(kind)]
    running = (each for each in services.store.scan(Execution) if each.status is ExecutionStatus.RUNNING)
    found += [f"{each.machine}/{each.name} still runs" for each in running]
    left = (job for job in services.jobs.queries.list_jobs() if not job.is_final)
    return found + [f"job {job.job_id} is {job.status}" for job in left]


def main(url: str, lease_seconds: str) -> None:
    """Work until killed."""
    worker = Worker(
        partial(open_jobs, url),
        list(QUEUES),
        slots=_SLOTS,
        lease_seconds=float(lease_seconds),
        mode="inline",
        preload=["faults.execution_machine", *TASK_MODULES],
    )
    print("begins", flush=True)
    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
