"""The page about deployment is true: its settings are some, and its costs are what jobs really cost."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtable import connect
from jobtable.jobs.context import JobContext
from jobtable.jobs.definition import NewJob
from jobtable.jobs.engine import Jobs
from jobtable.jobs.entities import main
from jobtable.jobs.leases import Lease, Outcome
from jobtable.settings import Settings
from jobtable.store.capacity import Units
from jobtable.web.explorer import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from tests.running import jobs_in_memory

PAGE = (Path(__file__).parent.parent / "docs" / "deploy.md").read_text()
COUNT = 100


def test_the_settings_are_settings() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        assert Settings.model_validate(tomllib.loads(block)).store.startswith("dynamodb://")


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with connect("memory:") as store:
        store.tables.create(main)
        yield jobs_in_memory(store)


def submit(jobs: Jobs) -> None:
    for _ in range(COUNT):
        jobs.submit(NewJob(name="job", task="tasks:one"))


def run(jobs: Jobs) -> Lease:
    """Run all jobs, one at a time; gives the last one's lease."""
    leases: list[Lease] = []
    for number in range(COUNT):
        leases += jobs.claim("default", limit=1, instance_id="worker", lease_seconds=30)
        jobs.finish(leases[-1], Outcome.completed(number))
    return leases[-1]


def store_metrics(jobs: Jobs, lease: Lease) -> None:
    with JobContext(jobs, lease, flush_seconds=60) as context:
        for step in range(COUNT):
            context.metric("loss", 1 / (step + 1), step=step)


def store_lines(jobs: Jobs, lease: Lease) -> None:
    with JobContext(jobs, lease, flush_seconds=60) as context:
        for step in range(COUNT):
            context.log(f"line {step} of a log that says something")


def told(act: str) -> tuple[int, int, int]:
    """Read units, write units and dollars for a million, as the page has them."""
    found = re.search(rf"^\| {act}.*\| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert found, act
    return int(found[1]), int(found[2]), int(found[3])


def check(act: str, spent: dict[str, Units]) -> None:
    read, write, dollars = told(act)
    units = sum(spent.values(), Units())
    assert (units.read / COUNT, units.write / COUNT) == pytest.approx((read, write), abs=0.6), act
    assert 1e6 * (read * READ_UNIT_DOLLARS + write * WRITE_UNIT_DOLLARS) == pytest.approx(dollars, abs=0.6), act


def test_the_costs_are_what_jobs_cost(jobs: Jobs) -> None:
    meter = jobs.store.capacity
    with meter.measure() as submitting:
        submit(jobs)
    with meter.measure() as running:
        lease = run(jobs)
    with meter.measure() as measuring:
        store_metrics(jobs, lease)
    with meter.measure() as logging:
        store_lines(jobs, lease)
    check("submit a job", submitting)
    check("run it", running)
    check("store a metric", measuring)
    check("store a log line", logging)
