"""An image or a receipt with everything under it, each thing as what it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

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


@dataclass
class ReceiptContents:
    """A receipt and what lies under it, in key order."""

    receipt: Receipt | None = None
    metadata: ReceiptMetadata | None = None
    lines: list[ReceiptLine] = field(default_factory=list)
    words: list[ReceiptWord] = field(default_factory=list)
    letters: list[ReceiptLetter] = field(default_factory=list)
    labels: list[ReceiptWordLabel] = field(default_factory=list)
    analyses: list[ReceiptAnalysis] = field(default_factory=list)
    """Label, structure and line-item analyses, and the parts of the validation."""

    def take(self, entity: Entity) -> bool:
        """Put an entity where it belongs; False where it is no part of a receipt."""
        match entity:
            case Receipt():
                self.receipt = entity
            case ReceiptMetadata():
                self.metadata = entity
            case ReceiptLine():
                self.lines.append(entity)
            case ReceiptWord():
                self.words.append(entity)
            case ReceiptLetter():
                self.letters.append(entity)
            case ReceiptWordLabel():
                self.labels.append(entity)
            case ReceiptAnalysis():
                self.analyses.append(entity)
            case _:
                return False
        return True


@dataclass
class ImageContents:
    """An image and what lies under it, in key order."""

    image: Image | None = None
    lines: list[Line] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    receipts: dict[int, ReceiptContents] = field(default_factory=dict)
    """By receipt_id."""
    others: list[Entity] = field(default_factory=list)
    """Items of kinds that this package does not know."""

    def take(self, entity: Entity) -> None:
        """Put an entity where it belongs."""
        match entity:
            case Image():
                self.image = entity
            case ImageChange():
                pass  # it tells of a change, not of the image
            case Line():
                self.lines.append(entity)
            case Word():
                self.words.append(entity)
            case Letter():
                self.letters.append(entity)
            case _:
                number = getattr(entity, "receipt_id", None)
                if not isinstance(number, int) or not self.receipts.setdefault(number, ReceiptContents()).take(entity):
                    self.others.append(entity)


def image_contents(entities: Iterable[Entity]) -> ImageContents:
    """The contents of one image."""
    contents = ImageContents()
    for entity in entities:
        contents.take(entity)
    return contents


def receipt_contents(entities: Iterable[Entity]) -> ReceiptContents:
    """The contents of one receipt."""
    contents = ReceiptContents()
    for entity in entities:
        contents.take(entity)
    return contents
