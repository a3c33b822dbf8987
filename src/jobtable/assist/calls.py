"""The records of the calls of one run, on the store. `one_sender` sees to it that one thread at a time sends a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from jobtable.assist.budgets import counted
from jobtable.assist.call_texts import CallTexts, answer_of
from jobtable.assist.costs import AssistReads
from jobtable.assist.entities import AssistCall, AssistVectors, CallStatus
from jobtable.assist.prices import Price, dollars
from jobtable.assist.providers import Usage
from jobtable.assist.reservations import release_of_ended_jobs
from jobtable.assist.slots import Slots
from jobtable.assist.totals import Totals
from jobtable.assist.vectors import SharedVectors
from jobtable.assist.verbs import BegunCall, CallPlan, Ledger
from jobtable.errors import BudgetExceededError, NotFoundError, ObjectNotFoundError, TransactionFailedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, check_lease, lost_if_refused
from jobtable.jobs.read.job_reads import JobReads
from jobtable.model import unchanged
from jobtable.store.retries import insist

T = TypeVar("T")
_RECORDED = (CallStatus.ANSWERED, CallStatus.REFUSED)
_NO_PRICE = Price(0, 0, "")
LONGEST_ERROR = 2_000
"""Characters of an error or a fault that a record keeps."""
_MOST_ELSEWHERE = 10
"""How many recorded answers of other jobs are tried: one may be deleted while it is read."""


class Calls(Ledger):
    """Records calls under the lease of a run. Every verb may be repeated: it then returns what it recorded."""

    def __init__(self, jobs: Jobs, lease: Lease) -> None:
        self._store = jobs.store
        self._objects = jobs.objects
        self._clock = jobs.clock
        self._reads: JobReads = jobs
        self._refresh = jobs.refresh
        self._lease = lease
        self._job = lease.job
        self._totals = Totals(jobs.store, lease.job)
        self._texts = CallTexts(jobs.objects, lease.job.job_id)
        self._slots = Slots(jobs.store, jobs.clock, lease)
        self._vectors: dict[tuple[str, str], SharedVectors] = {}

    # --- before a request

    def begin(self, plan: CallPlan) -> BegunCall:
        def begin(known: AssistCall | None) -> BegunCall:
            if known is not None and known.status in _RECORDED:
                self._refresh(self._lease)
                return BegunCall(known, answer_of(self._objects, known))
            if known is not None:
                return BegunCall(self._reserve(known, self._sent(known, plan)), may_be_known=True)
            if plan.cache == "store" and (found := self._reuse(plan)) is not None:
                return found
            return BegunCall(self._reserve(None, self._sent(self._new(plan), plan)))

        return self._recording(plan, begin)

    def skip(self, plan: CallPlan) -> AssistCall:
        def skip(known: AssistCall | None) -> AssistCall:
            if known is not None:
                self._refresh(self._lease)
                return known
            new = self._new(plan)
            return self._write(None, new.replace(status=CallStatus.NOT_ASKED, ended_at=new.started_at))

        return self._recording(plan, skip)

    def _recording(self, plan: CallPlan, act: Callable[[AssistCall | None], T]) -> T:
        """Return what an act makes of the record of a call as it is now."""

        def look() -> AssistCall | None:
            return self._store.find(AssistCall.key(job_id=self._job.job_id, call_id=plan.call_id))

        what = f"record call {plan.call_id} of job {self._job.job_id}"
        return insist(lambda: self._store.retrying(look, act, what), what, self._clock)

    def _new(self, plan: CallPlan) -> AssistCall:
        at = self._clock.now()
        return AssistCall(
            job_id=self._job.job_id,
            call_id=plan.call_id,
            root_job_id=self._job.root_job_id or self._job.job_id,
            system=self._totals.system,
            date=at.date(),
            purpose=plan.purpose,
            kind=plan.kind,
            provider=plan.provider,
            model=plan.model,
            request_sha256=plan.request_sha256,
            request_key=self._texts.keep_request(plan.call_id, plan.request),
            attempt=plan.attempt,
            follows=plan.follows,
            cache=plan.cache,
            started_at=at,
        )

    def _sent(self, call: AssistCall, plan: CallPlan) -> AssistCall:
        """Return a call as it is while this run sends it."""
        price = (plan.price or _NO_PRICE).of_request(plan.most_usage.tokens_in)
        was_lost = call.status is CallStatus.STARTED and call.lease_epoch not in (0, self._lease.epoch)
        return call.replace(
            status=CallStatus.STARTED,
            tries=call.tries + was_lost,
            lease_epoch=self._lease.epoch,
            error=None,
            price_version=price.version or None,
            price_in=price.tokens_in,
            price_out=price.tokens_out,
            reserved_tokens=plan.most_usage.tokens_in + plan.most_usage.tokens_out,
            reserved_nanodollars=price.cost_of(plan.most_usage),
        )

    def _reserve(self, before: AssistCall | None, after: AssistCall) -> AssistCall:
        """Write a call that is about to be sent, with what it reserves; BudgetExceededError if that does not fit."""
        change = counted(after) - counted(before)
        if after.price_version is None:
            self._refuse_without_price(after)
        for budget in self._totals.budgets:
            if budget.is_too_small(change):
                raise budget.exceeded(change, self._store.find(budget.total))
        try:
            return self._write(before, after, reserves=True)
        except TransactionFailedError as error:
            exceeded = self._totals.find_exceeded(error)
            if exceeded is None:
                raise
            budget, total = exceeded
            if budget.is_used_up(change, total) or not release_of_ended_jobs(self._reads, budget.job_id):
                raise budget.exceeded(change, total) from error
        return self._reserve(before, after)

    def _refuse_without_price(self, call: AssistCall) -> None:
        for budget in self._totals.budgets:
            if budget.nanodollars is not None:
                limit = f"job {budget.job_id} has a budget of {dollars(budget.nanodollars)}"
                raise BudgetExceededError(
                    f"{limit}, and no price is known for model {call.model} of provider {call.provider}",
                    hint="nothing was sent; set its price in your own file of prices, or limit the job by max_tokens",
                )

    def _reuse(self, plan: CallPlan) -> BegunCall | None:
        """Record the answer that another job has to the same request, or return None if there is none."""
        answers = AssistReads(self._store, self._objects).list_reusable_answers(plan.request_sha256)
        for found in answers.take(_MOST_ELSEWHERE):
            try:
                answer = answer_of(self._objects, found)
            except ObjectNotFoundError:  # its job is being deleted
                continue
            call = self._new(plan).replace(
                status=CallStatus.ANSWERED,
                lease_epoch=self._lease.epoch,
                ended_at=self._clock.now(),
                answer=self._texts.keep_answer(plan.call_id, answer),
                answered_by=found.answered_by,
                reused_from=f"{found.job_id}/{found.call_id}",
            )
            return BegunCall(self._write(None, call), answer)
        return None

    # --- after it

    def end(
        self,
        call: AssistCall,
        answer: Any,
        usage: Usage,
        *,
        tries: int,
        seconds: float,
        answered_by: str | None = None,
    ) -> AssistCall:
        kept = insist(lambda: self._texts.keep_answer(call.call_id, answer), "store an answer", self._clock)
        result = {"status": CallStatus.ANSWERED, "answer": kept, "answered_by": answered_by}
        return self._settle(call, usage, {**result, "error": None}, tries=tries, seconds=seconds)

    def fail(
        self, call: AssistCall, error: str, *, tries: int, seconds: float, usage: Usage | None = None
    ) -> AssistCall:
        result = {"status": CallStatus.FAILED, "error": error[:LONGEST_ERROR]}
        return self._settle(call, usage or Usage(), result, tries=tries, seconds=seconds)

    def _settle(
        self, call: AssistCall, usage: Usage, result: Mapping[str, Any], *, tries: int, seconds: float
    ) -> AssistCall:
        """Record how a call ended, once, and what it used besides what its earlier ends did."""
        at = self._clock.now()

        def settle(known: AssistCall) -> AssistCall:
            if known.status is not CallStatus.STARTED or known.lease_epoch != self._lease.epoch:
                self._refresh(self._lease)
                return known  # its end was recorded already, and only the answer to that was lost
            used = Usage(known.tokens_in, known.tokens_out, known.is_estimated) + usage
            after = known.replace(
                **result,
                ended_at=at,
                tokens_in=used.tokens_in,
                tokens_out=used.tokens_out,
                is_estimated=used.is_estimated,
                cost_nanodollars=known.cost_nanodollars + price_of(known).cost_of(usage),
                reserved_tokens=0,
                reserved_nanodollars=0,
                tries=known.tries + max(tries, 1),
                seconds=known.seconds + seconds,
            )
            return self._write(known, after)

        return self._changing(call, settle)

    def refuse(self, call: AssistCall, fault: str) -> AssistCall:
        def refuse(known: AssistCall) -> AssistCall:
            if known.status is not CallStatus.ANSWERED:
                self._refresh(self._lease)
                return known
            return self._write(known, known.replace(status=CallStatus.REFUSED, error=fault[:LONGEST_ERROR]))

        return self._changing(call, refuse)

    def _changing(self, call: AssistCall, act: Callable[[AssistCall], AssistCall]) -> AssistCall:
        what = f"record call {call.call_id} of job {call.job_id}"

        def look() -> AssistCall:
            try:
                return self._store.get(AssistCall.key(job_id=self._job.job_id, call_id=call.call_id))
            except NotFoundError:
                self._refresh(self._lease)  # it went with the job
                raise

        return insist(lambda: self._store.retrying(look, act, what), what, self._clock)

    def _write(self, before: AssistCall | None, after: AssistCall, *, reserves: bool = False) -> AssistCall:
        """Write a record and what it changes in the totals, under the lease."""
        with lost_if_refused(self._lease), self._store.transaction() as tx:
            check_lease(tx, self._lease)
            if before is None:
                tx.add(after)
            else:
                tx.put(after, when=unchanged(before, AssistCall.status, AssistCall.lease_epoch, AssistCall.tries))
            self._totals.add_change(tx, counted(after) - counted(before), after, reserves=reserves)
        return after

    def find_vectors(self, provider: str, model: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        shared = self._vectors.setdefault((provider, model), SharedVectors(self._store, self._objects, provider, model))
        return insist(lambda: shared.find(digests), "find vectors of texts", self._clock)

    def share(self, call: AssistCall, digests: Sequence[bytes], dimensions: int) -> None:
        vectors = AssistVectors(
            job_id=call.job_id,
            call_id=call.call_id,
            provider=call.provider,
            model=call.model,
            created_at=call.started_at,
            dimensions=dimensions,
            digests=b"".join(digests),
        )

        def share() -> None:
            with lost_if_refused(self._lease), self._store.transaction() as tx:
                check_lease(tx, self._lease)
                tx.put(vectors)

        insist(share, f"share the vectors of call {call.call_id}", self._clock)

    # --- slots

    def take_slot(self, provider: str, call_id: str, *, most: int, seconds: float) -> float:
        return self._slots.take(provider, call_id, most=most, seconds=seconds)

    def release_slot(self, provider: str, call_id: str, *, pause_seconds: float = 0.0) -> None:
        self._slots.release(provider, call_id, pause_seconds=pause_seconds)


def price_of(call: AssistCall) -> Price:
    """Return the price that a call was sent at."""
    return Price(call.price_in, call.price_out, call.price_version or "")
