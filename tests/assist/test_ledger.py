"""The ledger on each kind of store: what is recorded of calls, who sends one, and who finds its answer."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from jobtable.assist.entities import AssistCall, AssistCost, AssistVectors, CallStatus
from jobtable.assist.providers import Usage
from jobtable.assist.verbs import BegunCall
from jobtable.errors import LeaseLostError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.model import Json
from jobtable.system import Owner
from jobtable.testing import FakeClock
from tests.assist.ledgers import (
    DOLLAR_A_MILLION,
    calls_of,
    check_totals,
    claim,
    held_job,
    ledger_of,
    plan,
    run_together,
    total,
)

LARGE = "x" * 10_000


def lose(jobs: Jobs, lease: Lease) -> None:
    """Let another worker take the job of a worker that went silent."""
    assert jobs.interrupt_lost(jobs.queries.get_job(lease.job.job_id)) is not None


def test_a_call_is_recorded_before_it_is_sent_and_with_its_answer(jobs: Jobs) -> None:
    lease = held_job(jobs, job_id="j")
    ledger = ledger_of(jobs, lease)
    asked = plan("why?", attempt=2, follows="chat-1", cache="store")
    begun = ledger.begin(asked)
    assert begun.answer is None
    assert jobs.store.get(AssistCall.key(job_id="j", call_id=asked.call_id)) == begun.call
    assert (begun.call.status, begun.call.lease_epoch) == (CallStatus.STARTED, lease.epoch)
    assert (begun.call.attempt, begun.call.follows, begun.call.cache) == (2, "chat-1", "store")
    assert jobs.objects.get(begun.call.request_key).decode() == asked.request
    assert (total(jobs, "j").reserved_tokens, total(jobs, "j").reserved_nanodollars) == (20, 20_000)
    check_totals(jobs)

    ended = ledger.end(begun.call, "because", Usage(8, 2), tries=3, seconds=1.5, answered_by="small-1")
    assert jobs.store.get(AssistCall.key(job_id="j", call_id=asked.call_id)) == ended
    assert (ended.status, ended.answer, ended.answered_by) == (CallStatus.ANSWERED, "because", "small-1")
    assert (ended.tokens_in, ended.tokens_out, ended.cost_nanodollars) == (8, 2, 10_000)
    assert (ended.tries, ended.seconds, ended.price_version) == (3, 1.5, "test 2025-11-01")
    assert (ended.reserved_tokens, ended.reserved_nanodollars) == (0, 0)
    check_totals(jobs)
    (cost,) = jobs.store.query(AssistCost.key())
    assert (cost.calls, cost.cost_nanodollars, cost.system, cost.purpose) == (1, 10_000, "jobs", "label")


@pytest.mark.parametrize("answer", ["", "because", LARGE, {"object": "jobs/other/key"}, {"vectors": [[0.1, -2.5e-7]]}])
def test_a_retry_finds_every_answer_as_it_was(jobs: Jobs, clock: FakeClock, answer: Json) -> None:
    lease = held_job(jobs, job_id="j")
    ledger = ledger_of(jobs, lease)
    ledger.end(ledger.begin(plan()).call, answer, Usage(8, 2), tries=1, seconds=1)
    jobs.finish(lease, Outcome.failed("it crashed"))
    clock.advance(600)
    jobs.promote_due(lease.job.queue_name or "")
    found = ledger_of(jobs, claim(jobs, lease.job.queue_name)).begin(plan())
    assert found.answer == answer
    assert len(calls_of(jobs, "j")) == 1
    check_totals(jobs)


def test_a_refused_answer_is_found_as_refused_and_stays_counted(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j"))
    call = ledger.end(ledger.begin(plan()).call, "{", Usage(8, 2), tries=1, seconds=1)
    assert ledger.refuse(call, "not JSON").status is CallStatus.REFUSED
    assert ledger.refuse(call, "not JSON").error == "not JSON"
    found = ledger.begin(plan())
    assert (found.call.status, found.call.error, found.answer) == (CallStatus.REFUSED, "not JSON", "{")
    assert total(jobs, "j").cost_nanodollars == 10_000
    check_totals(jobs)


def test_a_failed_call_is_sent_again_with_its_id_and_what_it_cost_stays(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j"))
    first = ledger.begin(plan()).call
    failed = ledger.fail(first, "the answer was cut", tries=2, seconds=4, usage=Usage(10, 0))
    assert (failed.status, failed.error, failed.cost_nanodollars) == (CallStatus.FAILED, "the answer was cut", 10_000)
    assert (total(jobs, "j").calls, total(jobs, "j").failed_calls, total(jobs, "j").reserved_tokens) == (1, 1, 0)
    check_totals(jobs)

    again = ledger.begin(plan()).call
    assert (again.call_id, again.status, again.error) == (first.call_id, CallStatus.STARTED, None)
    assert (total(jobs, "j").calls, total(jobs, "j").cost_nanodollars) == (0, 10_000)
    check_totals(jobs)
    ended = ledger.end(again, "because", Usage(10, 1), tries=1, seconds=1)
    assert (ended.tokens_in, ended.tokens_out, ended.cost_nanodollars, ended.tries) == (20, 1, 21_000, 3)
    assert (total(jobs, "j").calls, total(jobs, "j").failed_calls) == (1, 0)
    check_totals(jobs)


def test_the_next_run_takes_over_the_call_of_a_lost_one(jobs: Jobs) -> None:
    lost = held_job(jobs, job_id="j")
    zombie = ledger_of(jobs, lost)
    sent = zombie.begin(plan()).call
    lose(jobs, lost)
    lease = claim(jobs, lost.job.queue_name, instance_id="w-2")
    taken = ledger_of(jobs, lease).begin(plan()).call
    assert (taken.call_id, taken.status, taken.lease_epoch) == (sent.call_id, CallStatus.STARTED, lease.epoch)
    assert total(jobs, "j").reserved_tokens == 20, "it is reserved once"
    for act in (
        lambda: zombie.end(sent, "late", Usage(1, 1), tries=1, seconds=1),
        lambda: zombie.fail(sent, "late", tries=1, seconds=1),
        lambda: zombie.begin(plan()),
        lambda: zombie.begin(plan("another")),
        lambda: zombie.skip(plan("a third")),
        lambda: zombie.share(sent, [b"0" * 16], 3),
        lambda: zombie.take_slot("openai", sent.call_id, most=5, seconds=60),
    ):
        with pytest.raises(LeaseLostError, match="job j is no longer held by w-1"):
            act()
    assert calls_of(jobs, "j") == [taken]
    check_totals(jobs)
    ended = ledger_of(jobs, lease).end(taken, "because", Usage(1, 1), tries=1, seconds=1)
    assert ended.tries == 2, "the lost run may have sent it"
    with pytest.raises(LeaseLostError):
        zombie.begin(plan())
    with pytest.raises(LeaseLostError):
        zombie.refuse(sent, "late")
    check_totals(jobs)


def test_what_is_recorded_twice_counts_once(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j"))
    call = ledger.begin(plan()).call
    assert ledger.begin(plan()).call == call
    ended = ledger.end(call, "because", Usage(8, 2), tries=1, seconds=1)
    assert ledger.end(call, "because", Usage(8, 2), tries=1, seconds=1) == ended
    assert ledger.fail(call, "late", tries=1, seconds=1) == ended
    check_totals(jobs)


def test_threads_that_ask_the_same_send_one_request(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j"))
    sent: list[str] = []
    answers: list[Any] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        begun = ledger.begin(plan())
        if begun.answer is None:
            sent.append(begun.call.call_id)
            ledger.end(begun.call, f"answer {len(sent)}", Usage(1, 1), tries=1, seconds=1)
            answers.append(f"answer {len(sent)}")
        else:
            answers.append(begun.answer)

    run_together(ask, 8)
    assert len(sent) == 1
    assert answers == ["answer 1"] * 8
    check_totals(jobs)


def test_who_waits_for_a_call_that_fails_sends_it(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j"))
    first = ledger.begin(plan()).call
    found: list[BegunCall] = []
    waiting = threading.Thread(target=lambda: found.append(ledger.begin(plan())))
    waiting.start()
    ledger.fail(first, "unavailable", tries=1, seconds=1)
    waiting.join()
    assert [(begun.call.call_id, begun.answer) for begun in found] == [(first.call_id, None)]
    assert ledger.begin(plan()).call.call_id == first.call_id, "the turn of a thread ends with it"
    ledger.fail(first, "unavailable", tries=1, seconds=1)
    check_totals(jobs)


def test_other_jobs_find_only_answers_that_were_stored_for_them(jobs: Jobs) -> None:
    one, other = (ledger_of(jobs, held_job(jobs, job_id=name)) for name in ("one", "other"))
    for number, (cache, answer) in enumerate((("store", "because"), ("store", LARGE), ("job", "x"), ("off", "x"))):
        call = one.begin(plan(number, cache=cache)).call
        one.end(call, answer, Usage(8, 2), tries=1, seconds=1, answered_by="small-1")
        found = other.begin(plan(number, cache="store"))
        if cache != "store":
            assert found.answer is None
            continue
        assert found.answer == answer
        assert found.call.reused_from == f"one/{call.call_id}"
        assert (found.call.status, found.call.cost_nanodollars, found.call.tries) == (CallStatus.ANSWERED, 0, 0)
        assert found.call.answered_by == "small-1"
    assert total(jobs, "other").calls == 0
    check_totals(jobs)


def test_a_reused_answer_outlives_the_job_that_paid_for_it(jobs: Jobs) -> None:
    lease = held_job(jobs, job_id="one")
    one = ledger_of(jobs, lease)
    one.end(one.begin(plan(cache="store")).call, LARGE, Usage(8, 2), tries=1, seconds=1)
    jobs.finish(lease, Outcome.completed())
    ledger_of(jobs, held_job(jobs, job_id="other")).begin(plan(cache="store"))
    jobs.delete("one")
    other = ledger_of(jobs, replace(jobs_lease(jobs, "other")))
    assert other.begin(plan(cache="store")).answer == LARGE
    third = ledger_of(jobs, held_job(jobs, job_id="third")).begin(plan(cache="store"))
    assert third.answer is None, "only an answer that was paid for is reused"


def jobs_lease(jobs: Jobs, job_id: str) -> Lease:
    job = jobs.queries.get_job(job_id)
    assert job.status is Status.RUNNING
    return Lease(job, job.instance_id or "")


def test_nobody_finds_an_answer_with_cache_off(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j"))
    for _ in range(2):
        begun = ledger.begin(plan(cache="off"))
        assert begun.answer is None
        ledger.end(begun.call, "because", Usage(8, 2), tries=1, seconds=1)
    assert len({call.call_id for call in calls_of(jobs, "j")}) == 2
    check_totals(jobs)


def test_it_is_recorded_that_no_model_was_asked(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j"))
    skipped = ledger.skip(plan(provider="none"))
    assert skipped.status is CallStatus.NOT_ASKED
    assert ledger.skip(plan(provider="none")) == skipped
    assert calls_of(jobs, "j") == [skipped]
    check_totals(jobs)


def test_vectors_are_shared_by_the_digests_of_their_texts(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j"))
    call = ledger.end(ledger.begin(plan(kind="embed")).call, [[1.0]], Usage(8), tries=1, seconds=1)
    ledger.share(call, [b"0" * 16, b"1" * 16], 3)
    ledger.share(call, [b"0" * 16, b"1" * 16], 3)
    (shared,) = jobs.store.query(AssistVectors.by_model(provider="openai", model="small"))
    assert (shared.job_id, shared.call_id, shared.dimensions) == ("j", call.call_id, 3)
    assert shared.digests == b"0" * 16 + b"1" * 16


def test_a_call_is_under_the_root_of_its_tree_and_counts_there(jobs: Jobs) -> None:
    root = jobs.open_group(NewJob(name="all", job_id="root"))
    jobs.open_group(NewJob(name="some", job_id="middle", parent_job_id=root.job_id))
    for name, parent in (("a", "root"), ("b", "middle")):
        ledger = ledger_of(jobs, held_job(jobs, job_id=name, parent_job_id=parent))
        call = ledger.end(ledger.begin(plan()).call, "because", Usage(8, 2), tries=1, seconds=1)
        assert call.root_job_id == "root"
    assert total(jobs, "root", "tree").calls == 2
    assert total(jobs, "root", "tree").cost_nanodollars == 20_000
    check_totals(jobs)


def test_a_call_belongs_to_the_system_of_its_job_or_of_one_above(jobs: Jobs) -> None:
    jobs.submit(NewJob(name="all", job_id="root", task="m:f", owner=Owner("evals", "e-1"), queue="never"))
    jobs.submit(NewJob(name="some", job_id="middle", task="m:f", parent_job_id="root", queue="never"))
    for job_id, system in (("below", "evals"), ("own", "jobs")):
        parent = "middle" if job_id == "below" else None
        ledger = ledger_of(jobs, held_job(jobs, job_id=job_id, parent_job_id=parent))
        ledger.end(ledger.begin(plan()).call, "because", Usage(8, 2), tries=1, seconds=1)
        assert [call.system for call in calls_of(jobs, job_id)] == [system]
    assert {cost.system for cost in jobs.store.query(AssistCost.key())} == {"evals", "jobs"}
    check_totals(jobs)


def test_the_price_of_a_call_is_the_one_it_was_sent_at(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j"))
    unknown = ledger.end(ledger.begin(plan(1, price=None)).call, "x", Usage(8, 2), tries=1, seconds=1)
    assert (unknown.cost_nanodollars, unknown.price_version) == (0, None)
    assert total(jobs, "j").unpriced_calls == 1
    first = ledger.begin(plan(2)).call
    ledger.fail(first, "unavailable", tries=1, seconds=1, usage=Usage(10, 0))
    dearer = ledger.begin(plan(2, price=replace(DOLLAR_A_MILLION, tokens_in=2 * 10**9, version="later"))).call
    ended = ledger.end(dearer, "x", Usage(10, 0), tries=1, seconds=1)
    assert (ended.cost_nanodollars, ended.price_version) == (30_000, "later")
    check_totals(jobs)


def test_a_long_error_is_cut(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="j"))
    failed = ledger.fail(ledger.begin(plan()).call, LARGE, tries=1, seconds=1)
    assert len(failed.error or "") == 2_000


def test_the_hash_is_of_the_request_alone() -> None:
    assert plan("a", purpose="x").call_id == plan("a", purpose="y").call_id != plan("b").call_id
    assert plan("a").call_id.startswith("chat-")
    assert plan("a", kind="embed").call_id.startswith("embed-")
    assert json.loads(plan("a").request)["question"] == "a"
