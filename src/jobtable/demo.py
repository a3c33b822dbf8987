"""The demonstration of `jobtable up --demo`: each system brings a part that really runs."""

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
    """Whether it has ended, or waits for a person."""


@dataclass(frozen=True)
class DemoPart:
    """One part: its title, the page that shows it, how it starts, and how far it is. A second start changes nothing."""

    title: str
    page: str
    start: Callable[[Services, Path], None]
    look: Callable[[Services], DemoState]
    modules: tuple[str, ...] = ()
    """The modules of its own tasks, for a worker to import."""


def parts() -> list[DemoPart]:
    """The parts of the installed systems, the quickest first: the last systems in order have the shortest jobs."""
    return [system.load(path) for system, path in declared("demo")][::-1]
