"""What is recorded of calls, as a protocol: the ledger on a store, and that of a worker with only a server."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from jobtable.assist.entities import AssistCall
from jobtable.assist.prices import Price
from jobtable.assist.providers import Usage
from jobtable.jobs.report.assistant import Cache


@dataclass(frozen=True)
class CallPlan:
    """A request that is about to be sent."""

    purpose: str
    kind: Literal["chat", "embed"]
    provider: str
    model: str
    request: str
    """The whole request as canonical JSON; its SHA-256 identifies it. Kept in the object store."""
    most_usage: Usage
    """The most that it can use, by which the budgets are checked."""
    attempt: int = 1
    """The number of the request within one question: above 1, an invalid answer was sent back with its fault."""
    follows: str | None = None
    """The id of the call with that invalid answer."""
    cache: Cache = "job"
    price: Price | None = None
    """What its tokens cost, as `PriceTable.find` says, where batches have their own. A job with a budget in money asks
    no model without a price."""
    call_id: str = ""
    """By default the start of the request's SHA-256, or random with `cache="off"`."""

    def __post_init__(self) -> None:
        if not self.call_id:
            digits = uuid.uuid4().hex if self.cache == "off" else self.request_sha256[:32]
            object.__setattr__(self, "call_id", f"{self.kind}-{digits}")

    @property
    def request_sha256(self) -> str:
        return hashlib.sha256(self.request.encode()).hexdigest()


@dataclass(frozen=True)
class BegunCall:
    """A call that may be sent now, or one that has its answer already."""

    call: AssistCall
    answer: Any | None = None
    """The recorded answer: nothing is sent."""
    may_be_known: bool = False
    """Whether it was sent before, so that its provider may keep an answer that was not recorded."""


class Ledger(Protocol):
    """Records the calls of one run of a job; every verb fails with LeaseLostError after the run was lost.

    Every call that began without an answer must be ended or failed, whatever happens meanwhile: until then, other
    threads and processes of the run that ask the same wait for it.
    """

    def begin(self, plan: CallPlan) -> BegunCall:
        """Record a call before it is sent, and reserve its most cost; or return the answer that is recorded.

        If another thread or process of the run is asking the same, wait for it. A call that failed, or whose sender was
        lost, is taken over with the same id. The answer may be one that was refused, as its status says.
        BudgetExceededError if the total of the job, or of a job above it, would exceed its budget together with what
        open calls have reserved.
        """
        ...

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
        """Record an answer (any JSON) with its usage and cost, and add them to the totals, in one transaction."""
        ...

    def fail(
        self, call: AssistCall, error: str, *, tries: int, seconds: float, usage: Usage | None = None
    ) -> AssistCall:
        """Record that a call failed, and release what it reserved; `usage` if it was charged nevertheless."""
        ...

    def refuse(self, call: AssistCall, fault: str) -> AssistCall:
        """Record that the answer of a call was not valid, and why; what it cost stays counted."""
        ...

    def take_slot(self, provider: str, call_id: str, *, most: int, seconds: float) -> float:
        """Take one of a provider's slots for so long; return 0, or the seconds to wait before trying again.

        The slots are shared by all workers of the store, and so is a pause after a rate limit.
        """
        ...

    def release_slot(self, provider: str, call_id: str, *, pause_seconds: float = 0.0) -> None:
        """Return a slot; with a pause, nobody takes one before it is over."""
        ...

    def skip(self, plan: CallPlan) -> AssistCall:
        """Record that no model was asked, because no provider is set: the way without one is taken."""
        ...

    def find_vectors(self, provider: str, model: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the packed vectors of those texts, by their digests, that a job has shared from this model."""
        ...

    def share(self, call: AssistCall, digests: Sequence[bytes], dimensions: int) -> None:
        """Let every job find the vectors of an answered call by the digests of its texts, in their order."""
        ...
