"""What cannot be on an image is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.systems.receipts.pictures import CORNERS, NOON, PICTURE, PLACED

from jobtable.systems.receipts.entities import Image, Line, Receipt
from jobtable.systems.receipts.entities.record_bases import BoundingBox, ImagePoint


def line(**changes: Any) -> Line:
    return Line(**{"image_id": "a", "line_id": 1, "text": "x", **PLACED, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"confidence": 1.01},
        {"confidence": -0.01},
        {"confidence": math.nan},
        {"angle_degrees": 361},
        {"angle_radians": -6.3},
        {"line_id": -1},
        {"line_id": 100_000},
        {"top_left": {"x": 0.1}},
        {"top_left": {"x": math.inf, "y": 0}},
        {"top_left": {"x": 0, "y": 0, "z": 0}},
        {"top_left": CORNERS["top_right"], "top_right": CORNERS["top_left"]},
        {"top_left": CORNERS["bottom_left"], "bottom_left": CORNERS["top_left"]},
    ],
    ids=str,
)
def test_a_line_with_impossible_geometry_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        line(**changes)


def test_limits_are_allowed() -> None:
    assert line(confidence=0, angle_degrees=-360, angle_radians=2 * math.pi, line_id=99_999).confidence == 0
    one_point = {name: {"x": 1, "y": 1} for name in CORNERS}
    assert line(**one_point).top_left == ImagePoint(x=1, y=1)


def test_a_receipt_may_come_without_its_fourth_corner() -> None:
    three = {name: point for name, point in CORNERS.items() if name != "top_right"}
    assert Receipt(image_id="a", receipt_id=1, **PICTURE, **three).top_right is None
    twisted = {**CORNERS, "top_left": CORNERS["top_right"], "top_right": CORNERS["top_left"]}
    with pytest.raises(ValidationError, match="exchanged"):
        Receipt(image_id="a", receipt_id=1, **PICTURE, **twisted)


@pytest.mark.parametrize("size", [{"width": 0}, {"height": -1}])
def test_an_image_has_pixels(size: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        Image(**{"image_id": "a", **PICTURE, "timestamp_added": NOON, **size})


@given(
    angle=st.floats(0, 2 * math.pi), width=st.floats(0.001, 1000), height=st.floats(0.001, 1000), x=st.floats(-1e3, 1e3)
)
def test_a_rectangle_may_be_turned_but_not_twisted(angle: float, width: float, height: float, x: float) -> None:
    def turned(dx: float, dy: float) -> ImagePoint:
        cosine, sine = math.cos(angle), math.sin(angle)
        return ImagePoint(x=x + dx * cosine - dy * sine, y=dx * sine + dy * cosine)

    top_left, top_right = turned(0, height), turned(width, height)
    bottom_left, bottom_right = turned(0, 0), turned(width, 0)
    BoundingBox(top_left=top_left, top_right=top_right, bottom_left=bottom_left, bottom_right=bottom_right)
    with pytest.raises(ValidationError, match="two corners are exchanged"):
        BoundingBox(top_left=top_right, top_right=top_left, bottom_left=bottom_left, bottom_right=bottom_right)
