"""What tests of the ledger share: jobs that a worker holds, plans of requests, and what must hold of all records."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from jobtable.assist.budgets import Budget
from jobtable.assist.costs import AssistReads
from jobtable.assist.entities import AssistCall, AssistTotal
from jobtable.assist.ledger import StoreLedger
from jobtable.assist.prices import Price
from jobtable.assist.providers import Usage
from jobtable.assist.recount import Recount
from jobtable.assist.verbs import CallPlan
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.tasks import task

DOLLAR_A_MILLION = Price(1_000_000_000, 1_000_000_000, "test 2025-11-01")
"""So a token costs a thousand nanodollars."""
_NUMBERS = count(1)


def held_job(jobs: Jobs, *, instance_id: str = "w-1", **given: Any) -> Lease:
    """Submit a job and claim it."""
    queue = f"q-{next(_NUMBERS)}"
    jobs.submit(NewJob(**{"name": "ask", "task": "m:f", "max_attempts": 3, "queue": queue, **given}))
    return claim(jobs, queue, instance_id=instance_id)


def claim(jobs: Jobs, queue: str | None, *, instance_id: str = "w-1") -> Lease:
    """Claim the only job of a queue."""
    assert queue is not None
    (lease,) = jobs.claim(queue, limit=1, instance_id=instance_id, lease_seconds=30)
    return lease


def ledger_of(jobs: Jobs, lease: Lease) -> StoreLedger:
    return jobs.desk(StoreLedger, lease)


@task
def ask_for_too_much(job: JobContext) -> None:
    """Ask without room in the budget."""
    job.work.desk(StoreLedger, job.lease).begin(plan())


def plan(question: object = "why?", **given: Any) -> CallPlan:
    """A request of 10 tokens whose answer has at most 10."""
    known = {"purpose": "label", "kind": "chat", "provider": "openai", "model": "small", "most_usage": Usage(10, 10)}
    known |= {"request": json.dumps({"model": "small", "question": question}), "price": DOLLAR_A_MILLION}
    return CallPlan(**{**known, **given})


def total(jobs: Jobs, job_id: str, scope: str = "job") -> AssistTotal:
    found: AssistTotal = jobs.store.get(AssistTotal.key(job_id=job_id, scope=scope))
    return found


def calls_of(jobs: Jobs, job_id: str) -> list[AssistCall]:
    return list(jobs.store.query(AssistCall.key(job_id=job_id)))


def check_totals(jobs: Jobs, *, has_deleted: bool = False) -> None:
    """Every total is the sum of its calls, and no budget is exceeded, also by what is reserved.

    What deleted jobs cost stays in the totals of trees and days, which are then larger; reservations do not stay.
    """
    recount = Recount(AssistReads(jobs.store, jobs.objects))
    days = {call.date for call in jobs.store.scan(AssistCall)}
    found = [] if not days else recount.of_days(min(days), max(days))
    for job in jobs.store.scan(Job):
        found += recount.of_job(job.job_id)
        _check_budget(jobs, job)
    if has_deleted:
        stays = [each.total > each.counted and not each.measure.startswith("reserved") for each in found]
        found = [each for each, is_cost in zip(found, stays, strict=True) if not is_cost]
    if found:
        raise AssertionError(f"totals differ from their calls: {found}")


def _check_budget(jobs: Jobs, job: Job) -> None:
    budget = Budget.of(job)
    used = jobs.store.find(budget.total)
    if used is None:
        return
    assert budget.nanodollars is None or used.held_nanodollars <= budget.nanodollars
    assert budget.tokens is None or used.held_tokens <= budget.tokens


def run_together(act: Callable[[], object], threads: int) -> None:
    """Run something in several threads, and raise the first error of one."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=guarded) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]
