"""Calls to models by a worker with only a server: recorded as at the store, within budgets and slots."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pydantic import BaseModel
from tests.assist.asking_jobs import settings_for
from tests.assist.ledgers import check_totals, plan, run_together, total
from tests.running import NEVER
from tests.web.conftest import Served

from jobtable.assist.entities import AssistCall, AssistVectors, CallStatus, ProviderSlots
from jobtable.assist.job_assistant import JobAssistant
from jobtable.assist.ledger import StoreLedger
from jobtable.assist.providers import Usage
from jobtable.assist.verbs import Ledger
from jobtable.errors import BackendUnavailable, BudgetExceededError, LeaseLostError
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.submit.definition import NewJob
from jobtable.remote.assist import ServerLedger
from jobtable.remote.server_requests import Server
from jobtable.remote.work import ServerWork
from jobtable.testing.assist import AssistServer, Reply

LARGE = "x" * 2_000_000


def claimed(served: Served, work: ServerWork, **given: Any) -> Lease:
    queue = f"assist-{threading.get_ident()}-{given['job_id']}"
    served.services.engine.submit(NewJob(**{"name": "ask", "task": "m:f", "queue": queue, **given}))
    (lease,) = work.claim(queue, limit=1, instance_id="far", lease_seconds=60)
    return lease


def ledger_of(work: ServerWork, lease: Lease) -> Ledger:
    ledger = work.desk(StoreLedger, lease)
    assert isinstance(ledger, ServerLedger)
    return ledger


@pytest.mark.parametrize("answer", ["because", LARGE, {"vectors": [[0.25, -1e-7]]}])
def test_a_call_is_recorded_and_its_answer_found(served: Served, work: ServerWork, answer: Any) -> None:
    lease = claimed(served, work, job_id=f"found-{len(str(answer))}")
    ledger, job_id = ledger_of(work, lease), lease.job.job_id
    asked = plan("why?", attempt=2, follows=f"chat-{'0' * 32}", cache="store", request=f'"{job_id}"')
    begun = ledger.begin(asked)
    stored = served.services.store.get(AssistCall.key(job_id=job_id, call_id=asked.call_id))
    assert begun.answer is None
    assert begun.call == stored
    assert (stored.price_version, stored.reserved_nanodollars, stored.attempt) == ("test 2025-11-01", 20_000, 2)
    assert served.services.objects.get(stored.request_key).decode() == asked.request
    ended = ledger.end(begun.call, answer, Usage(8, 2), tries=3, seconds=1.5, answered_by="small-1")
    assert (ended.status, ended.tries, ended.answered_by) == (CallStatus.ANSWERED, 3, "small-1")
    assert ledger.begin(asked).answer == answer
    assert ledger.refuse(ended, "not JSON").status is CallStatus.REFUSED
    other = ledger_of(work, claimed(served, work, job_id=f"{job_id}-2")).begin(asked)
    assert other.answer is None, "a refused answer is not reused"
    check_totals(served.services.engine)


def test_a_failure_and_what_was_not_asked_are_recorded(served: Served, work: ServerWork) -> None:
    ledger = ledger_of(work, claimed(served, work, job_id="failing"))
    failed = ledger.fail(ledger.begin(plan()).call, "unavailable", tries=2, seconds=3, usage=Usage(10, 0))
    assert (failed.status, failed.error, failed.cost_nanodollars) == (CallStatus.FAILED, "unavailable", 10_000)
    skipped = ledger.skip(plan(provider="none", request='"skipped"', price=None))
    assert skipped.status is CallStatus.NOT_ASKED
    assert ledger.skip(plan(provider="none", request='"skipped"', price=None)) == skipped
    check_totals(served.services.engine)


def test_vectors_are_shared(served: Served, work: ServerWork) -> None:
    ledger = ledger_of(work, claimed(served, work, job_id="sharing"))
    call = ledger.end(ledger.begin(plan(kind="embed")).call, [[1.0]], Usage(8), tries=1, seconds=1)
    ledger.share(call, [b"\xff" * 16, b"1" * 16], 3)
    shared = served.services.store.get(AssistVectors.key(job_id="sharing", call_id=call.call_id))
    assert (shared.digests, shared.dimensions) == (b"\xff" * 16 + b"1" * 16, 3)


def test_a_task_asks_and_embeds_as_it_does_at_the_store(served: Served, work: ServerWork) -> None:
    with AssistServer() as models:
        # A lost answer, and then another one that is not valid.
        models.script(Reply("lost", loses="answer"), Reply("really?"), Reply('{"text": "yes"}'))
        models.options.heeds_keys = False

        class Answer(BaseModel):
            text: str

        def assistant(job_id: str) -> JobAssistant:
            lease = claimed(served, work, job_id=job_id)
            return JobAssistant(JobContext(work, lease, flush_seconds=NEVER), settings_for(models, keep_answers=True))

        asked = assistant("far-asking").ask("label", "Well?", output=Answer)
        first = assistant("far-embedding").embed(["a", "b", "c"])
        again = assistant("far-embedding-again").embed(["c", "a", "new"])

        assert asked.value == Answer(text="yes")
        assert again.vectors[:2] == [first.vectors[2], first.vectors[0]]
        assert [list(each.texts) for each in models.questions if each.kind == "embed"] == [["a", "b", "c"], ["new"]]
    calls = [served.services.store.get(AssistCall.key(job_id="far-asking", call_id=each)) for each in asked.call_ids]
    assert [(call.status, call.is_estimated) for call in calls] == [
        (CallStatus.REFUSED, True), (CallStatus.REFUSED, False), (CallStatus.ANSWERED, False),
    ]  # fmt: skip
    check_totals(served.services.engine)


def test_a_budget_is_kept(served: Served, work: ServerWork) -> None:
    ledger = ledger_of(work, claimed(served, work, job_id="poor", max_tokens=30))
    ledger.begin(plan(1))
    with pytest.raises(BudgetExceededError, match="the budget of job poor would be exceeded: max_tokens is 30") as told:
        ledger.begin(plan(2))
    assert told.value.hint is not None
    assert total(served.services.engine, "poor").held_tokens == 20


def test_slots_are_shared_with_workers_at_the_store(served: Served, work: ServerWork) -> None:
    lease = claimed(served, work, job_id="slots")
    far = ledger_of(work, lease)
    near = served.services.engine.desk(StoreLedger, lease)
    call_id = plan().call_id
    assert far.take_slot("shared", call_id, most=1, seconds=60) == 0
    assert near.take_slot("shared", plan("other").call_id, most=1, seconds=60) > 0
    far.release_slot("shared", call_id, pause_seconds=30)
    assert near.take_slot("shared", call_id, most=1, seconds=60) > 20
    assert served.services.store.get(ProviderSlots.key(provider="shared")).holders == {}


def test_a_lost_run_records_nothing(served: Served, work: ServerWork) -> None:
    lease = claimed(served, work, job_id="lost")
    ledger = ledger_of(work, lease)
    call = ledger.begin(plan()).call
    assert ledger.take_slot("lost", call.call_id, most=1, seconds=60) == 0
    engine = served.services.engine
    assert engine.interrupt_lost(engine.queries.get_job("lost")) is not None
    for act in (
        lambda: ledger.end(call, "late", Usage(1, 1), tries=1, seconds=1),
        lambda: ledger.fail(call, "late", tries=1, seconds=1),
        lambda: ledger.begin(plan(2)),
        lambda: ledger.take_slot("lost", plan(2).call_id, most=5, seconds=60),
    ):
        with pytest.raises(LeaseLostError):
            act()
    ledger.release_slot("lost", call.call_id)
    assert [each.status for each in engine.store.query(AssistCall.key(job_id="lost"))] == [CallStatus.STARTED]
    assert served.services.store.get(ProviderSlots.key(provider="lost")).holders == {}
    check_totals(engine)


def test_threads_that_ask_the_same_send_one_request(served: Served, work: ServerWork) -> None:
    ledger = ledger_of(work, claimed(served, work, job_id="threads"))
    sent: list[str] = []
    answers: list[Any] = []

    def ask() -> None:
        begun = ledger.begin(plan())
        if begun.answer is None:
            sent.append(begun.call.call_id)
            ledger.end(begun.call, "because", Usage(1, 1), tries=1, seconds=1)
        answers.append(begun.answer or "because")

    run_together(ask, 6)
    assert (len(sent), answers) == (1, ["because"] * 6)


def test_a_request_whose_answer_was_lost_is_sent_again_and_counts_once(
    served: Served, work: ServerWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = ledger_of(work, claimed(served, work, job_id="flaky"))
    write, done = Server.write, set[str]()

    def losing(self: Server, method: str, path: str, body: Any = None, **more: Any) -> Any:
        answer = write(self, method, path, body, **more)
        if path not in done:
            done.add(path)
            raise BackendUnavailable("no answer came")
        return answer

    monkeypatch.setattr(Server, "write", losing)
    call = ledger.begin(plan()).call
    assert ledger.take_slot("flaky", call.call_id, most=1, seconds=60) == 0
    ended = ledger.end(call, "because", Usage(8, 2), tries=1, seconds=1)
    assert ledger.refuse(ended, "no").status is CallStatus.REFUSED
    again = ledger.begin(plan(2, cache="off")).call
    ledger.fail(again, "unavailable", tries=1, seconds=1)
    assert len(done) == 5
    assert len(list(served.services.store.query(AssistCall.key(job_id="flaky")))) == 2
    assert (total(served.services.engine, "flaky").calls, total(served.services.engine, "flaky").tokens_in) == (2, 8)
    check_totals(served.services.engine)
