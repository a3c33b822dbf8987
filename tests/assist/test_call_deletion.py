"""What remains of calls when their jobs are deleted, and which of their objects are swept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobtable.app import Services
from jobtable.assist.entities import AssistCall, AssistCost, AssistTotal
from jobtable.assist.providers import Usage
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.submit.definition import NewJob
from tests.assist.ledgers import calls_of, held_job, ledger_of, plan, total

LARGE = "x" * 10_000


@pytest.fixture
def services() -> Iterator[Services]:
    with Services.open("memory:") as opened:
        yield opened


def answer_one(services: Services, lease: Lease, number: int = 1) -> AssistCall:
    ledger = ledger_of(services.engine, lease)
    return ledger.end(ledger.begin(plan(number)).call, LARGE, Usage(8, 2), tries=1, seconds=1)


def keys_of(services: Services, job_id: str) -> list[str]:
    return [found.key for found in services.objects.list(f"jobs/{job_id}")]


def test_a_deleted_job_leaves_only_what_it_cost(services: Services) -> None:
    jobs = services.engine
    lease = held_job(jobs, job_id="j")
    call = answer_one(services, lease)
    ledger_of(jobs, lease).share(call, [b"0" * 16], 3)
    assert len(keys_of(services, "j")) == 2
    jobs.finish(lease, Outcome.completed())
    jobs.delete("j")
    assert keys_of(services, "j") == []
    assert list(jobs.store.collection(AssistCall.key(job_id="j"))) == []
    (cost,) = jobs.store.query(AssistCost.key())
    assert (cost.calls, cost.cost_nanodollars) == (1, 10_000)


def test_what_a_deleted_child_cost_stays_in_the_budget_of_the_tree(services: Services) -> None:
    jobs = services.engine
    jobs.open_group(NewJob(name="all", job_id="root", max_tokens=30))
    lease = held_job(jobs, job_id="child", parent_job_id="root")
    answer_one(services, lease)
    ledger_of(jobs, lease).begin(plan(2))
    assert total(jobs, "root", "tree").reserved_tokens == 20
    jobs.finish(lease, Outcome.failed("it crashed", retryable=False))
    jobs.delete("child")
    used = jobs.store.get(AssistTotal.key(job_id="root", scope="tree"))
    assert (used.tokens_in + used.tokens_out, used.reserved_tokens) == (10, 0)


def test_a_deleted_subtree_returns_what_it_reserved(services: Services) -> None:
    jobs = services.engine
    jobs.open_group(NewJob(name="all", job_id="root"))
    lease = held_job(jobs, job_id="middle", parent_job_id="root")
    below = held_job(jobs, job_id="below", parent_job_id="middle")
    ledger_of(jobs, below).begin(plan())
    for each in (below, lease):
        jobs.finish(each, Outcome.failed("it crashed", retryable=False))
    jobs.delete("middle", tree=True)
    assert total(jobs, "root", "tree").held_tokens == 0
    assert calls_of(jobs, "below") == []


def test_objects_of_calls_are_told_from_orphans(services: Services) -> None:
    lease = held_job(services.engine, job_id="j")
    call = answer_one(services, lease)
    named = keys_of(services, "j")
    assert sorted(named) == [f"jobs/j/assist/{call.call_id}.answer.json", f"jobs/j/assist/{call.call_id}.request.json"]
    inline = ledger_of(services.engine, lease).begin(plan(2)).call
    ledger_of(services.engine, lease).end(inline, "short", Usage(1, 1), tries=1, seconds=1)
    orphans = [
        "jobs/j/assist/chat-0.request.json",
        f"jobs/j/assist/{inline.call_id}.answer.json",
        f"jobs/gone/assist/{call.call_id}.request.json",
        "jobs/gone/assist/lines.jsonl",
    ]
    kept = [*named, inline.request_key, "jobs/j/assist/lines.jsonl"]
    assert [key for key in [*kept, *orphans] if services.is_referenced(key)] == kept
