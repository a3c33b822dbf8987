"""The receipts that wait for a review, as the inbox lists them."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from jobtable.inbox.waiting_tasks import Waiting
from jobtable.jobs.verbs import JobVerbs
from jobtable.systems.receipts.entities import ReceiptValidationSummary, ValidationStatus


def reviews(jobs: JobVerbs, limit: int) -> Iterator[Waiting]:
    """List the receipts whose validation needs a review."""
    waiting = ReceiptValidationSummary.by_status(overall_status=ValidationStatus.NEEDS_REVIEW)
    for each in jobs.store.query(waiting, limit=limit):
        yield Waiting(
            title=f"Review receipt {each.receipt_id}",
            path=f"/receipts/{quote(each.image_id, safe='')}",
            icon="receipts",
            since=each.validation_timestamp,
        )
