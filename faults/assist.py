"""kill -9 of workers whose jobs ask models: no answer is lost, none is charged twice, and totals equal a recount.

The service of models is a program of its own, which survives and keeps the bill. `python -m faults.assist URL
LEASE_SECONDS` is a worker that says when it begins, and works until it is killed.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from faults.jobs import jobs_in_folder, problems_in, start, unfinished, url_of
from faults.workers import kill

from jobtable.app import open_jobs
from jobtable.assist.costs import AssistReads
from jobtable.assist.entities import AssistCall, CallStatus
from jobtable.assist.recount import Recount
from jobtable.jobs.engine import Jobs
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.worker import Worker
from jobtable.testing.assist import AssistProcess, Charge

_LEASE_SECONDS = 1.5
_SLOTS = 3
_JOBS_PER_WORKER = 3
_MANY = 10_000
_QUEUE = "default"


def run(trials: int = 100, seed: int = 1, at_once: int = 2) -> Iterator[dict[str, object]]:
    """Kill so many workers, each after new jobs were submitted; then let one finish what is left."""
    chance = random.Random(seed)
    with (
        jobs_in_folder("assist") as (jobs, folder),
        AssistProcess(Path(__file__).with_name("assist_work.py")) as service,
    ):
        url = url_of(folder)
        workers = [start("faults.assist", url, _LEASE_SECONDS) for _ in range(at_once)]
        for _ in range(trials):
            for _ in range(_JOBS_PER_WORKER):
                jobs.submit(_job(service))
            kill(workers.pop(0), chance.uniform(0, 2.0))
            workers.append(start("faults.assist", url, _LEASE_SECONDS))
        for worker in workers:
            worker.terminate()
            worker.communicate()
        opener = partial(open_jobs, url)
        Worker(opener, [_QUEUE], slots=_SLOTS, lease_seconds=_LEASE_SECONDS, until_empty=True).run()
        interrupted = sum(job.interruptions for job in jobs.queries.list_jobs())
        charges = service.charges
        calls = list(jobs.store.scan(AssistCall))
        problems = [*problems_in(jobs), *unfinished(jobs), *_wrong_bills(calls, charges), *_wrong_totals(jobs, calls)]
    for problem in problems:
        print(problem, file=sys.stderr)
    told = {"interrupted": interrupted, "calls": len(calls), "sent_again": sum(call.tries > 1 for call in calls)}
    yield {"fault": "assist", "trials": trials, "violations": len(problems), **told, "seed": seed}


def _job(service: AssistProcess) -> NewJob:
    return NewJob(
        name="ask",
        task="faults.assist_work:ask",
        params={"openai_url": service.openai_url},
        max_attempts=_MANY,
        most_interruptions=_MANY,
        max_cost=0.01,
    )


def _wrong_bills(calls: list[AssistCall], charges: list[Charge]) -> Iterator[str]:
    """Yield what was charged twice, or is recorded otherwise than it was charged."""
    for key, count in Counter(charge.key for charge in charges).items():
        if count > 1:
            yield f"{key} was charged {count} times"
    yield from (f"call {call.job_id}/{call.call_id} is {call.status}" for call in calls if call.status not in _ENDED)
    charged = Counter((charge.kind, charge.tokens_in, charge.tokens_out) for charge in charges)
    recorded = Counter((str(call.kind), call.tokens_in, call.tokens_out) for call in calls)
    if charged != recorded:
        yield f"charged and not recorded: {charged - recorded}; recorded and not charged: {recorded - charged}"


def _wrong_totals(jobs: Jobs, calls: list[AssistCall]) -> Iterator[str]:
    recount = Recount(AssistReads(jobs.store, jobs.objects))
    for job in jobs.queries.list_jobs():
        yield from map(str, recount.of_job(job.job_id))
    days = [call.date for call in calls]
    yield from map(str, recount.of_days(min(days), max(days)))


_ENDED = (CallStatus.ANSWERED, CallStatus.REFUSED)


def main(url: str, lease_seconds: str) -> None:
    """Work until killed."""
    worker = Worker(partial(open_jobs, url), [_QUEUE], slots=_SLOTS, lease_seconds=float(lease_seconds))
    print("begins", flush=True)
    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
