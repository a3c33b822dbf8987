"""Calls to models by workers on other machines, for the jobs that they hold. Every request may be repeated."""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Base64Bytes, BaseModel, Field

from jobtable.assist.calls import Calls
from jobtable.assist.entities import AssistCall
from jobtable.assist.prices import Price
from jobtable.assist.providers import Usage
from jobtable.assist.verbs import CallPlan
from jobtable.jobs.engine import Jobs
from jobtable.web.api.route_parts import Body, api_router
from jobtable.web.api.work import LeaseBody, held_lease, last_lease
from jobtable.web.guard import WORK, allow
from jobtable.web.injection import JobId, TheJobs
from jobtable.web.limits import takes_file

router = api_router("assist")

_Text = Annotated[str, Field(min_length=1, max_length=1000)]
_CallId = Annotated[
    str, Field(pattern="^(chat|embed)-[0-9a-f]{32}$", examples=["chat-9f86d081884c7d659a2feaa0c55ad015"])
]
_Tokens = Annotated[int, Field(ge=0, le=10**12)]
_Seconds = Annotated[float, Field(ge=0, le=10**7)]


class PriceBody(Body):
    """What a million tokens cost, in nanodollars."""

    tokens_in: _Tokens
    tokens_out: _Tokens
    version: str = Field(max_length=200)


class CallPlanBody(LeaseBody):
    """A request that a worker is about to send to a model."""

    purpose: _Text
    kind: Literal["chat", "embed"]
    provider: _Text
    model: _Text
    request: str = Field(description="The whole request as JSON, by which its answer is found again.")
    most_tokens_in: _Tokens
    most_tokens_out: _Tokens = 0
    attempt: int = Field(1, ge=1, le=1000)
    follows: _CallId | None = None
    cache: Literal["job", "store", "off"] = "job"
    price: PriceBody | None = None
    call_id: _CallId = Field(description="Used as it is with `cache=off`; otherwise it follows from the request.")

    def plan(self) -> CallPlan:
        """Return the request as the ledger takes it."""
        return CallPlan(
            purpose=self.purpose,
            kind=self.kind,
            provider=self.provider,
            model=self.model,
            request=self.request,
            most_usage=Usage(self.most_tokens_in, self.most_tokens_out),
            attempt=self.attempt,
            follows=self.follows,
            cache=self.cache,
            price=None if self.price is None else Price(**dict(self.price)),
            call_id=self.call_id if self.cache == "off" else "",
        )


class CallBody(LeaseBody):
    """A call of a job."""

    call_id: _CallId


class EndBody(CallBody):
    """How a call ended, and what it used."""

    tokens_in: _Tokens = 0
    tokens_out: _Tokens = 0
    is_estimated: bool = False
    tries: int = Field(1, ge=0, le=10**6)
    seconds: _Seconds = 0.0

    @property
    def usage(self) -> Usage:
        return Usage(self.tokens_in, self.tokens_out, self.is_estimated)


class CallAnswerBody(EndBody):
    """The answer of a model."""

    answer: Any
    answered_by: str | None = Field(None, max_length=1000)


class ErrorBody(EndBody):
    """Why a call failed."""

    error: str = Field(max_length=100_000)


class FaultBody(CallBody):
    """Why an answer is not valid."""

    fault: str = Field(max_length=100_000)


class SharedBody(CallBody):
    """The texts whose vectors a call has."""

    digests: list[Base64Bytes] = Field(max_length=100_000)
    dimensions: int = Field(ge=1, le=10**6)


class WantedVectorsBody(LeaseBody):
    """The texts whose vectors are wanted, by their digests."""

    provider: _Text
    model: _Text
    digests: list[Base64Bytes] = Field(max_length=1_000)


class FoundVectors(BaseModel):
    """Packed vectors by the digests of their texts, both in Base64."""

    vectors: dict[str, str]


class SlotBody(CallBody):
    """A slot of a provider that a call needs."""

    provider: _Text
    most: int = Field(ge=1, le=10**6)
    seconds: _Seconds


class ReleasedSlotBody(CallBody):
    """A slot that a call no longer needs."""

    provider: _Text
    pause_seconds: _Seconds = 0.0


class BegunBody(BaseModel):
    """A call that may be sent now, or one that has its answer already."""

    call: AssistCall
    answer: Any = None
    may_be_known: bool = False


class Wait(BaseModel):
    """How long to wait before asking for a slot again; 0 if it was taken."""

    seconds: float


def _calls(jobs: Jobs, job_id: str, body: LeaseBody) -> Calls:
    return Calls(jobs, held_lease(jobs, job_id, body))


def _call(jobs: Jobs, job_id: str, body: CallBody) -> AssistCall:
    return jobs.store.get(AssistCall.key(job_id=job_id, call_id=body.call_id))


@router.post("/jobs/{job_id}/assist/begin")
@allow(WORK)
@takes_file(whole=True)
def begin_assist_call(job_id: JobId, body: CallPlanBody, jobs: TheJobs) -> BegunBody:
    """Record a call before it is sent, within the budgets of the job; or return the answer that is recorded."""
    return BegunBody(**vars(_calls(jobs, job_id, body).begin(body.plan())))


@router.post("/jobs/{job_id}/assist/end")
@allow(WORK)
@takes_file(whole=True)
def end_assist_call(job_id: JobId, body: CallAnswerBody, jobs: TheJobs) -> AssistCall:
    """Record an answer with what it used."""
    return _calls(jobs, job_id, body).end(
        _call(jobs, job_id, body),
        body.answer,
        body.usage,
        tries=body.tries,
        seconds=body.seconds,
        answered_by=body.answered_by,
    )


@router.post("/jobs/{job_id}/assist/fail")
@allow(WORK)
def fail_assist_call(job_id: JobId, body: ErrorBody, jobs: TheJobs) -> AssistCall:
    """Record that a call failed, with what it used nevertheless."""
    return _calls(jobs, job_id, body).fail(
        _call(jobs, job_id, body), body.error, tries=body.tries, seconds=body.seconds, usage=body.usage
    )


@router.post("/jobs/{job_id}/assist/refuse")
@allow(WORK)
def refuse_assist_answer(job_id: JobId, body: FaultBody, jobs: TheJobs) -> AssistCall:
    """Record that an answer is not valid."""
    return _calls(jobs, job_id, body).refuse(_call(jobs, job_id, body), body.fault)


@router.post("/jobs/{job_id}/assist/skip")
@allow(WORK)
@takes_file(whole=True)
def skip_assist_call(job_id: JobId, body: CallPlanBody, jobs: TheJobs) -> AssistCall:
    """Record that no model was asked, because no provider is set."""
    return _calls(jobs, job_id, body).skip(body.plan())


@router.post("/jobs/{job_id}/assist/vectors")
@allow(WORK)
def find_assist_vectors(job_id: JobId, body: WantedVectorsBody, jobs: TheJobs) -> FoundVectors:
    """Return the vectors of those texts for which a model has made some, for any job."""
    found = _calls(jobs, job_id, body).find_vectors(body.provider, body.model, body.digests)
    vectors = {b64encode(digest).decode(): b64encode(vector).decode() for digest, vector in found.items()}
    return FoundVectors(vectors=vectors)


@router.post("/jobs/{job_id}/assist/share", status_code=204)
@allow(WORK)
@takes_file(whole=True)
def share_assist_vectors(job_id: JobId, body: SharedBody, jobs: TheJobs) -> Response:
    """Let every job find the vectors of a call by the digests of its texts."""
    _calls(jobs, job_id, body).share(_call(jobs, job_id, body), body.digests, body.dimensions)
    return Response(status_code=204)


@router.post("/jobs/{job_id}/assist/slots/take")
@allow(WORK)
def take_assist_slot(job_id: JobId, body: SlotBody, jobs: TheJobs) -> Wait:
    """Take one of the slots of a provider for a call."""
    calls = _calls(jobs, job_id, body)
    return Wait(seconds=calls.take_slot(body.provider, body.call_id, most=body.most, seconds=body.seconds))


@router.post("/jobs/{job_id}/assist/slots/release", status_code=204)
@allow(WORK)
def release_assist_slot(job_id: JobId, body: ReleasedSlotBody, jobs: TheJobs) -> Response:
    """Return a slot, also after the run was lost; with a pause, nobody takes one before it is over."""
    calls = Calls(jobs, last_lease(jobs, job_id, body))
    calls.release_slot(body.provider, body.call_id, pause_seconds=body.pause_seconds)
    return Response(status_code=204)
