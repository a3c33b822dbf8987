"""What all items of receipts have in common, in the current table and in the legacy one: fields and primary keys."""

from __future__ import annotations

import math
from typing import Annotated, Any, Protocol, TypeAlias, TypeVar

from pydantic import Field, model_validator

from jobtable.model import Entity, Key, Part, Selection, Timestamp

Number: TypeAlias = Annotated[int, Field(ge=0, le=99_999)]
"""The number of a receipt, line, word or letter; keys have five digits for it."""
Pixels: TypeAlias = Annotated[int, Field(ge=1)]
Degrees: TypeAlias = Annotated[float, Field(ge=-360, le=360)]
Radians: TypeAlias = Annotated[float, Field(ge=-2 * math.pi, le=2 * math.pi)]
Confidence: TypeAlias = Annotated[float, Field(ge=0, le=1)]
"""How sure a program is of what it read, from 0 to 1."""

E = TypeVar("E", bound=Entity)


def key_of(entity: E) -> Selection[E]:
    """Return the primary key of an entity."""
    return type(entity).key(**{name: getattr(entity, name) for name in type(entity).__schema__.primary.inputs})


class ImagePoint(Part):
    """A point, in pixels or as fractions of the image, depending on the program that wrote it."""

    x: float
    y: float


class _HasCorners(Protocol):
    top_left: ImagePoint
    top_right: Any
    """None where a receipt was stored without it."""
    bottom_left: ImagePoint
    bottom_right: ImagePoint


Shape = TypeVar("Shape", bound=_HasCorners)


def refuse_crossed_sides(shape: Shape) -> Shape:
    """Return a quadrilateral, or raise ValueError if opposite sides cross because two corners are exchanged."""
    a, b, c, d = shape.top_left, shape.top_right, shape.bottom_right, shape.bottom_left
    if b is not None:
        if _cross(a, b, d, c):
            raise ValueError("the top side crosses the bottom side; two corners are exchanged")
        if _cross(a, d, b, c):
            raise ValueError("the left side crosses the right side; two corners are exchanged")
    return shape


def _cross(a: ImagePoint, b: ImagePoint, c: ImagePoint, d: ImagePoint) -> bool:
    """Return whether the inner part of a-b meets the inner part of c-d."""
    return _turn(a, b, c) * _turn(a, b, d) < 0 and _turn(c, d, a) * _turn(c, d, b) < 0


def _turn(a: ImagePoint, b: ImagePoint, c: ImagePoint) -> int:
    """Return 1 if a-b-c turns left, -1 if it turns right, 0 if it is straight."""
    area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
    return (area > 0) - (area < 0)


class BoundingBox(Part):
    """A quadrilateral by its corners; its sides do not cross."""

    top_left: ImagePoint
    top_right: ImagePoint
    bottom_left: ImagePoint
    bottom_right: ImagePoint

    _checked = model_validator(mode="after")(refuse_crossed_sides)


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
    top_left: ImagePoint
    top_right: ImagePoint | None = None
    bottom_left: ImagePoint
    bottom_right: ImagePoint

    _checked = model_validator(mode="after")(refuse_crossed_sides)


class Recognised(Entity):
    """A piece of text and where OCR read it."""

    image_id: str
    text: str
    top_right: ImagePoint
    top_left: ImagePoint
    bottom_right: ImagePoint
    bottom_left: ImagePoint
    angle_degrees: Degrees
    angle_radians: Radians
    confidence: Confidence

    _checked = model_validator(mode="after")(refuse_crossed_sides)


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
