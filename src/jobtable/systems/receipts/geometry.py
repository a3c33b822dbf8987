"""Where something stands on an image: points, corners, angles."""

from __future__ import annotations

import math
from typing import Annotated, Self, TypeAlias

from pydantic import Field, model_validator

from jobtable.model import Part

Degrees: TypeAlias = Annotated[float, Field(ge=-360, le=360)]
Radians: TypeAlias = Annotated[float, Field(ge=-2 * math.pi, le=2 * math.pi)]
Confidence: TypeAlias = Annotated[float, Field(ge=0, le=1)]
"""How sure a reader is: 0 to 1."""


class Point(Part):
    """A point, in pixels or as fractions of the image, as its writer counts."""

    x: float
    y: float


class BoundingBox(Part):
    """A quadrilateral by its corners; its sides do not cross."""

    top_left: Point
    top_right: Point
    bottom_left: Point
    bottom_right: Point

    @model_validator(mode="after")
    def _refuse_crossed_sides(self) -> Self:
        refuse_crossed_sides(self.top_left, self.top_right, self.bottom_right, self.bottom_left)
        return self


def refuse_crossed_sides(top_left: Point, top_right: Point, bottom_right: Point, bottom_left: Point) -> None:
    """Raise ValueError where opposite sides cross: then two corners have been exchanged."""
    if _cross(top_left, top_right, bottom_left, bottom_right):
        raise ValueError("the top side crosses the bottom side; two corners are exchanged")
    if _cross(top_left, bottom_left, top_right, bottom_right):
        raise ValueError("the left side crosses the right side; two corners are exchanged")


def _cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the inner part of a-b meets the inner part of c-d."""
    return _turn(a, b, c) * _turn(a, b, d) < 0 and _turn(c, d, a) * _turn(c, d, b) < 0


def _turn(a: Point, b: Point, c: Point) -> int:
    """1 where a-b-c turns left, -1 where it turns right, 0 where it is straight."""
    area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
    return (area > 0) - (area < 0)
