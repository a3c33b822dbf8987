"""Any order of what jobs, workers and people do with calls: totals, reservations, budgets and slots always hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jobtable.assist.entities import AssistCall, CallStatus, ProviderSlots
from jobtable.assist.ledger import StoreLedger
from jobtable.assist.providers import Usage
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import BudgetExceededError, LeaseLostError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.submit.definition import NewJob
from jobtable.store import Store
from jobtable.testing import FakeClock
from tests.assist.ledgers import calls_of, check_totals, claim, held_job, ledger_of, plan
from tests.jobs.engines import engine

MOST = 2
SLOT_SECONDS = 60
PARENTS = ("root", "middle")
QUESTIONS = st.integers(0, 3)
USAGES = st.builds(Usage, st.integers(0, 10), st.integers(0, 10))
NUMBERS = st.integers(0, 10**6)


@dataclass
class Run:
    """A run of a job, and what its worker believes of it."""

    lease: Lease
    ledger: StoreLedger
    is_lost: bool = False
    open_calls: dict[str, AssistCall] = field(default_factory=dict)


class LedgerMachine(RuleBasedStateMachine):
    """Jobs of one tree ask four questions; their workers are lost, and their jobs end, are retried and deleted."""

    @initialize(root=st.none() | st.integers(20, 120), middle=st.none() | st.integers(20, 80))
    def begin(self, root: int | None, middle: int | None) -> None:
        self.clock = FakeClock(datetime.now(UTC))
        self.store = Store(EmbeddedBackend(None, clock=self.clock), clock=self.clock)
        self.jobs: Jobs = engine(self.store, self.clock)
        self.jobs.open_group(NewJob(name="all", job_id="root", max_tokens=root))
        self.jobs.open_group(NewJob(name="some", job_id="middle", parent_job_id="root", max_tokens=middle))
        self.runs: list[Run] = []
        self.ended: list[str] = []
        self.answers: dict[tuple[str, str], Any] = {}
        self.has_deleted = False
        self.holders: dict[str, float] = {}
        self.paused_until = 0.0

    @rule(parent=st.sampled_from(PARENTS), tokens=st.none() | st.integers(20, 60))
    @precondition(lambda self: len(self.runs) < 4)
    def start(self, parent: str, tokens: int | None) -> None:
        lease = held_job(self.jobs, parent_job_id=parent, max_tokens=tokens, max_attempts=1)
        self.runs.append(Run(lease, self.ledger_of(lease)))

    @rule(number=NUMBERS, question=QUESTIONS, cache=st.sampled_from(["job", "store", "off"]))
    @precondition(lambda self: self.runs)
    def ask(self, number: int, question: int, cache: str) -> None:
        run, asked = self._run(number), plan(question, cache=cache)
        try:
            begun = run.ledger.begin(asked)
        except BudgetExceededError:
            return
        except LeaseLostError:
            assert run.is_lost
            return
        assert not run.is_lost
        known = self.answers.get((run.lease.job.job_id, asked.call_id))
        if begun.answer is None:
            assert known is None, "it is asked again although its answer is recorded"
            run.open_calls[asked.call_id] = begun.call
        elif begun.call.reused_from is None:
            assert begun.answer == known
        else:
            self.answers[run.lease.job.job_id, asked.call_id] = begun.answer

    @rule(number=NUMBERS, call=NUMBERS, usage=USAGES, succeeds=st.booleans())
    @precondition(lambda self: any(run.open_calls for run in self.runs))
    def end(self, number: int, call: int, usage: Usage, succeeds: bool) -> None:
        asking = [run for run in self.runs if run.open_calls]
        run = asking[number % len(asking)]
        call_id = sorted(run.open_calls)[call % len(run.open_calls)]
        begun = run.open_calls.pop(call_id)
        try:
            if succeeds:
                run.ledger.end(begun, f"answer {call}", usage, tries=1, seconds=1)
                self.answers[run.lease.job.job_id, call_id] = f"answer {call}"
            else:
                run.ledger.fail(begun, "unavailable", tries=1, seconds=1, usage=usage)
        except LeaseLostError:
            assert run.is_lost
        else:
            assert not run.is_lost

    @rule(number=NUMBERS, question=QUESTIONS)
    @precondition(lambda self: self.runs)
    def refuse(self, number: int, question: int) -> None:
        run = self._run(number)
        for call in calls_of(self.jobs, run.lease.job.job_id)[question : question + 1]:
            try:
                run.ledger.refuse(call, "not JSON")
            except LeaseLostError:
                assert run.is_lost

    @rule(number=NUMBERS)
    @precondition(lambda self: any(not run.is_lost for run in self.runs))
    def lose(self, number: int) -> None:
        living = [run for run in self.runs if not run.is_lost]
        run = living[number % len(living)]
        run.is_lost = True
        assert self.jobs.interrupt_lost(self.jobs.queries.get_job(run.lease.job.job_id)) is not None
        if self.jobs.queries.get_job(run.lease.job.job_id).is_final:
            self.ended.append(run.lease.job.job_id)
            return
        lease = claim(self.jobs, run.lease.job.queue_name, instance_id="w-2")
        self.runs.append(Run(lease, self.ledger_of(lease)))

    @rule(number=NUMBERS)
    @precondition(lambda self: any(not run.is_lost for run in self.runs))
    def finish(self, number: int) -> None:
        living = [run for run in self.runs if not run.is_lost]
        run = living[number % len(living)]
        self.jobs.finish(run.lease, Outcome.failed("it crashed", retryable=False))
        run.is_lost = True
        self.ended.append(run.lease.job.job_id)

    @rule(number=NUMBERS)
    @precondition(lambda self: self.ended)
    def retry(self, number: int) -> None:
        job = self.jobs.retry(self.ended.pop(number % len(self.ended)))
        lease = claim(self.jobs, job.queue_name, instance_id="w-3")
        self.runs.append(Run(lease, self.ledger_of(lease)))

    @rule(number=NUMBERS)
    @precondition(lambda self: self.ended)
    def delete(self, number: int) -> None:
        job_id = self.ended.pop(number % len(self.ended))
        self.jobs.delete(job_id)
        self.has_deleted = True
        assert calls_of(self.jobs, job_id) == []

    @rule(number=NUMBERS, question=QUESTIONS)
    @precondition(lambda self: self.runs)
    def take_slot(self, number: int, question: int) -> None:
        run, call_id, now = self._run(number), plan(question).call_id, self.clock.seconds()
        holder = f"{run.lease.job.job_id}/{call_id}"
        free = {name: until for name, until in self.holders.items() if until > now or name == holder}
        try:
            wait = run.ledger.take_slot("openai", call_id, most=MOST, seconds=SLOT_SECONDS)
        except LeaseLostError:
            assert run.is_lost
            return
        is_free = self.paused_until <= now and (len(free) < MOST or holder in free)
        assert (wait == 0) == is_free
        if is_free:
            self.holders = {**free, holder: now + SLOT_SECONDS}

    @rule(number=NUMBERS, question=QUESTIONS, pause=st.sampled_from([0, 0, 5, 100]))
    @precondition(lambda self: self.holders)
    def release_slot(self, number: int, question: int, pause: int) -> None:
        run, call_id = self._run(number), plan(question).call_id
        run.ledger.release_slot("openai", call_id, pause_seconds=pause)
        self.holders.pop(f"{run.lease.job.job_id}/{call_id}", None)
        self.paused_until = max(self.paused_until, self.clock.seconds() + pause if pause else 0)

    @rule(seconds=st.sampled_from([1, 30, 61]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @invariant()
    def everything_adds_up(self) -> None:
        check_totals(self.jobs, has_deleted=self.has_deleted)
        for call in self.store.scan(AssistCall):
            assert call.status is CallStatus.STARTED or (call.reserved_tokens, call.reserved_nanodollars) == (0, 0)

    @invariant()
    def no_more_slots_are_held_than_there_are(self) -> None:
        slots = self.store.find(ProviderSlots.key(provider="openai"))
        living = [until for until in (slots.holders if slots else {}).values() if until > self.clock.seconds()]
        assert len(living) <= MOST

    def ledger_of(self, lease: Lease) -> StoreLedger:
        return ledger_of(self.jobs, lease)

    def _run(self, number: int) -> Run:
        return self.runs[number % len(self.runs)]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(
    max_examples=40, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow]
)
