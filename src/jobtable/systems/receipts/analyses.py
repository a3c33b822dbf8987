"""The analyses of receipts: stored under their receipt, listed by kind and time."""

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
    """Label, structure and line-item analyses, at most one of each per receipt; also lists validations by time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(self, analysis: A) -> A:
        """Store an analysis and replace an older one of its kind."""
        self._store.put(analysis)
        return analysis

    @access_pattern("Get an analysis of a receipt")
    def get(self, kind: type[A], image_id: str, receipt_id: int) -> A:
        """Return a receipt's analysis of a kind, or raise NotFoundError."""
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
        """List the analyses of a kind, or the parts of validations, of all receipts by time."""
        return self._store.query(kind.by_time(), after=after, before=before, newest_first=newest_first)

    @access_pattern("List the analyses of a receipt")
    def list_of_receipt(self, image_id: str, receipt_id: int) -> list[ReceiptAnalysis]:
        """List all analyses and validations of a receipt, with one query."""
        first = ReceiptLabelAnalysis.key(image_id=image_id, receipt_id=receipt_id)
        last = ReceiptChatGPTValidation.key(image_id=image_id, receipt_id=receipt_id)
        found = self._store.collection(first, until=last)
        return [entity for entity in found if isinstance(entity, ReceiptAnalysis)]
