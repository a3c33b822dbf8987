"""Sends calls: recorded before, within the limits of the provider, again after passing failures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from jobtable.assist.entities import AssistCall
from jobtable.assist.prices import PriceTable
from jobtable.assist.providers import ChatAnswer, EmbedAnswer, Fault, Provider, ProviderError
from jobtable.assist.verbs import BegunCall, CallPlan, Ledger
from jobtable.clock import Clock
from jobtable.errors import JobtableError, kind_and_text
from jobtable.jobs.tasks import StopTask
from jobtable.model.fields import format_timestamp
from jobtable.store.retries import Backoff

MOST_SENDS = 8
"""How often one run of a job sends one call while the provider is busy or fails."""
LONGEST_PAUSE_SECONDS = 600.0
"""If a provider wants to be left alone for longer, the call fails: the job may be retried later."""
_STEP_SECONDS = 0.2
"""How soon a pause ends when the job is to stop."""
_SPARE_SECONDS = 30.0
"""How long a slot is held beyond the timeout of a request."""

A = TypeVar("A", ChatAnswer, EmbedAnswer)


@dataclass(frozen=True)
class Source:
    """A model of a provider, with what the settings say of it."""

    provider: Provider
    model: str
    prices: PriceTable
    timeout_seconds: float = 60.0
    max_concurrent: int | None = None
    """How many requests all workers send to it at a time; None for what runs in the worker itself."""


@dataclass(frozen=True)
class Made(Generic[A]):
    """A call with its answer."""

    call: AssistCall
    answer: A
    was_sent: bool
    """Whether this run sent it; false if the answer was recorded."""


class Exchange(Protocol[A]):
    """One request to a provider, and how its answer is recorded."""

    def ask(self, key: str) -> A:
        """Send the request under a key that is always the same for it."""
        ...

    def recall(self, key: str) -> A | None:
        """Return the answer that the provider keeps of the request; None if it keeps none."""
        ...

    def recorded(self, answer: A) -> Any:
        """Return an answer as JSON."""
        ...

    def restored(self, call: AssistCall, recorded: Any) -> A:
        """Return the recorded answer of a call."""
        ...


class Sender:
    """Sends the calls of one run of a job. Pauses end when the job is to stop, which ends the task with StopTask."""

    def __init__(
        self, ledger: Ledger, *, clock: Clock, should_stop: Callable[[], bool], random: Random | None = None
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._should_stop = should_stop
        self._random = random or Random()  # noqa: S311 - spreads load, guards nothing

    def make(self, plan: CallPlan, source: Source, exchange: Exchange[A]) -> Made[A]:
        """Return the answer of a call: the recorded one, or that of the provider.

        ProviderError if the provider did not answer, also after pauses. A failed request is recorded at once: what it
        may have been charged counts as the most that it could use, and the next one is reserved anew.
        """
        for pause in self._pauses():
            begun = self._ledger.begin(plan)
            if begun.answer is not None:
                return Made(begun.call, exchange.restored(begun.call, begun.answer), was_sent=False)
            began = self._clock.monotonic()
            try:
                answer = self._send(begun, source, exchange)
            except BaseException as error:
                may_be_billed = isinstance(error, ProviderError) and error.was_billed
                billed = replace(plan.most_usage, is_estimated=True) if may_be_billed else None
                seconds = self._clock.monotonic() - began
                self._ledger.fail(begun.call, _told(error), tries=1, seconds=seconds, usage=billed)
                if pause is None or not isinstance(error, ProviderError) or not _may_pass(error):
                    raise
                wait = pause if error.retry_after is None else error.retry_after
            else:
                seconds, recorded = self._clock.monotonic() - began, exchange.recorded(answer)
                call = self._ledger.end(
                    begun.call, recorded, answer.usage, tries=1, seconds=seconds, answered_by=answer.model
                )
                return Made(call, answer, was_sent=True)
            self._pause(wait)
        raise AssertionError("the last failure is raised")

    def _send(self, begun: BegunCall, source: Source, exchange: Exchange[A]) -> A:
        """Return the provider's answer: one that it has made before, if it keeps those, or a new one."""
        key = _key_of(begun.call)
        with self._slot(source, begun.call.call_id):
            kept = exchange.recall(key) if begun.may_be_known else None
            return exchange.ask(key) if kept is None else kept

    @contextmanager
    def _slot(self, source: Source, call_id: str) -> Iterator[None]:
        """Wait for a slot of a provider and hold it; after a rate limit, let all workers pause."""
        most = source.max_concurrent
        if most is None:
            yield
            return
        name, seconds = source.provider.name, source.timeout_seconds + _SPARE_SECONDS
        while wait := self._ledger.take_slot(name, call_id, most=most, seconds=seconds):
            self._pause(wait)
        pause = 0.0
        try:
            yield
        except ProviderError as error:
            if error.fault is Fault.RATE_LIMITED:
                pause = min(error.retry_after or 0.0, LONGEST_PAUSE_SECONDS)
            raise
        finally:
            self._ledger.release_slot(name, call_id, pause_seconds=pause)

    def _pauses(self) -> list[float | None]:
        """Return how long to pause after each failure; the last one ends the call."""
        backoff = Backoff(MOST_SENDS, first_seconds=0.5, most_seconds=30.0, random=self._random)
        return [*backoff.lengths(), None]

    def _pause(self, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0:
            if self._should_stop():
                raise StopTask("the job was stopped while it waited for a model")
            self._clock.sleep(min(left, _STEP_SECONDS))


def _key_of(call: AssistCall) -> str:
    """Return what identifies a call to its provider: jobs that ask the same have calls of the same id."""
    record = f"{call.job_id} {format_timestamp(call.started_at)}"
    return f"{call.call_id}-{hashlib.sha256(record.encode()).hexdigest()[:12]}"


def _may_pass(error: ProviderError) -> bool:
    return error.is_retryable and (error.retry_after or 0.0) <= LONGEST_PAUSE_SECONDS


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, JobtableError) else kind_and_text(error)
