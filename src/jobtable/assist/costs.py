"""What anybody may read of models that were asked: the calls with prompts and answers, and what they cost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date as Date  # noqa: N812 - a field is called date
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel
from pydantic_core import from_json

from jobtable.assist.call_texts import answer_key
from jobtable.assist.entities import AssistCall, AssistCost, AssistTotal, CallStatus
from jobtable.assist.provider_states import ProviderState, provider_states
from jobtable.clock import wall_time
from jobtable.errors import ObjectNotFoundError, ValueRefusedError
from jobtable.model import Json
from jobtable.objects import ObjectStore
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern

CostField: TypeAlias = Literal["date", "system", "purpose", "provider", "model"]
"""By what costs are summed."""

LONGEST_SPAN_DAYS = 366
_USUAL_SPAN_DAYS = 30
_MOST_EXAMINED = 1000
"""How many later calls are examined for the next try, which usually is the next call."""
_COUNTED = frozenset({CallStatus.ANSWERED, CallStatus.REFUSED, CallStatus.FAILED})


class Used(BaseModel):
    """What calls have used together."""

    calls: int = 0
    failed_calls: int = 0
    unpriced_calls: int = 0
    """Calls whose model has no known price; they are missing in the cost."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_nanodollars: int = 0

    def add(self, other: Used | AssistCost | AssistTotal) -> None:
        """Add what others have used."""
        for name in Used.model_fields:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class CostSum(Used):
    """What calls have used together that are alike in the fields that are not null."""

    date: Date | None = None
    system: str | None = None
    purpose: str | None = None
    provider: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class WholeCall:
    """A call with its content from the object store."""

    call: AssistCall
    request: dict[str, Any] | None
    """The model, messages or texts, schema and settings that were sent; None if the object no longer exists."""
    answer: Json
    """The text, or the vectors."""
    next_call_id: str | None = None
    """The call that sent a refused answer back."""


def used_by(call: AssistCall) -> Used:
    """Return what a call adds to the totals: nothing until it has ended, and nothing if no model was asked.

    What a failed call used stays counted while it is sent again.
    """
    if call.reused_from is not None:
        return Used()
    has_ended = call.status in _COUNTED
    tokens = call.tokens_in + call.tokens_out
    return Used(
        calls=int(has_ended),
        failed_calls=int(call.status is CallStatus.FAILED),
        unpriced_calls=int(has_ended and tokens > 0 and call.price_version is None),
        tokens_in=call.tokens_in,
        tokens_out=call.tokens_out,
        cost_nanodollars=call.cost_nanodollars,
    )


class AssistReads:
    """Reads of the calls and costs of one store."""

    def __init__(self, store: Store, objects: ObjectStore) -> None:
        self.store = store
        self.objects = objects

    # --- calls ------------------------------------------------------------------------------------------------------

    @access_pattern("Calls of a job", index="GSI3")
    def list_calls(self, job_id: str, *, newest_first: bool = False) -> Query[AssistCall]:
        """List the calls of a job, oldest first."""
        return self.store.query(AssistCall.in_job(job_id=job_id), newest_first=newest_first)

    @access_pattern("Calls of a day", index="GSI1")
    def list_calls_of_day(self, date: Date, *, newest_first: bool = False) -> Query[AssistCall]:
        """List the calls that began on a day in UTC, of all jobs that were not deleted, oldest first."""
        return self.store.query(AssistCall.by_day(date=date), newest_first=newest_first)

    @access_pattern("Get a call")
    def get_call(self, job_id: str, call_id: str) -> AssistCall:
        """Return a call, or raise NotFoundError."""
        return self.store.get(AssistCall.key(job_id=job_id, call_id=call_id))

    def read_call(self, job_id: str, call_id: str) -> WholeCall:
        """Return a call with its whole request and answer, or raise NotFoundError."""
        call = self.get_call(job_id, call_id)
        next_call = self.find_next_try(call) if call.status is CallStatus.REFUSED else None
        request = self._read_object(call.request_key)
        return WholeCall(call, request, self._answer_of(call), next_call.call_id if next_call else None)

    @access_pattern("The next try after a refused answer", index="GSI3")
    def find_next_try(self, call: AssistCall) -> AssistCall | None:
        """Return the call that sent the refused answer of a call back, or None."""
        later = self.store.query(
            AssistCall.in_job(job_id=call.job_id), after=call.started_at, where=AssistCall.follows == call.call_id
        )
        return next(iter(later.page(size=1, most_examined=_MOST_EXAMINED).items), None)

    @access_pattern("Answers to a request that other jobs may reuse", index="GSI2")
    def list_reusable_answers(self, request_sha256: str) -> Query[AssistCall]:
        """List the calls with `cache="store"` that were sent and have a valid answer, oldest first."""
        request = AssistCall.by_request(request_sha256=request_sha256, status=CallStatus.ANSWERED)
        where = (AssistCall.cache == "store") & (AssistCall.reused_from == None)  # noqa: E711 - a condition
        return self.store.query(request, where=where, consistent=False)

    def _answer_of(self, call: AssistCall) -> Json:
        key = answer_key(call)
        return call.answer if key is None else self._read_object(key)

    def _read_object(self, key: str) -> Any:
        try:
            return from_json(self.objects.get(key))
        except ObjectNotFoundError:
            return None

    # --- costs ------------------------------------------------------------------------------------------------------

    @access_pattern("What a job, or its tree, has used of models")
    def find_total(self, job_id: str, scope: Literal["job", "tree"] = "job") -> AssistTotal | None:
        """Return what the calls of a job, or of its tree, have used; None if it made none."""
        return self.store.find(AssistTotal.key(job_id=job_id, scope=scope))

    @access_pattern("What models cost from day to day")
    def list_costs(self, first: Date, last: Date) -> Query[AssistCost]:
        """List what was used from a day to another, by day, system, purpose, provider and model."""
        return self.store.query(AssistCost.key(), between=(first, last))

    def sum_costs(
        self, by: Sequence[CostField] = (), *, first: Date | None = None, last: Date | None = None
    ) -> list[CostSum]:
        """Return the sums of the days from `first` to `last` for each value of some fields; the last month by default.

        Sums by date are in its order, all others begin with the largest cost.
        """
        start, end = self.span(first, last)
        sums: dict[tuple[object, ...], CostSum] = {}
        for cost in self.list_costs(start, end):
            group = {name: getattr(cost, name) for name in by}
            sums.setdefault(tuple(group.values()), CostSum(**group)).add(cost)
        return sorted(sums.values(), key=lambda each: (each.date or end, -each.cost_nanodollars, -each.calls))

    def span(self, first: Date | None, last: Date | None) -> tuple[Date, Date]:
        """Return the first and last day of a span, by default the last month up to today; or ValueRefusedError."""
        end = last or wall_time(self.store.clock).date()
        start = first or end - timedelta(days=_USUAL_SPAN_DAYS - 1)
        if start > end:
            raise ValueRefusedError(f"the first day, {start}, is after the last one, {end}")
        if (end - start).days >= LONGEST_SPAN_DAYS:
            raise ValueRefusedError(f"from {start} to {end} are more than {LONGEST_SPAN_DAYS} days; ask for fewer")
        return start, end

    # --- providers

    def list_providers(self) -> list[ProviderState]:
        """Return the providers that the settings here name, that which is asked first; SettingsError if invalid."""
        return provider_states(os.environ, Path.cwd())
