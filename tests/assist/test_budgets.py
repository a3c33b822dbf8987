"""Budgets of jobs: nothing is sent that might exceed one, whoever asks at the same time."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any

import pytest

from jobtable.app import open_jobs
from jobtable.assist.entities import CallStatus
from jobtable.assist.prices import FREE, dollars
from jobtable.assist.providers import Usage
from jobtable.errors import BudgetExceededError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.testing import FakeClock
from tests.assist.ledgers import calls_of, check_totals, claim, held_job, ledger_of, plan, run_together, total
from tests.running import NEVER


def test_nothing_is_sent_that_might_exceed_a_budget(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j", max_cost=0.00005, max_tokens=1000))
    first = ledger.begin(plan(1)).call
    ledger.begin(plan(2))
    with pytest.raises(BudgetExceededError) as refused:
        ledger.begin(plan(3))
    assert str(refused.value) == (
        "the budget of job j would be exceeded: max_cost is $0.00005: $0.00 are used, $0.00004 reserved, and this "
        "request may cost $0.00002; nothing was sent; submit the job with a larger budget, or ask for shorter answers"
    )
    assert len(calls_of(jobs, "j")) == 2
    ledger.end(first, "because", Usage(3, 2), tries=1, seconds=1)
    ledger.begin(plan(3))
    check_totals(jobs)


def test_tokens_are_limited_too_also_those_of_free_models(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j", max_tokens=30, max_cost=0))
    first = ledger.begin(plan(1, price=FREE)).call
    with pytest.raises(BudgetExceededError, match="max_tokens is 30: 0 are used, 20 reserved, and"):
        ledger.begin(plan(2, price=FREE))
    ledger.fail(first, "unavailable", tries=1, seconds=1)
    ledger.begin(plan(2, price=FREE))
    with pytest.raises(BudgetExceededError, match=r"30: 0 are used, 20 reserved, .* may use 31"):
        ledger.begin(plan(3, most_usage=Usage(30, 1), price=FREE))
    check_totals(jobs)


def test_a_budget_in_money_needs_a_price(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j", max_cost=1))
    with pytest.raises(BudgetExceededError, match=r"job j has a budget of \$1\.00, and no price is known for"):
        ledger.begin(plan(price=None))
    assert calls_of(jobs, "j") == []
    ledger_of(jobs, held_job(jobs, job_id="k", max_tokens=100)).begin(plan(price=None))
    check_totals(jobs)


def test_a_budget_covers_all_jobs_below(jobs: Jobs) -> None:
    jobs.open_group(NewJob(name="all", job_id="root", max_tokens=100))
    jobs.open_group(NewJob(name="some", job_id="middle", parent_job_id="root", max_tokens=50))
    in_middle = ledger_of(jobs, held_job(jobs, job_id="a", parent_job_id="middle", max_tokens=1000))
    in_root = ledger_of(jobs, held_job(jobs, job_id="b", parent_job_id="root"))
    for number in range(2):
        in_middle.begin(plan(number))
    with pytest.raises(BudgetExceededError, match="the budget of job middle would be exceeded"):
        in_middle.begin(plan(2))
    for number in range(3):
        in_root.begin(plan(number))
    with pytest.raises(BudgetExceededError, match="the budget of job root would be exceeded"):
        in_root.begin(plan(3))
    assert (total(jobs, "root", "tree").held_tokens, total(jobs, "middle", "tree").held_tokens) == (100, 40)
    check_totals(jobs)


def test_a_budget_is_not_refilled_by_a_retry(jobs: Jobs, clock: FakeClock) -> None:
    lease = held_job(jobs, job_id="j", max_tokens=25)
    ledger = ledger_of(jobs, lease)
    ledger.end(ledger.begin(plan(1)).call, "because", Usage(5, 5), tries=1, seconds=1)
    jobs.finish(lease, Outcome.failed("it crashed"))
    clock.advance(600)
    jobs.promote_due(lease.job.queue_name or "")
    again = ledger_of(jobs, claim(jobs, lease.job.queue_name))
    assert again.begin(plan(1)).answer == "because"
    with pytest.raises(BudgetExceededError, match="10 are used"):
        again.begin(plan(2))
    check_totals(jobs)


def test_an_answer_that_is_longer_than_agreed_is_recorded_and_ends_the_budget(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j", max_tokens=25))
    ended = ledger.end(ledger.begin(plan(1)).call, "because", Usage(50, 50), tries=1, seconds=1)
    assert (ended.status, ended.tokens_out) == (CallStatus.ANSWERED, 50)
    assert ledger.begin(plan(1)).answer == "because"
    with pytest.raises(BudgetExceededError, match="100 are used"):
        ledger.begin(plan(2))


def test_a_job_that_used_its_budget_up_is_not_retried(jobs: Jobs) -> None:
    lease = held_job(jobs, job_id="j", max_tokens=5, task="tests.assist.ledgers:ask_for_too_much")
    with JobContext(jobs, lease, flush_seconds=NEVER) as context:
        report = run_task(lease.job.definition, StopFlag(), lambda: context)
    ended = jobs.finish(lease, report.outcome())
    assert (ended.status, ended.attempts) == (Status.FAILED, 1)
    assert ended.message is not None
    assert ended.message.startswith("BudgetExceededError: the budget of job j would be exceeded: max_tokens is 5: ")


def test_reused_answers_cost_nothing(jobs: Jobs) -> None:
    one = ledger_of(jobs, held_job(jobs, job_id="one"))
    one.end(one.begin(plan(cache="store")).call, "because", Usage(5, 5), tries=1, seconds=1)
    assert ledger_of(jobs, held_job(jobs, max_tokens=0)).begin(plan(cache="store")).answer == "because"


def test_a_lost_run_keeps_its_reservation_until_its_job_ends(jobs: Jobs) -> None:
    jobs.open_group(NewJob(name="all", job_id="root", max_tokens=30))
    lost = held_job(jobs, job_id="lost", parent_job_id="root")
    sent = ledger_of(jobs, lost).begin(plan(1)).call
    jobs.interrupt_lost(jobs.queries.get_job("lost"))
    other = ledger_of(jobs, held_job(jobs, job_id="other", parent_job_id="root"))
    with pytest.raises(BudgetExceededError, match="20 reserved"):
        other.begin(plan(2))
    jobs.cancel("lost")
    other.begin(plan(2))
    (failed,) = calls_of(jobs, "lost")
    assert (failed.call_id, failed.status, failed.reserved_tokens) == (sent.call_id, CallStatus.FAILED, 0)
    assert failed.error == "the run was lost before the answer was recorded, and the job has ended"
    check_totals(jobs)


def test_twenty_threads_never_exceed_a_budget(jobs: Jobs) -> None:
    jobs.open_group(NewJob(name="all", job_id="root", max_tokens=110))
    ledgers = [ledger_of(jobs, held_job(jobs, job_id=f"j-{number}", parent_job_id="root")) for number in range(4)]
    numbers = iter(range(1000))
    lock, refused = threading.Lock(), []

    def ask() -> None:
        for _ in range(2):
            with lock:
                number = next(numbers)
            ledger = ledgers[number % 4]
            try:
                call = ledger.begin(plan(number)).call
            except BudgetExceededError as error:
                refused.append(error)
                continue
            ledger.end(call, "because", Usage(10, 10), tries=1, seconds=1)

    run_together(ask, 20)
    assert total(jobs, "root", "tree").calls == 5
    assert len(refused) == 35
    check_totals(jobs)


def _ask_in_process(url: str, leases: list[Lease], first: int) -> None:
    with open_jobs(url) as jobs:
        for number in range(first, first + 3):
            ledger = ledger_of(jobs, leases[number % len(leases)])
            try:
                call = ledger.begin(plan(number)).call
            except BudgetExceededError:
                continue
            ledger.end(call, "because", Usage(10, 10), tries=1, seconds=1)


def test_twenty_processes_never_exceed_a_budget(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'store.db'}"
    with open_jobs(url) as jobs:
        jobs.open_group(NewJob(name="all", job_id="root", max_cost=0.000_11))
        leases = [held_job(jobs, job_id=f"j-{number}", parent_job_id="root") for number in range(4)]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.assist.test_budgets"])
    running = [context.Process(target=_ask_in_process, args=(url, leases, 3 * number)) for number in range(20)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    assert [process.exitcode for process in running] == [0] * 20
    with open_jobs(url) as jobs:
        assert total(jobs, "root", "tree").calls == 5
        check_totals(jobs)


@pytest.mark.parametrize(
    "wrong", [{"max_cost": -1}, {"max_cost": float("nan")}, {"max_tokens": -1}, {"max_tokens": 0.5}]
)
def test_an_invalid_budget_is_refused(jobs: Jobs, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValueRefusedError, match=f"the {name} of job 'ask' cannot be"):
        held_job(jobs, **wrong)


@pytest.mark.parametrize(
    ("nanodollars", "text"),
    [(0, "$0.00"), (1_000_000_000, "$1.00"), (1_234_567_890_000, "$1,234.56789"), (20_000, "$0.00002"), (499, "$0.00")],
)
def test_amounts_are_written_as_far_as_they_go(nanodollars: int, text: str) -> None:
    assert dollars(nanodollars) == text
