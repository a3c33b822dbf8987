"""kill -9 of workers of durable functions: every execution ends once, with one recorded result of each step.

`python -m faults.durable URL LEASE_SECONDS` is a worker that says when it begins, and works until it is killed.
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

from faults.durable_handlers import HANDLERS
from faults.jobs import jobs_in_folder, problems_in, start, unfinished, url_of
from faults.workers import kill

from jobtable.app import Services, open_jobs
from jobtable.errors import TaskClosedError
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.worker.worker import Worker
from jobtable.workflows.durable.entities import DurableStatus
from jobtable.workflows.durable.verbs import DurableVerbs
from jobtable.workflows.table_and_queues import FUNCTIONS_QUEUE

_LEASE_SECONDS = 1.5
_SLOTS = 4
_PATIENCE_SECONDS = 600.0
STEPS = ("first", "second", "once", *(f"item-{number}" for number in range(6)), "left", "right", "child", "last")


def run(trials: int = 200, seed: int = 1, at_once: int = 3) -> Iterator[dict[str, object]]:
    """Kill so many workers, each after a new execution was started; then let the last ones finish what is left."""
    chance = random.Random(seed)
    with jobs_in_folder("durable") as (jobs, folder), Services.open(url_of(folder)) as services:
        url, effects, answered = url_of(folder), folder / "effects", set[str]()
        workers = [start("faults.durable", url, _LEASE_SECONDS) for _ in range(at_once)]
        for number in range(trials):
            event = {"effects": str(effects), "name": f"run-{number}"}
            services.durable.start(HANDLERS[number % len(HANDLERS)], event, name=f"run-{number}")
            kill(workers.pop(0), chance.uniform(0, 1.5))
            workers.append(start("faults.durable", url, _LEASE_SECONDS))
            _answer(services.durable, effects, answered)
        until = time.monotonic() + _PATIENCE_SECONDS
        while _running(services.durable) and time.monotonic() < until:
            _answer(services.durable, effects, answered)
            time.sleep(0.1)
        for worker in workers:
            worker.terminate()
            worker.communicate()
        histories = (jobs.queries.list_statuses(job.job_id) for job in jobs.queries.list_jobs())
        interrupted = sum(line.status is Status.INTERRUPTED for history in histories for line in history)
        noted = _noted(effects)
        problems = [each for n in range(trials) for each in problems_of(services.durable, n, noted[f"run-{n}"])]
        problems += problems_in(jobs) + unfinished(jobs)
    for problem in problems:
        print(problem, file=sys.stderr)
    ran = sum(len(tokens) for steps in noted.values() for tokens in steps.values())
    counts = {"interrupted": interrupted, "steps": trials * len(STEPS), "ran": ran, "seed": seed}
    yield {"fault": "durable", "trials": trials, "violations": len(problems), **counts}


def _running(durable: DurableVerbs) -> bool:
    return any(durable.list(handler, status=DurableStatus.RUNNING).first() is not None for handler in HANDLERS)


def _answer(durable: DurableVerbs, effects: Path, answered: set[str]) -> None:
    """Answer the callbacks that were noted; a crash may have let one be noted twice."""
    lines = effects.read_text().splitlines() if effects.exists() else []
    for callback_id in {line.removeprefix("callback ") for line in lines if line.startswith("callback ")} - answered:
        answered.add(callback_id)
        try:
            durable.succeed_callback(callback_id, "yes")
        except TaskClosedError as error:
            print(f"a callback that nobody answered is closed: {error}", file=sys.stderr)


def _noted(effects: Path) -> dict[str, dict[str, list[str]]]:
    """Return the tokens that each step noted, of each execution."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in effects.read_text().splitlines():
        if not line.startswith("callback "):
            name, step, token = line.split()
            found.setdefault(name, {}).setdefault(step, []).append(token)
    return found


def problems_of(durable: DurableVerbs, number: int, noted: dict[str, list[str]]) -> list[str]:
    """Return what is wrong with an execution, given the tokens that its steps noted."""
    function, name = HANDLERS[number % len(HANDLERS)], f"run-{number}"
    execution = durable.get(function, name)
    if execution.status is not DurableStatus.SUCCEEDED:
        return [f"{name} is {execution.status}: {execution.error}"]
    problems = []
    output = json.loads(durable.output_of(execution) or "{}")
    for step in STEPS:
        tokens = noted.get(step, [])
        if output.get(step) not in tokens:
            problems.append(f"{name}: {step} has the result {output.get(step)}, and had the effects {tokens}")
    events = list(durable.history(function, name))
    if [event["EventId"] for event in events] != list(range(1, len(events) + 1)):
        problems.append(f"{name}: its history has a gap or a repetition")
    ends = Counter(event["Id"] for event in events if event["EventType"].endswith("Succeeded"))
    problems += [f"{name}: operation {each} ended {count} times" for each, count in ends.items() if count != 1]
    recorded = {
        event["Name"]: json.loads(event["StepSucceededDetails"]["Result"]["Payload"])
        for event in events
        if event["EventType"] == "StepSucceeded" and event.get("Name") in STEPS
    }
    problems += [f"{name}: {step} was recorded otherwise" for step in recorded if recorded[step] != output[step]]
    starts = sum(event["EventType"] == "StepStarted" and event["Name"] == "once" for event in events)
    if len(noted.get("once", [])) > starts:
        problems.append(f"{name}: a step ran {len(noted['once'])} times and was started {starts} times")
    return problems


def main(url: str, lease_seconds: str) -> None:
    """Work until killed."""
    worker = Worker(
        partial(open_jobs, url),
        [FUNCTIONS_QUEUE],
        slots=_SLOTS,
        lease_seconds=float(lease_seconds),
        mode="inline",
        preload=["faults.durable_handlers"],
    )
    print("begins", flush=True)
    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
