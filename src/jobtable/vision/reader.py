"""Reads the text of pictures with RapidOCR, whose models come with its package."""

from __future__ import annotations

import io
import math
import threading
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, Protocol

from jobtable.errors import MissingExtraError, ValueRefusedError, kind_and_text
from jobtable.vision.text import Character, Corners, Point, Reading, TextLine

try:
    import numpy as np
    from PIL import Image, ImageOps
    from rapidocr import RapidOCR
except ImportError as missing:
    raise MissingExtraError("pictures need the extra 'vision': pip install 'jobtable[vision]'") from missing

MOST_PIXELS = 100_000_000
_SURE = 0.9
"""A picture that reads as well as this is the right way up; upside down, text reads at about 0.75."""
_TALL = 1.5
"""RapidOCR takes a box that is taller than wide by this factor for text that runs downwards."""


class TextReader:
    """Finds text in pictures of any orientation. Safe to use from several threads, one picture at a time."""

    def __init__(self) -> None:
        self._engine = RapidOCR(params={"Global.log_level": "critical"})
        self._lock = threading.Lock()

    def read(self, picture: bytes) -> Reading:
        """Return the text of a JPEG, PNG or other common picture; ValueRefusedError if it is not one."""
        image = open_picture(picture)
        reading = self._read(image, half_turns=0)
        if reading.confidence >= _SURE:
            return reading
        return max(reading, self._read(image, half_turns=1), key=lambda each: each.confidence)

    def _read(self, image: Image.Image, *, half_turns: int) -> Reading:
        """Read a picture after so many half turns, and say where the text is without them."""
        pixels = np.ascontiguousarray(np.rot90(np.asarray(image)[:, :, ::-1], 2 * half_turns))
        with self._lock:
            found: Any = self._engine(pixels, use_cls=False, return_word_box=True, return_single_char_box=True)

        def corners_of(box: Any, *, runs_down: bool) -> Corners:
            first, second, third, fourth = (Point(float(x), float(y)) for x, y in box)
            corners = (second, third, fourth, first) if runs_down else (first, second, third, fourth)
            return _turn_back(corners, image) if half_turns else corners

        return Reading(image.width, image.height, tuple(_lines(found, corners_of)))


def _turn_back(corners: Corners, image: Image.Image) -> Corners:
    first, second, third, fourth = (Point(image.width - each.x, image.height - each.y) for each in corners)
    return first, second, third, fourth


class _CornersOf(Protocol):
    def __call__(self, box: Any, *, runs_down: bool) -> Corners: ...


def _lines(found: Any, corners_of: _CornersOf) -> Iterator[TextLine]:
    if found.boxes is None or not found.txts:
        return
    for box, text, score, characters in zip(found.boxes, found.txts, found.scores, found.word_results, strict=True):
        if not text.strip():
            continue
        runs_down = math.dist(box[0], box[3]) >= _TALL * math.dist(box[0], box[1])
        each = tuple(
            Character(character, float(sure), corners_of(at, runs_down=runs_down)) for character, sure, at in characters
        )
        yield TextLine(text.strip(), float(score), corners_of(box, runs_down=runs_down), each)


def open_picture(picture: bytes) -> Image.Image:
    """Return a picture as a person sees it, in RGB; ValueRefusedError if it cannot be decoded or is too large."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # refused below, with its size
            opened = Image.open(io.BytesIO(picture))
        with opened:
            _refuse_too_large(opened)
            return ImageOps.exif_transpose(opened).convert("RGB")
    except ValueRefusedError:
        raise
    except Exception as error:  # decoders raise many kinds for damaged pictures
        raise ValueRefusedError(f"the picture cannot be decoded: {kind_and_text(error)}") from error


def _refuse_too_large(image: Image.Image) -> None:
    if image.width * image.height > MOST_PIXELS:
        size = f"{image.width} x {image.height}"
        raise ValueRefusedError(f"the picture has {size} pixels; at most {MOST_PIXELS:,} are read")


@cache
def shared_reader() -> TextReader:
    """Return the reader of this process; loading its models takes a second and 200 MB."""
    return TextReader()
