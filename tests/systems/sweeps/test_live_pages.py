"""Pages of sweeps follow what happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.running import run_jobs
from tests.web.browsing import (
    Watched,
    open_live,
    watch,
)
from tests.web.conftest import Served
from tests.web.world import TASKS

from jobtable.systems.sweeps.parameters import Choice, FloatRange
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    server = Served()
    yield server
    server.stop()


@pytest.fixture
def watched(browser: Browser, served: Served) -> Iterator[Watched]:
    yield from watch(browser, served)


def test_sweeps_appear_and_their_charts_grow(watched: Watched, served: Served) -> None:
    page, services = watched.page, served.services
    open_live(page, "/sweeps")
    page.get_by_text("No sweeps yet").wait_for()
    space: dict[str, Any] = {"x": FloatRange(low=-2, high=2), "kind": Choice(values=["a", "b"])}
    sweep = Sweep(name="bowl", task=f"{TASKS}:bowl", space=space, trials=8, objective="loss")
    job = services.get(Sweeps).submit(sweep)
    page.get_by_role("link", name="bowl").wait_for()
    open_live(page, f"/sweeps/{job.job_id}")
    expect(page.get_by_text("No results yet")).to_have_count(2)
    page.get_by_text("Too few trials").wait_for()
    run_jobs(services.engine, "default", most=3)
    expect(page.locator("[data-parallel] polyline")).not_to_have_count(0)
    run_jobs(services.engine, "default")
    expect(page.locator("[data-parallel] polyline")).to_have_count(8)
    expect(page.locator("[data-plot] .point")).to_have_count(8)
    page.locator(".shares").wait_for()
