"""Lines between boxes, as curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from jobtable.web.graphs.layout import Point

Placed = tuple[Point, Point]
"""A box: its middle, and its size."""
_REACH = 0.5
"""How far along the way the handles of a curve lie: half makes an S."""


@dataclass(frozen=True)
class Line:
    """A curve: where it starts, and three points for each part."""

    start: Point
    parts: tuple[tuple[Point, Point, Point], ...]

    def at(self, x: float, y: float) -> Line:
        """Return the line moved by so much."""
        moved = tuple(tuple((a + x, b + y) for a, b in part) for part in self.parts)
        return Line((self.start[0] + x, self.start[1] + y), moved)  # type: ignore[arg-type]  # three points stay three

    @property
    def path(self) -> str:
        """The line as SVG writes it."""
        curves = (" ".join(f"{x:.1f},{y:.1f}" for x, y in part) for part in self.parts)
        return f"M{self.start[0]:.1f},{self.start[1]:.1f} " + " ".join(f"C{curve}" for curve in curves)


def line_between(source: Placed, target: Placed, over: Sequence[Point]) -> Line:
    """Return a line between two boxes over some points; one that leads up leaves and arrives at the sides."""
    if target[0][1] <= source[0][1]:
        return _up(source, target, over[1:-1])
    start = (source[0][0], source[0][1] + source[1][1] / 2)
    end = (target[0][0], target[0][1] - target[1][1] / 2)
    return Line(start, tuple(_down(a, b) for a, b in pairwise(_without_repeats([start, *over, end]))))


def _without_repeats(points: Sequence[Point]) -> list[Point]:
    """Return the points without those that lie on the one before: a line needs a direction at its end."""
    kept = [
        point
        for point, following in pairwise(points)
        if max(abs(a - b) for a, b in zip(point, following, strict=True)) > 1
    ]
    return [*kept, *points[-1:]]


def loop_beside(x: float, y: float) -> Line:
    """Return a small loop at the right of a box, around this height."""
    return Line((x, y - 8), (((x + 26, y - 14), (x + 26, y + 14), (x + 1, y + 8)),))


def _down(start: Point, end: Point) -> tuple[Point, Point, Point]:
    bend = (end[1] - start[1]) * _REACH
    return (start[0], start[1] + bend), (end[0], end[1] - bend), end


def _up(source: Placed, target: Placed, over: Sequence[Point]) -> Line:
    via = _without_repeats(over) or [
        (max(source[0][0] + source[1][0], target[0][0] + target[1][0]) / 2 + 20, source[0][1])
    ]
    start = _facing(source, via[0][0], below=False)
    end = _facing(target, via[-1][0], below=True)
    parts = [((via[0][0], start[1]), (via[0][0], start[1]), via[0])]
    parts += [_down(a, b) for a, b in pairwise(via)]
    parts.append(((via[-1][0], end[1]), (via[-1][0], end[1]), end))
    return Line(start, tuple(parts))


def _facing(box: Placed, x: float, *, below: bool) -> Point:
    """Return where a line in a column meets a box: in the middle of a side, or at x if that is within the box."""
    (middle, y), (width, height) = box
    if abs(x - middle) < width / 2:
        return x, y + height / 2 if below else y - height / 2
    return (middle + width / 2 if x > middle else middle - width / 2), y
