"""The analyses of receipts: stored under their receipt, found by kind and time."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern
from jobtable.systems.receipts.entities import (
    ReceiptAnalysis,
    ReceiptChatGPTValidation,
    ReceiptLabelAnalysis,
    ReceiptLineItemAnalysis,
    ReceiptStructureAnalysis,
    ReceiptValidationCategory,
    ReceiptValidationResult,
    ReceiptValidationSummary,
)

A = TypeVar("A", ReceiptLabelAnalysis, ReceiptStructureAnalysis, ReceiptLineItemAnalysis)
Timed = TypeVar(
    "Timed",
    ReceiptLabelAnalysis,
    ReceiptStructureAnalysis,
    ReceiptLineItemAnalysis,
    ReceiptValidationSummary,
    ReceiptValidationCategory,
    ReceiptValidationResult,
    ReceiptChatGPTValidation,
)


class AnalysisService:
    """Label, structure and line-item analyses, at most one of each for a receipt; validations in order of time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(self, analysis: ReceiptLabelAnalysis | ReceiptStructureAnalysis | ReceiptLineItemAnalysis) -> None:
        """Store an analysis, in place of an older one of its kind."""
        self._store.put(analysis)

    @access_pattern("Get an analysis of a receipt")
    def get(self, kind: type[A], image_id: str, receipt_id: int) -> A:
        """A receipt's analysis of a kind, or NotFoundError."""
        return self._store.get(kind.key(image_id=image_id, receipt_id=receipt_id))

    @access_pattern("List analyses of a kind by time", index="GSI1")
    def list_by_time(
        self,
        kind: type[Timed],
        *,
        after: datetime | None = None,
        before: datetime | None = None,
        newest_first: bool = False,
    ) -> Query[Timed]:
        """The analyses of a kind, or the parts of validations, of all receipts, in order of time."""
        return self._store.query(kind.by_time(), after=after, before=before, newest_first=newest_first)

    @access_pattern("List the analyses of a receipt")
    def list_of_receipt(self, image_id: str, receipt_id: int) -> list[ReceiptAnalysis]:
        """All that analyses and validations have to say of a receipt, by one query."""
        first = ReceiptLabelAnalysis.key(image_id=image_id, receipt_id=receipt_id)
        last = ReceiptChatGPTValidation.key(image_id=image_id, receipt_id=receipt_id)
        found = self._store.collection(first, until=last)
        return [entity for entity in found if isinstance(entity, ReceiptAnalysis)]
