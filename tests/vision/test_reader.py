"""Text is found in pictures of every orientation, where a person sees it."""

from __future__ import annotations

import io
import math

import pytest
from PIL import Image, ImageDraw, ImageFont

from jobtable.errors import ValueRefusedError
from jobtable.vision import Reading
from jobtable.vision.reader import MOST_PIXELS, shared_reader

TEXTS = ("RUBBER SOUL", "THE BEATLES", "Recorded in London, 1965")


def picture(degrees: float = 0, exif_orientation: int | None = None, kind: str = "PNG") -> bytes:
    """Draw three lines of text, turned counterclockwise."""
    image = Image.new("RGB", (900, 420), "white")
    draw = ImageDraw.Draw(image)
    for number, text in enumerate(TEXTS):
        draw.text((80, 60 + number * 110), text, fill="black", font=ImageFont.load_default(56 - number * 8))
    turned = image.rotate(degrees, expand=True, fillcolor="white")
    stored = io.BytesIO()
    exif = Image.Exif()
    if exif_orientation is not None:
        exif[0x0112] = exif_orientation
    turned.save(stored, kind, exif=exif)
    return stored.getvalue()


def read(stored: bytes) -> Reading:
    return shared_reader().read(stored)


@pytest.mark.parametrize("degrees", [0, 90, 180, 270, 6, -6])
def test_text_is_read_in_order_whichever_way_it_runs(degrees: float) -> None:
    reading = read(picture(degrees))
    assert [" ".join(line.text for line in row) for row in reading.rows()] == list(TEXTS)
    turned = math.degrees(reading.angle) + degrees
    assert abs((turned + 180) % 360 - 180) < 1.5
    assert reading.confidence > 0.9


def test_positions_are_those_of_the_picture_as_it_is_seen() -> None:
    upright, turned = read(picture()), read(picture(90))
    first, same = upright.rows()[0][0], turned.rows()[0][0]
    assert (turned.width, turned.height) == (420, 900)
    # A counterclockwise quarter turn moves (x, y) to (y, 900 - x).
    assert same.corners[0].x == pytest.approx(first.corners[0].y, abs=8)
    assert same.corners[0].y == pytest.approx(900 - first.corners[0].x, abs=8)
    assert same.region.height == pytest.approx(first.region.width, abs=16)


def test_a_camera_that_was_turned_is_taken_into_account() -> None:
    reading = read(picture(90, exif_orientation=6, kind="JPEG"))  # shown after a clockwise quarter turn
    assert (reading.width, reading.height) == (900, 420)
    assert abs(reading.angle) < 0.05


def test_each_character_has_its_place() -> None:
    line = read(picture()).rows()[0][0]
    assert "".join(each.text for each in line.characters).replace(" ", "") == "RUBBERSOUL"
    lefts = [each.corners[0].x for each in line.characters]
    assert lefts == sorted(lefts)


def test_a_picture_without_text_has_no_lines() -> None:
    stored = io.BytesIO()
    Image.new("RGB", (200, 100), "white").save(stored, "PNG")
    reading = read(stored.getvalue())
    assert (reading.lines, reading.rows(), reading.angle, reading.confidence) == ((), [], 0.0, 0.0)


@pytest.mark.parametrize("stored", [b"", b"no picture", picture()[:200]], ids=["empty", "text", "cut"])
def test_what_cannot_be_decoded_is_refused(stored: bytes) -> None:
    with pytest.raises(ValueRefusedError, match="the picture cannot be decoded"):
        read(stored)


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    stored = io.BytesIO()
    Image.new("1", (MOST_PIXELS // 1000, 1001)).save(stored, "PNG")
    with pytest.raises(ValueRefusedError, match="at most 100,000,000"):
        read(stored.getvalue())
