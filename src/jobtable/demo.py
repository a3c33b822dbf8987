"""The demonstration of `jobtable up --demo`: real work of each system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jobtable.app import Services
from jobtable.system import declared

USER = "demo"


@dataclass(frozen=True)
class DemoState:
    """The progress of a part."""

    status: str
    percent: float
    detail: str = ""
    is_settled: bool = False
    """Whether it ended or waits for a person."""


@dataclass(frozen=True)
class DemoPart:
    """One part: its title, its page, how to start it and how to see its progress. A second start changes nothing."""

    title: str
    page: str
    start: Callable[[Services, Path], None]
    look: Callable[[Services], DemoState]
    modules: tuple[str, ...] = ()
    """The modules of its own tasks, which a worker imports."""


def parts() -> list[DemoPart]:
    """Return the parts of the installed systems, quickest first: the last systems have the shortest jobs."""
    return [system.load(path) for system, path in declared("demo")][::-1]
