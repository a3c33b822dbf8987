"""Read and write units, counted by the access pattern that consumed them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Units:
    """The units that an access pattern consumed."""

    calls: int = 0
    read: float = 0.0
    write: float = 0.0

    def __add__(self, other: Units) -> Units:
        return Units(self.calls + other.calls, self.read + other.read, self.write + other.write)

    def __sub__(self, other: Units) -> Units:
        return Units(self.calls - other.calls, self.read - other.read, self.write - other.write)


class CapacityMeter:
    """Adds up the units of every call. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: dict[str, list[float]] = {}

    def record(self, pattern: str, response: dict[str, Any], *, writes: bool) -> None:
        """Add the units that one response reports."""
        consumed = response.get("ConsumedCapacity")
        if consumed is None:
            return
        if type(consumed) is dict:
            units = consumed["CapacityUnits"]
        else:
            units = sum([each["CapacityUnits"] for each in consumed])
        with self._lock:
            total = self._totals.get(pattern)
            if total is None:
                total = self._totals[pattern] = [0, 0.0, 0.0]
            total[0] += 1
            total[2 if writes else 1] += units

    def by_pattern(self) -> dict[str, Units]:
        """Return the totals since the store was opened, by access pattern."""
        with self._lock:
            return {name: Units(int(calls), read, write) for name, (calls, read, write) in self._totals.items()}

    def total(self) -> Units:
        return sum(self.by_pattern().values(), Units())

    @contextmanager
    def measure(self) -> Iterator[dict[str, Units]]:
        """Yield a dict that is filled, at the end of the block, with the units that each access pattern consumed in
        it.
        """
        before = self.by_pattern()
        measured: dict[str, Units] = {}
        yield measured
        for name, units in self.by_pattern().items():
            spent = units - before.get(name, Units())
            if spent.calls:
                measured[name] = spent
