"""An image or a receipt with everything under it, sorted by kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from jobtable.model import Entity
from jobtable.systems.receipts.entities import (
    Image,
    ImageChange,
    Letter,
    Line,
    Receipt,
    ReceiptAnalysis,
    ReceiptLetter,
    ReceiptLine,
    ReceiptMetadata,
    ReceiptWord,
    ReceiptWordLabel,
    Word,
)

E = TypeVar("E", bound=Entity)

_OF_IMAGE = (Image, ImageChange, Line, Word, Letter)
_OF_RECEIPT = Receipt | ReceiptMetadata | ReceiptLine | ReceiptWord | ReceiptLetter | ReceiptWordLabel | ReceiptAnalysis


@dataclass
class ReceiptContents:
    """A receipt and everything under it, in key order."""

    receipt: Receipt | None
    metadata: ReceiptMetadata | None
    lines: list[ReceiptLine]
    words: list[ReceiptWord]
    letters: list[ReceiptLetter]
    labels: list[ReceiptWordLabel]
    analyses: list[ReceiptAnalysis]
    """Label, structure and line-item analyses, and the parts of the validation."""


@dataclass
class ImageContents:
    """An image and everything under it, in key order."""

    image: Image | None
    lines: list[Line]
    words: list[Word]
    letters: list[Letter]
    receipts: dict[int, ReceiptContents]
    """By receipt_id."""
    others: list[Entity]
    """Items of kinds that this package does not know."""


def receipt_contents(entities: Iterable[Entity]) -> ReceiptContents:
    """Sort the items of one receipt."""
    found = list(entities)
    return ReceiptContents(
        receipt=next(iter(_only(Receipt, found)), None),
        metadata=next(iter(_only(ReceiptMetadata, found)), None),
        lines=_only(ReceiptLine, found),
        words=_only(ReceiptWord, found),
        letters=_only(ReceiptLetter, found),
        labels=_only(ReceiptWordLabel, found),
        analyses=_only(ReceiptAnalysis, found),
    )


def image_contents(entities: Iterable[Entity]) -> ImageContents:
    """Sort the items of one image."""
    found = list(entities)
    receipts: dict[int, list[Entity]] = {}
    for entity in found:
        if isinstance(entity, _OF_RECEIPT):
            receipts.setdefault(entity.receipt_id, []).append(entity)
    return ImageContents(
        image=next(iter(_only(Image, found)), None),
        lines=_only(Line, found),
        words=_only(Word, found),
        letters=_only(Letter, found),
        receipts={number: receipt_contents(items) for number, items in receipts.items()},
        others=[each for each in found if not isinstance(each, (*_OF_IMAGE, _OF_RECEIPT))],
    )


def _only(kind: type[E], entities: Iterable[Entity]) -> list[E]:
    return [entity for entity in entities if isinstance(entity, kind)]
