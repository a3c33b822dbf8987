"""The pages of sweeps in a browser."""

from __future__ import annotations

from tests.running import run_jobs
from tests.web.browsing import Watched
from tests.web.conftest import Served
from tests.web.world import World

from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep


def test_a_sweep_is_extended(watched: Watched, served: Served) -> None:
    page, sweeps = watched.page, served.services.get(Sweeps)
    sweep = Sweep(
        name="grows", task="tests.web.tasks:bowl", space={"x": [1, 2, 3], "kind": ["a"]}, trials=2, queue="grow"
    )
    sweeps.submit(sweep, sweep_id="grows")
    run_jobs(served.services.engine, "grow")
    page.goto("/sweeps/grows")
    page.locator(".head-status .badge-completed").wait_for()
    page.get_by_role("button", name="Extend").click()
    assert page.get_by_label("Total trials").evaluate("field => field.validity.rangeUnderflow"), "as many as it has"
    page.get_by_label("Total trials").fill("5")
    page.get_by_role("button", name="Extend").click()
    page.get_by_text("2 of 5 trials finished").wait_for()
    run_jobs(served.services.engine, "grow")
    page.get_by_text("5 of 5 trials finished").wait_for()
    assert sweeps.get_progress("grows").completed == 5


def test_the_best_trials_stay_on_their_lines_and_are_compared(watched: Watched, world: World) -> None:
    page = watched.page
    page.goto(f"/sweeps/{world.made['sweep']}")
    lines = page.get_by_role("link", name="trial").evaluate_all("all => all.map(e => e.getClientRects().length)")
    assert lines == [1, 1], "the best, and the next"
    page.get_by_role("link", name="Compare the best 5").click()
    page.wait_for_url("**/compare?id=*")
    assert page.get_by_role("columnheader").count() == 1 + 5
