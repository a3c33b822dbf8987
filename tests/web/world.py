"""A store with something of everything, made by the real services and a real worker, with markup in texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.contributions import contributions
from tests.running import run_jobs
from tests.web import assist_world, inbox_world, workflow_world

from jobtable.app import Services, open_jobs
from jobtable.jobs.stored.entities import Instance
from jobtable.jobs.submit.definition import DependsOn, NewJob, ParentWaits
from jobtable.jobs.worker.worker import Worker
from jobtable.system import declared
from jobtable.workflows.table_and_queues import QUEUES

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"
"""Must be shown as text wherever it is."""
TASKS = "tests.web.tasks"


@dataclass(frozen=True)
class World:
    """What was made, by its id."""

    url: str
    completed_job: str
    failed_job: str
    waiting_job: str
    group: str
    worker: str
    made: Mapping[str, str]
    """What the systems made: the ids by the names that `tests/systems/*/world.py` give them."""


def parts(only: Collection[str] | None = None) -> list[Any]:
    """The parts of the systems with these names, or of all."""
    return [part for part in contributions("world") if only is None or part.__name__.split(".")[-2] in only]


def make_world(folder: Path, *, only: Collection[str] | None = None) -> World:
    """Fill a new store in a folder, with the things of all systems or of `only` these."""
    url = f"file:{folder / 'world.db'}"
    with Services.open(url) as services:
        jobs = _submit_jobs(services)
        for part in parts(only):
            part.fill(services, folder)
        if only is None:
            workflow_world.fill_workflows(services, MARKUP)
            workflow_world.start_durable(services, folder)
            assist_world.fill_calls(services, MARKUP)
            inbox_world.fill_inbox(services, MARKUP)
        Worker(partial(open_jobs, url), ["default", "gpu"], mode="inline", until_empty=True).run()
        queues = [*QUEUES, *(queue for _, each in declared("queues") for queue in each)]
        while sum(run_jobs(services.engine, queue) for queue in queues):
            continue  # what a workflow has started in another queue runs in the next lap
        waiting = services.engine.submit(NewJob(name="waits", task=f"{TASKS}:work", queue="paused", user="ada"))
        services.engine.pause_queue("paused")
        return World(
            url=url,
            completed_job=jobs["completed"],
            failed_job=jobs["failed"],
            waiting_job=waiting.job_id,
            group=jobs["group"],
            worker=next(iter(services.store.query(Instance.by_type()))).instance_id,
            made={name: each for part in parts(only) for name, each in part.made(services).items()},
        )


def paths(world: World) -> list[str]:
    """Every page, with something on it."""
    return [
        "/",
        "/jobs",
        f"/jobs/{world.completed_job}",
        f"/jobs/{world.failed_job}",
        f"/jobs/{world.group}",
        f"/jobs/{world.waiting_job}",
        "/submit",
        f"/submit?like={world.completed_job}",
        f"/compare?id={world.completed_job}&id={world.failed_job}",
        "/queues",
        "/queues/gpu",
        *workflow_world.paths(),
        *assist_world.paths(),
        *inbox_world.paths(),
        *(path for part in parts() for path in part.paths(world.made)),
        "/tables",
        f"/tables/jobtable?partition=JOB%23{world.completed_job}",
        f"/workers/{world.worker}",
        "/tokens",
    ]


def _submit_jobs(services: Services) -> dict[str, str]:
    jobs = services.engine
    new = partial(NewJob, user="ada", queue="gpu")
    tags = frozenset({"nightly", MARKUP})
    completed = jobs.submit(new(name=f"train {MARKUP}", task=f"{TASKS}:work", params={"text": MARKUP}, tags=tags))
    failed = jobs.submit(new(name="read the catalogue", task=f"{TASKS}:fail", params={"text": MARKUP}))
    group = jobs.open_group(new(name="a group"))
    for number in range(3):
        child = new(
            name=f"child {number}",
            task=f"{TASKS}:work",
            params={"text": "x"},
            parent_job_id=group.job_id,
            parent_waits=ParentWaits(),
            depends_on=(DependsOn(completed.job_id),),
        )
        jobs.submit(child)
    jobs.seal(group.job_id)
    return {"completed": completed.job_id, "failed": failed.job_id, "group": group.job_id}
