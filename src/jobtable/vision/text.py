"""The text of a picture, with its geometry in pixels of the picture as a person sees it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


class Point(NamedTuple):
    """A position: x to the right, y down."""

    x: float
    y: float


Corners: TypeAlias = tuple[Point, Point, Point, Point]
"""Clockwise as the text is read, from its top left: a line that stands on its head starts at its bottom right."""


class Region(NamedTuple):
    """An upright rectangle."""

    x: int
    y: int
    width: int
    height: int

    @staticmethod
    def around(points: Iterable[Point]) -> Region:
        """Return the smallest rectangle around some points."""
        corners = list(points)
        left, top = (math.floor(min(each[axis] for each in corners)) for axis in (0, 1))
        right, bottom = (math.ceil(max(each[axis] for each in corners)) for axis in (0, 1))
        return Region(left, top, right - left, bottom - top)


@dataclass(frozen=True)
class Character:
    """One character."""

    text: str
    confidence: float
    corners: Corners


@dataclass(frozen=True)
class TextLine:
    """A run of text without a wide gap: a line, or one column of it."""

    text: str
    confidence: float
    """From 0 to 1."""
    corners: Corners
    characters: tuple[Character, ...] = ()

    @property
    def width(self) -> float:
        """Its length in reading direction."""
        return math.dist(self.corners[0], self.corners[1])

    @property
    def height(self) -> float:
        """The height of its text."""
        return math.dist(self.corners[0], self.corners[3])

    @property
    def angle(self) -> float:
        """Its direction in radians: 0 from left to right, a quarter turn downwards is pi / 2."""
        start, end = self.corners[:2]
        return math.atan2(end.y - start.y, end.x - start.x)

    @property
    def middle(self) -> Point:
        """Its centre."""
        return Point(sum(each.x for each in self.corners) / 4, sum(each.y for each in self.corners) / 4)

    @property
    def region(self) -> Region:
        """The rectangle around it."""
        return Region.around(self.corners)


@dataclass(frozen=True)
class Reading:
    """All text of a picture."""

    width: int
    height: int
    lines: tuple[TextLine, ...]

    @property
    def angle(self) -> float:
        """The direction of its text in radians, by the longest lines; 0 without text."""
        if not self.lines:
            return 0.0
        across = sum(math.sin(line.angle) * line.width for line in self.lines)
        along = sum(math.cos(line.angle) * line.width for line in self.lines)
        return math.atan2(across, along)

    @property
    def confidence(self) -> float:
        """How sure its characters are on average, from 0 to 1; 0 without text."""
        count = sum(len(line.text) for line in self.lines)
        return sum(line.confidence * len(line.text) for line in self.lines) / count if count else 0.0

    def upright(self, point: Point) -> Point:
        """Return where a point would be if the text ran from left to right, around the picture's origin."""
        cosine, sine = math.cos(self.angle), math.sin(self.angle)
        return Point(point.x * cosine + point.y * sine, point.y * cosine - point.x * sine)

    def rows(self) -> list[list[TextLine]]:
        """Return its lines in reading order: rows from top to bottom, each from left to right."""
        rows: list[list[TextLine]] = []
        for line in sorted(self.lines, key=lambda each: self.upright(each.middle).y):
            if rows and self._shares_row(rows[-1][-1], line):
                rows[-1].append(line)
            else:
                rows.append([line])
        return [sorted(row, key=lambda each: self.upright(each.middle).x) for row in rows]

    def _shares_row(self, line: TextLine, other: TextLine) -> bool:
        apart = abs(self.upright(line.middle).y - self.upright(other.middle).y)
        return apart < 0.5 * min(line.height, other.height)
