"""The receipts of the demonstration."""

from __future__ import annotations

from pathlib import Path

from jobtable.app import Services
from jobtable.demo import USER, DemoPart, DemoState
from jobtable.jobs.submit.definition import NewJob

_RECEIPTS = "demo-receipts"
_RECEIPT_COUNT = 9


def _start_receipts(services: Services, folder: Path) -> None:
    new = NewJob(
        name="read receipts",
        task="jobtable.systems.receipts.demo.reading:read_receipts",
        params={"count": _RECEIPT_COUNT},
        job_id=_RECEIPTS,
        job_type="receipts",
        user=USER,
        tags=frozenset({"demo"}),
    )
    services.jobs.submit(new)


def _look_at_receipts(services: Services) -> DemoState:
    job = services.jobs.queries.get_job(_RECEIPTS)
    return DemoState(job.status, job.progress, f"{_RECEIPT_COUNT} receipts", job.is_final)


PART = DemoPart(
    "Receipts", "/receipts", _start_receipts, _look_at_receipts, ("jobtable.systems.receipts.demo.reading",)
)
