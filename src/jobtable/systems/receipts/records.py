"""What the items of receipts have in every table that holds them: their fields and their primary keys."""

from __future__ import annotations

from typing import Annotated, Self, TypeAlias

from pydantic import Field, model_validator

from jobtable.model import Entity, Key, Timestamp
from jobtable.systems.receipts.geometry import Confidence, Degrees, Point, Radians, refuse_crossed_sides

Number: TypeAlias = Annotated[int, Field(ge=0, le=99_999)]
"""The number of a receipt, line, word or letter: what five digits of a key can hold."""
Pixels: TypeAlias = Annotated[int, Field(ge=1)]


class Picture(Entity):
    """A picture in object storage."""

    image_id: str
    width: Pixels
    height: Pixels
    timestamp_added: Timestamp
    s3_bucket: str
    s3_key: str
    sha256: str | None = None


class ImageRecord(Picture):
    """An image in any table."""

    key = Key("IMAGE#{image_id}", "IMAGE")


class ReceiptRecord(Picture):
    """A receipt on an image in any table."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}")

    receipt_id: Number
    top_left: Point
    top_right: Point | None = None
    bottom_left: Point
    bottom_right: Point

    @model_validator(mode="after")
    def _refuse_crossed_sides(self) -> Self:
        if self.top_right is not None:
            refuse_crossed_sides(self.top_left, self.top_right, self.bottom_right, self.bottom_left)
        return self


class Recognised(Entity):
    """A piece of text, and where OCR has read it."""

    image_id: str
    text: str
    top_right: Point
    top_left: Point
    bottom_right: Point
    bottom_left: Point
    angle_degrees: Degrees
    angle_radians: Radians
    confidence: Confidence

    @model_validator(mode="after")
    def _refuse_crossed_sides(self) -> Self:
        refuse_crossed_sides(self.top_left, self.top_right, self.bottom_right, self.bottom_left)
        return self


class LineRecord(Recognised):
    """A line of an image in any table."""

    key = Key("IMAGE#{image_id}", "LINE#{line_id:05d}")

    line_id: Number


class WordRecord(Recognised):
    """A word of an image in any table."""

    key = Key("IMAGE#{image_id}", "LINE#{line_id:05d}#WORD#{word_id:05d}")

    line_id: Number
    word_id: Number


class LetterRecord(Recognised):
    """A letter of an image in any table."""

    key = Key("IMAGE#{image_id}", "LINE#{line_id:05d}#WORD#{word_id:05d}#LETTER#{letter_id:05d}")

    line_id: Number
    word_id: Number
    letter_id: Number


class ReceiptLineRecord(Recognised):
    """A line of a receipt in any table."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}")

    receipt_id: Number
    line_id: Number


class ReceiptWordRecord(Recognised):
    """A word of a receipt in any table."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}")

    receipt_id: Number
    line_id: Number
    word_id: Number


class ReceiptLetterRecord(Recognised):
    """A letter of a receipt in any table."""

    key = Key(
        "IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}#LETTER#{letter_id:05d}"
    )

    receipt_id: Number
    line_id: Number
    word_id: Number
    letter_id: Number
