"""What is stored of models that were asked: calls, totals, and the limits that workers share.

A call is recorded before it is sent, and its answer in one transaction with the totals, so both always agree. Amounts
are whole nanodollars, so that sums are exact.
"""

from __future__ import annotations

from datetime import date as Date  # noqa: N812 - a field is called date
from enum import StrEnum
from typing import Literal

from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Count
from jobtable.model import Attr, Entity, Json, Key, Stored, Timestamp, default

OWN_JOBS = "jobs"
"""The system of calls of users' own jobs, which belong to none."""


class CallStatus(StrEnum):
    """How far a call is."""

    STARTED = "STARTED"
    """It is about to be sent, or was sent and its answer is not recorded."""
    ANSWERED = "ANSWERED"
    REFUSED = "REFUSED"
    """Its answer was not valid."""
    FAILED = "FAILED"
    NOT_ASKED = "NOT_ASKED"
    """No provider is set: the way without a model was taken."""


class AssistCall(Entity, table=main, type="ASSIST_CALL"):
    """One request to a model, under the job that made it."""

    key = Key("JOB#{job_id}", "ASSIST_CALL#{call_id}")
    in_job = Key("JOB#{job_id}#ASSIST", "{started_at}#{call_id}", index="GSI3")
    by_day = Key("ASSIST_DAY#{date}", "{started_at}#{call_id}", index="GSI1")
    by_request = Key("ASSIST_REQUEST#{request_sha256}", "{status}#{started_at}", index="GSI2")

    job_id: str
    call_id: str
    """The start of the request's SHA-256, so that a retry of the job finds it; random if nobody may find it."""
    root_job_id: str
    system: str
    """The system to which the job belongs; `OWN_JOBS` for a user's own."""
    date: Date
    purpose: str
    kind: Literal["chat", "embed"]
    provider: str
    model: str
    request_sha256: str
    request_key: str
    """The object with the whole request."""
    attempt: Count = 1
    follows: Attr[str | None] = default(None)
    """The call of the same question whose answer was refused, which this one sends back with its fault."""
    cache: Attr[Literal["job", "store", "off"]] = default("job")
    status: Attr[CallStatus] = default(CallStatus.STARTED)
    lease_epoch: Attr[Count] = default(0)
    """Of the run that sent it last."""
    started_at: Timestamp
    ended_at: Attr[Timestamp | None] = default(None)
    answer: Attr[Json] = default(None)
    """The text, or `{"object": key}` of a large one or of vectors."""
    answered_by: Attr[str | None] = default(None)
    """The model that answered, as the provider names it."""
    reused_from: Attr[str | None] = default(None)
    """`job_id/call_id` of the call whose answer was taken instead of asking: it cost nothing."""
    tokens_in: Attr[Count] = default(0)
    tokens_out: Attr[Count] = default(0)
    is_estimated: Attr[bool] = default(False)
    """Whether its provider did not count all of them: a request that was lost counts as the most it could use."""
    reserved_tokens: Attr[Count] = default(0)
    cost_nanodollars: Attr[Count] = default(0)
    reserved_nanodollars: Attr[Count] = default(0)
    price_version: Attr[str | None] = default(None)
    """Which table the price is from, and of what date; None if no price is known for the model."""
    price_in: Attr[Count] = default(0)
    """Nanodollars for a million tokens of the request."""
    price_out: Attr[Count] = default(0)
    """The same for tokens of the answer."""
    tries: Attr[Count] = default(0)
    """How often it was sent, with those that met a rate limit or a failure."""
    seconds: Attr[float] = default(0.0)
    error: Attr[str | None] = default(None)


class AssistVectors(Entity, table=main, type="ASSIST_VECTORS"):
    """Which texts have vectors in the answer of a call, so that other jobs find them without asking a model.

    One item for a batch, because an item for each text would cost more than most models do.
    """

    key = Key("JOB#{job_id}", "ASSIST_VECTORS#{call_id}")
    by_model = Key("ASSIST_VECTORS#{provider}#{model}", "{created_at}#{call_id}", index="GSI1")

    job_id: str
    call_id: str
    provider: str
    model: str
    created_at: Timestamp
    dimensions: Count
    digests: bytes
    """The first 16 bytes of the SHA-256 of each text, in the order of the vectors."""


class AssistTotal(Entity, table=main, type="ASSIST_TOTAL"):
    """What calls have used, with what open ones have reserved: those of one job, or those of it and all below it.

    Every job that asks has a total of its own. The root of its tree has one of the tree, and so has each job with a
    budget, which covers all below it.
    """

    key = Key("JOB#{job_id}", "ASSIST_TOTAL#{scope}")

    job_id: str
    scope: Literal["job", "tree"]
    calls: Attr[Count] = default(0)
    """Those that were sent and have ended, however they ended; neither reused answers nor ways without a model."""
    failed_calls: Attr[Count] = default(0)
    """Those of them that FAILED."""
    unpriced_calls: Attr[Count] = default(0)
    """Those of them that have tokens but no known price: they are missing in the cost."""
    tokens_in: Attr[Count] = default(0)
    tokens_out: Attr[Count] = default(0)
    cost_nanodollars: Attr[Count] = default(0)
    held_tokens: Attr[Count] = default(0)
    """Used, or reserved by open calls: one condition on it keeps a budget."""
    held_nanodollars: Attr[Count] = default(0)

    @property
    def reserved_tokens(self) -> int:
        return self.held_tokens - self.tokens_in - self.tokens_out

    @property
    def reserved_nanodollars(self) -> int:
        return self.held_nanodollars - self.cost_nanodollars


class AssistCost(Entity, table=main, type="ASSIST_COST"):
    """What one system used of one model for one purpose on one day. It stays when the jobs are deleted."""

    key = Key("ASSIST_COSTS", "{date}#{system}#{purpose}#{provider}#{model}")

    date: Stored[Date]
    system: Stored[str]
    purpose: Stored[str]
    provider: Stored[str]
    model: Stored[str]
    calls: Attr[Count] = default(0)
    """Counted as in AssistTotal."""
    failed_calls: Attr[Count] = default(0)
    unpriced_calls: Attr[Count] = default(0)
    tokens_in: Attr[Count] = default(0)
    tokens_out: Attr[Count] = default(0)
    cost_nanodollars: Attr[Count] = default(0)


class ProviderSlots(Entity, table=main, type="ASSIST_SLOTS"):
    """Which calls now use a provider, over all workers, and until when nobody may ask it."""

    key = Key("ASSIST_PROVIDER#{provider}", "SLOTS")

    provider: str
    holders: Attr[dict[str, float]] = default({})
    """By `job_id/call_id`, the second of the epoch after which a slot is free again, whatever became of its worker."""
    paused_until: Attr[float] = default(0.0)


class BatchStatus(StrEnum):
    """How far a batch at a provider is."""

    PENDING = "PENDING"
    """It is to be sent."""
    SUBMITTED = "SUBMITTED"
    """The provider works on it, or its results are not recorded yet."""
    COMPLETED = "COMPLETED"
    """Its results are recorded; those of some lines may be errors."""
    FAILED = "FAILED"
    """The provider refused it as a whole."""


class BatchLines(Entity, table=main, type="ASSIST_BATCH_LINES"):
    """What a job sends in batches: many requests to one model, answered within a day at a lower price."""

    key = Key("JOB#{job_id}", "ASSIST_BATCH")

    job_id: str
    purpose: str
    kind: Literal["chat", "embed"]
    provider: str
    model: str
    lines_key: str
    """The object with the lines."""
    line_count: Count
    temperature: float = 0.0
    max_output_tokens: Count = 1024
    output: str | None = None
    """`module:Class` of the pydantic model that each answer must satisfy."""
    keeper: str | None = None
    """`module:Class` that records the results in a system's own form."""
    most_rounds: Count = 3
    """How often a line may be sent: what failed, or was not valid, goes into another batch."""
    poll_seconds: Count = 60
    created_at: Timestamp
    is_ending: Attr[bool] = default(False)
    """Whether nothing more is sent, because somebody wants the job to end with what is answered."""


class AssistBatch(Entity, table=main, type="ASSIST_BATCH"):
    """One batch at a provider: a part of a job's lines, or those of an earlier batch that must be sent again."""

    key = Key("JOB#{job_id}", "ASSIST_BATCH#{number:05d}")
    by_status = Key("ASSIST_BATCH#{status}", "{created_at}#{job_id}#{number:05d}", index="GSI1")

    job_id: str
    number: Stored[Count]
    first_line: Count
    line_count: Count
    """In this batch; of another round, only those that it sends again."""
    round: Count = 1
    retry_of: Count | None = None
    """The number of the batch of which it sends the rest."""
    status: Attr[BatchStatus] = default(BatchStatus.PENDING)
    call_id: Attr[str | None] = default(None)
    """The call that records its request, answers and cost."""
    remote_id: Attr[str | None] = default(None)
    """As the provider names it."""
    created_at: Timestamp
    submitted_at: Attr[Timestamp | None] = default(None)
    ended_at: Attr[Timestamp | None] = default(None)
    done_lines: Attr[Count] = default(0)
    """As the provider last reported."""
    answered: Attr[Count] = default(0)
    failed: Attr[Count] = default(0)
    """Lines that have no valid answer after this batch; those that another round sends again are among them."""
    error: Attr[str | None] = default(None)
