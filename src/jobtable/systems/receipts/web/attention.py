"""The receipts that a person should review."""

from __future__ import annotations

from urllib.parse import quote

from jobtable.app import Services
from jobtable.systems.receipts.entities import ReceiptValidationSummary, ValidationStatus
from jobtable.web.notices import Notice, Notices


def reviews(services: Services, limit: int) -> Notices:
    """The receipts whose validation needs a review."""
    waiting = ReceiptValidationSummary.by_status(overall_status=ValidationStatus.NEEDS_REVIEW)
    items = [
        Notice(
            f"Review receipt {each.receipt_id}",
            f"/receipts/{quote(each.image_id, safe='')}",
            "receipts",
            each.validation_timestamp,
        )
        for each in services.store.query(waiting).page(size=limit).items
    ]
    return Notices(items)
