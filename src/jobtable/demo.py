"""The demonstration of `jobtable up --demo`: real work of each system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jobtable.app import Services
from jobtable.assist import demo_comments
from jobtable.jobs.submit.definition import NewJob
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


_COMMENTS = "demo-comments"


def _start_comments(services: Services, _folder: Path) -> None:
    comments = list(demo_comments.COMMENTS)
    new = NewJob(
        name="sort comments without a model",
        job_id=_COMMENTS,
        task=demo_comments.sort_comments,
        params={"comments": comments},
        user=USER,
    )
    services.jobs.submit(new)


def _look_at_comments(services: Services) -> DemoState:
    job = services.jobs.queries.get_job(_COMMENTS)
    return DemoState(job.status, job.progress, "no model was asked", job.is_final)


_OF_CORE = DemoPart("Assistant", f"/jobs/{_COMMENTS}", _start_comments, _look_at_comments, (demo_comments.__name__,))


def parts() -> list[DemoPart]:
    """Return the core's part and those of the systems, quickest first: the last systems have the shortest jobs."""
    return [_OF_CORE, *[system.load(path) for system, path in declared("demo")][::-1]]
