"""Calls of every status in the store of the tests of pages, with markup in prompts, answers and faults."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from jobtable.app import Services
from jobtable.assist.budgets import counted
from jobtable.assist.entities import OWN_JOBS, AssistCall, AssistCost, AssistTotal, CallStatus
from jobtable.clock import wall_time
from jobtable.jobs.submit.definition import NewJob
from jobtable.store import Store

JOB = "asks-models"
WITHOUT = "asks-nobody"
REFUSED, ANSWERED, LARGE, EMBEDDED, OPEN, FAILED, REUSED = (
    f"{kind}-{number:032x}"
    for number, kind in enumerate(["chat", "chat", "chat", "embed", "chat", "chat", "chat"], start=1)
)
_SCHEMA = {"type": "object", "properties": {"merchant": {"type": "string"}, "total": {"type": "number"}}}


class _Writer:
    """Writes calls as the ledger does: the request in the object store, then the call, then its totals."""

    def __init__(self, services: Services, at: datetime, markup: str) -> None:
        self._services = services
        self._at = at
        self._markup = markup

    def call(self, call_id: str, number: int, *, request: dict[str, Any] | None = None, **values: Any) -> None:
        job_id = values.pop("job_id", JOB)
        at = self._at + timedelta(seconds=2 * number)
        key = f"jobs/{job_id}/assist/{call_id}.request.json"
        messages = [
            {"role": "system", "content": f"You read receipts. {self._markup}"},
            {"role": "user", "content": "TRADER JOE'S\nTOTAL 12.50"},
        ]
        sent = {"model": "gpt-5-mini", "messages": messages, "schema": _SCHEMA, "temperature": 0.0}
        self._services.objects.put(key, json.dumps(sent if request is None else request).encode())
        known = {
            "job_id": job_id,
            "call_id": call_id,
            "root_job_id": job_id,
            "system": OWN_JOBS,
            "date": self._at.date(),
            "purpose": f"read receipt {self._markup}",
            "kind": call_id.partition("-")[0],
            "provider": "openai",
            "model": "gpt-5-mini",
            "request_sha256": f"{number:064x}",
            "request_key": key,
            "started_at": at,
            "ended_at": at + timedelta(seconds=1.5),
            "seconds": 1.5,
            "status": CallStatus.ANSWERED,
            "tokens_in": 812,
            "tokens_out": 40,
            "tries": 1,
            "cost_nanodollars": 283_000,
            "price_version": "2025-11-01",
        }
        call = AssistCall.model_validate({**known, **values})
        self._services.store.put(call)
        _count(self._services.store, call)


def _count(store: Store, call: AssistCall) -> None:
    amounts = {name: amount for name, amount in counted(call) if amount}
    if not amounts:
        return
    for scope in ("job", "tree"):
        total = AssistTotal.key(job_id=call.job_id, scope=scope)
        store.upsert(total, *(getattr(AssistTotal, name).increment(amount) for name, amount in amounts.items()))
    day = AssistCost.key(
        date=call.date, system=call.system, purpose=call.purpose, provider=call.provider, model=call.model
    )
    costs = amounts.keys() & AssistCost.model_fields.keys()
    if costs:
        store.upsert(day, *(getattr(AssistCost, name).increment(amounts[name]) for name in sorted(costs)))


def fill_calls(services: Services, markup: str = "") -> None:
    """Make a job that asked models in every way, and one that took its way without a model."""
    for job_id, name in ((JOB, f"read the receipts {markup}"), (WITHOUT, "label without a model")):
        budget: dict[str, Any] = {"max_cost": 0.5, "max_tokens": 20_000} if job_id == JOB else {}
        task = "tests.web.tasks:work"
        services.engine.submit(NewJob(name=name, job_id=job_id, task=task, params={"text": "x"}, **budget))
    writer = _Writer(services, wall_time(services.store.clock) - timedelta(minutes=3), markup)
    fault = f"total: Input should be a valid number\nmerchant: {markup}"
    writer.call(REFUSED, 1, status=CallStatus.REFUSED, answer=f'{{"total": "twelve {markup}"}}', error=fault)
    answer = json.dumps({"merchant": f"Trader Joe's {markup}", "total": 12.5})
    writer.call(ANSWERED, 2, answer=answer, attempt=2, follows=REFUSED, answered_by="gpt-5-mini-2025-08-07", tries=3)
    large = f"jobs/{JOB}/assist/{LARGE}.answer.json"
    services.objects.put(large, json.dumps("A long story. " * 12_000).encode())
    writer.call(LARGE, 3, purpose="tell", answer={"object": large}, price_version=None, cost_nanodollars=0, model="own")
    vectors = f"jobs/{JOB}/assist/{EMBEDDED}.answer.json"
    services.objects.put(vectors, json.dumps({"dimensions": 3, "float32": "AAAA" * 8}).encode())
    texts = {"model": "text-embedding-3-small", "texts": ["good coffee", markup or "bad service"]}
    writer.call(
        EMBEDDED, 4, request=texts, purpose="embed", answer={"object": vectors}, model="text-embedding-3-small",
        tokens_out=0, cost_nanodollars=16_240,
    )  # fmt: skip
    ended: dict[str, Any] = {"ended_at": None, "seconds": 0, "tokens_in": 0, "tokens_out": 0, "cost_nanodollars": 0}
    reserved: dict[str, Any] = {"reserved_tokens": 5_000, "reserved_nanodollars": 2_500_000}
    writer.call(OPEN, 5, status=CallStatus.STARTED, purpose="summarize", **ended, **reserved)
    error = "openai is overloaded (503); it was asked 4 times"
    writer.call(FAILED, 6, status=CallStatus.FAILED, error=error, tries=4, **{**ended, "ended_at": "2025-11-01"})
    writer.call(REUSED, 7, reused_from=f"{JOB}/{ANSWERED}", answer=answer, **{**ended, "ended_at": "2025-11-01"})
    nobody: dict[str, Any] = {"provider": "none", "model": "none", "price_version": None, "tries": 0}
    writer.call(
        ANSWERED, 8, job_id=WITHOUT, status=CallStatus.NOT_ASKED, **nobody, **{**ended, "ended_at": "2025-11-01"}
    )


def paths() -> list[str]:
    """The pages of calls and costs."""
    calls = [REFUSED, ANSWERED, LARGE, EMBEDDED, OPEN, FAILED, REUSED]
    return [
        "/assist",
        "/assist?from=2025-10-01&to=2025-10-31",
        *(f"/assist/calls/{JOB}/{call}" for call in calls),
        f"/assist/calls/{WITHOUT}/{ANSWERED}",
        f"/jobs/{JOB}",
        f"/jobs/{WITHOUT}",
    ]
