"""What the commands of sweeps list."""

from __future__ import annotations

from collections.abc import Iterator

from tests.golden import TIMES, golden

from jobtable.model import Entity

LISTS = ["sweeps list"]
ASKED_FOR = {"jobtable sweeps best": "the best is asked for, and not all"}
LAST_SHOWN: set[str] = set()
EMPTY = {"sweeps": "sweeps run FILE"}


def listed() -> Iterator[Entity]:
    """Three of everything."""
    for number, at in enumerate(TIMES):
        yield golden("sweeps/SweepEntry", job_id=f"sweep-{number}", created_at=at)
