"""What the commands of receipts list."""

from __future__ import annotations

from collections.abc import Iterator

from tests.golden import golden

from jobtable.model import Entity

IMAGE = "3f52804b-2fad-4e00-92c8-b593da3a8ed3"
LISTS = [
    "receipts list",
    f"receipts list --image {IMAGE}",
    "receipts labels",
    "receipts labels --status PENDING",
    "receipts labels --label GRAND_TOTAL --status PENDING",
    "receipts validations",
]
ASKED_FOR: dict[str, str] = {}
LAST_SHOWN: set[str] = set()
EMPTY: dict[str, str] = {}


def listed() -> Iterator[Entity]:
    """Three of everything."""
    for number in range(3):
        yield golden("receipts/Receipt", receipt_id=number)
        yield golden("receipts/ReceiptWordLabel", word_id=number)
        yield golden("receipts/ReceiptValidationSummary", receipt_id=number)
