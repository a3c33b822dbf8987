"""The ledger of a worker with only a server: its calls are recorded by the server, in the same way as at the store."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from jobtable.assist.entities import AssistCall
from jobtable.assist.one_sender import OneSender
from jobtable.assist.providers import Usage
from jobtable.assist.verbs import BegunCall, CallPlan, Ledger
from jobtable.errors import LeaseLostError
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.verbs import WorkVerbs
from jobtable.remote.recording import lease_of
from jobtable.remote.server_requests import Server, path_of
from jobtable.store.retries import insist

_DIGESTS_AT_ONCE = 1_000
"""An answer then has some megabytes."""


class ServerLedger(OneSender):
    """Takes the place of `StoreLedger` for a worker elsewhere."""

    def __init__(self, server: Server, work: WorkVerbs, lease: Lease) -> None:
        super().__init__(_ServerCalls(server, work, lease), lease)


class _ServerCalls(Ledger):
    """Sends each verb as a request, which is repeated for a while if the server does not answer."""

    def __init__(self, server: Server, work: WorkVerbs, lease: Lease) -> None:
        self._server = server
        self._clock = work.clock
        self._lease = lease

    def begin(self, plan: CallPlan) -> BegunCall:
        begun = self._post("begin", **_plan(plan))
        return BegunCall(AssistCall.model_validate(begun["call"]), begun["answer"], begun["may_be_known"])

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
        told = {**_used(usage), "tries": tries, "seconds": seconds, "answered_by": answered_by}
        return self._change("end", call, answer=answer, **told)

    def fail(
        self, call: AssistCall, error: str, *, tries: int, seconds: float, usage: Usage | None = None
    ) -> AssistCall:
        return self._change("fail", call, error=error, tries=tries, seconds=seconds, **_used(usage or Usage()))

    def refuse(self, call: AssistCall, fault: str) -> AssistCall:
        return self._change("refuse", call, fault=fault)

    def skip(self, plan: CallPlan) -> AssistCall:
        return AssistCall.model_validate(self._post("skip", **_plan(plan)))

    def find_vectors(self, provider: str, model: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for start in range(0, len(digests), _DIGESTS_AT_ONCE):
            asked = [base64.b64encode(digest).decode() for digest in digests[start : start + _DIGESTS_AT_ONCE]]
            vectors = self._post("vectors", provider=provider, model=model, digests=asked)["vectors"]
            found |= {base64.b64decode(digest): base64.b64decode(vector) for digest, vector in vectors.items()}
        return found

    def share(self, call: AssistCall, digests: Sequence[bytes], dimensions: int) -> None:
        encoded = [base64.b64encode(digest).decode() for digest in digests]
        self._post("share", call_id=call.call_id, digests=encoded, dimensions=dimensions)

    def take_slot(self, provider: str, call_id: str, *, most: int, seconds: float) -> float:
        taken = self._post("slots", "take", provider=provider, call_id=call_id, most=most, seconds=seconds)
        return float(taken["seconds"])

    def release_slot(self, provider: str, call_id: str, *, pause_seconds: float = 0.0) -> None:
        with suppress(LeaseLostError):  # the job has another run: the slot is free when its time is over
            self._post("slots", "release", provider=provider, call_id=call_id, pause_seconds=pause_seconds)

    def _change(self, verb: str, call: AssistCall, **more: Any) -> AssistCall:
        return AssistCall.model_validate(self._post(verb, call_id=call.call_id, **more))

    def _post(self, *verb: str, **more: Any) -> Any:
        job_id = self._lease.job.job_id
        path = path_of("jobs", job_id, "assist", *verb)
        body = {**lease_of(self._lease), **more}
        return insist(lambda: self._server.write("POST", path, body), f"record a call of job {job_id}", self._clock)


def _used(usage: Usage) -> dict[str, Any]:
    return {"tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out, "is_estimated": usage.is_estimated}


def _plan(plan: CallPlan) -> dict[str, Any]:
    price = plan.price and plan.price.of_request(plan.most_usage.tokens_in)
    return {
        "purpose": plan.purpose,
        "kind": plan.kind,
        "provider": plan.provider,
        "model": plan.model,
        "request": plan.request,
        "most_tokens_in": plan.most_usage.tokens_in,
        "most_tokens_out": plan.most_usage.tokens_out,
        "attempt": plan.attempt,
        "follows": plan.follows,
        "cache": plan.cache,
        "price": price and {"tokens_in": price.tokens_in, "tokens_out": price.tokens_out, "version": price.version},
        "call_id": plan.call_id,
    }
