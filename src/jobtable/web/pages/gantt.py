"""Bars over time: which part of the whole each took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobtable.web.formats import duration_text

_LEAST = 0.35
"""The least width of a bar in percent: shorter ones could not be seen."""


@dataclass(frozen=True)
class Bar:
    """One bar, in percent of the whole time."""

    left: float
    width: float
    status: str
    title: str


@dataclass(frozen=True)
class Row:
    """A line of a chart."""

    name: str
    bars: tuple[Bar, ...]
    depth: int = 0
    address: str = ""
    note: str = ""


@dataclass(frozen=True)
class Span:
    """The time that a chart shows."""

    start: datetime
    end: datetime

    def bar(self, start: datetime, end: datetime | None, status: str, title: str) -> Bar:
        """Return the bar of a part; one that has not ended goes to the end."""
        whole = max((self.end - self.start).total_seconds(), 1e-6)
        until = self.end if end is None else end
        left = min(max((start - self.start).total_seconds() / whole * 100, 0.0), 100 - _LEAST)
        seconds = max((until - start).total_seconds(), 0.0)
        width = min(max(seconds / whole * 100, _LEAST), 100 - left)
        return Bar(round(left, 2), round(width, 2), status, f"{title}, {duration_text(seconds)}")

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end - self.start).total_seconds()


def span_of(starts: Sequence[datetime], ends: Iterable[datetime | None], now: datetime) -> Span:
    """Return the time from the first start to the last end; what has not ended lasts until now."""
    last = max((now if end is None else end for end in ends), default=now)
    first = min(starts, default=last)
    return Span(first, max(last, first))
