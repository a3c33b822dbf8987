"""The pages of sweeps: what they call the best, and what they show while a sweep is deleted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.systems.sweeps import sweep_tasks
from tests.systems.sweeps.driving import Driver, finish
from tests.web.browsing import Watched
from tests.web.conftest import Served

from jobtable.jobs.stored.entities import JobGates
from jobtable.systems.sweeps.parameters import float_range
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.stoppers import Asha
from jobtable.systems.sweeps.sweep import Sweep

SWEEP = Sweep(
    name="worse and worse",
    task=sweep_tasks.worsen,
    space={"x": [1, 2, 3, 4]},
    objective="loss",
    sampler="grid",
    stopper=Asha(factor=2, last_epoch=2),
    generation_size=2,
)


def test_what_was_stopped_is_not_the_best_however_good_it_looked(serve: Callable[..., Served]) -> None:
    served = serve()
    finished = finish(Driver.on(served.services.engine.store), SWEEP)
    assert [(trial.status.value, trial.value) for trial in finished.trials] == [
        ("COMPLETED", 101),
        ("COMPLETED", 102),
        ("STOPPED", 3),
        ("STOPPED", 4),
    ]
    shown = served.client(Accept="text/html").get("/sweeps/s").text
    history, coordinates = map(json.loads, re.findall(r"<script type=.application/json.>(.*?)</script>", shown))
    drawn = {trace["name"]: (trace["x"], trace["y"]) for trace in history["traces"]}
    assert drawn == {
        "completed": ([0, 1], [101, 102]),
        "stopped early": ([2, 3], [3, 4]),
        "best so far": ([0, 1, 3], [101, 101, 101]),
    }
    assert [row[-1] for row in coordinates["rows"]] == [101, 102, 3, 4]
    assert re.findall(r"/jobs/s-\d*(\d).>\d</a></td>", shown) == ["0", "1", "2", "3"]
    best = shown.partition('data-region="best"')[2].partition("</section>")[0]
    told = " ".join(re.sub("<[^>]+>", " ", best.replace("&nbsp;", " ")).split())
    assert "Runner-up: trial 1 with 102, 0.99% away." in told


@pytest.mark.parametrize(("next_x", "told"), [(1.5, ", 25% away."), (2.5, ", 225% away."), (21, " with 401.")])
def test_the_distance_to_the_best_is_told_as_people_say_it(
    serve: Callable[..., Served], next_x: float, told: str
) -> None:
    served = serve()
    space: dict[str, Any] = {"x": [1, next_x], "y": [-1]}
    sweep = Sweep(name="apart", task=sweep_tasks.bowl, space=space, objective="loss", sampler="grid")
    finish(Driver.on(served.services.engine.store), sweep)
    shown = served.client(Accept="text/html").get("/sweeps/s").text
    assert re.findall(r"Runner-up: .*?</a>(.*?)</p>", shown)[0].endswith(told)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_names_of_what_is_drawn_cover_no_trial(browser: Browser, serve: Callable[..., Served], width: int) -> None:
    served = serve()
    finish(Driver.on(served.services.engine.store), SWEEP)
    shown = Watched(browser, served, width)
    shown.page.goto("/sweeps/s")
    shown.page.locator("g.legend", has_text="stopped early").wait_for()
    tops, bottoms = (
        shown.page.locator(part).evaluate_all(f"all => all.map(each => each.getBoundingClientRect().{end})")
        for part, end in (("g.legend .traces", "top"), (".scatterlayer .point", "bottom"))
    )
    assert (len(tops), len(bottoms)) == (3, 4)
    assert min(tops) >= max(bottoms)
    shown.close()


def test_long_names_of_parameters_do_not_cover_each_other(browser: Browser, serve: Callable[..., Served]) -> None:
    served = serve()
    space = {f"{'a_long_name_' * 3}{number}": ["one " * 20, "two " * 20] for number in range(10)}
    task = "tests.web.tasks:measure_anything"
    sweep = Sweep(name="named", task=task, space=space, trials=2, objective="loss_" * 12, sampler="random")
    finish(Driver.on(served.services.engine.store), sweep)
    shown = Watched(browser, served)
    shown.page.goto("/sweeps/s")
    for kind in ("name", "end"):
        boxes = shown.page.locator(f".parallel-{kind}").evaluate_all(
            "all => all.map(each => each.getBBox()).map(box => [box.y, box.x, box.x + box.width])"
        )
        assert len(boxes) >= 11
        for (row, _, end), (next_row, start, _) in pairwise(sorted(boxes)):
            assert row != next_row or end <= start
    assert shown.page.locator(".parallel-name title").first.text_content() == next(iter(space))
    shown.close()


def test_a_parameter_that_is_spread_over_magnitudes_is_drawn_so(serve: Callable[..., Served]) -> None:
    served = serve()
    space: dict[str, Any] = {"x": float_range(1e-5, 0.1, log=True), "y": [1, 2]}
    sweep = Sweep(name="spread", task=sweep_tasks.bowl, space=space, trials=2, objective="loss")
    finish(Driver.on(served.services.engine.store), sweep)
    shown = served.client(Accept="text/html").get("/sweeps/s").text
    _, coordinates = map(json.loads, re.findall(r"<script type=.application/json.>(.*?)</script>", shown))
    assert dict(zip(coordinates["axes"], coordinates["isLog"], strict=True)) == {"x": True, "y": False, "loss": False}


def test_a_sweep_that_has_reached_its_target_says_so(serve: Callable[..., Served]) -> None:
    served = serve()
    finish(Driver.on(served.services.engine.store), SWEEP.model_copy(update={"target": 101.5, "stopper": None}))
    client = served.client(Accept="text/html")
    shown = client.get("/sweeps/s").text
    assert "2 of 4 trials finished; target reached, no more are planned" in shown
    assert 'badge-reached">reached' in shown
    assert "2 of 4, target reached" in client.get("/sweeps").text


@pytest.mark.parametrize(
    ("changed", "is_offered"),
    [
        ({"sampler": "random", "trials": 2}, True),
        ({"trials": 3}, True),
        ({"trials": 4}, False),
        ({"trials": None}, False),
        ({"sampler": "random", "trials": 2, "target": 1000}, False),
    ],
)
def test_an_extension_is_offered_where_there_can_be_one(
    serve: Callable[..., Served], changed: dict[str, Any], is_offered: bool
) -> None:
    served = serve()
    finish(Driver.on(served.services.engine.store), Sweep.model_validate(SWEEP.model_dump() | changed))
    assert ("/api/v1/sweeps/s/extend" in served.client(Accept="text/html").get("/sweeps/s").text) is is_offered


def test_why_a_sweep_has_failed_keeps_its_lines(serve: Callable[..., Served]) -> None:
    served = serve()
    driver = Driver.on(served.services.engine.store)
    Sweeps(driver.jobs).submit(SWEEP.model_copy(update={"task": "tests.web.tasks:nothing"}), sweep_id="s")
    driver.run()
    shown = served.client(Accept="text/html").get("/sweeps/s").text
    problem = re.search(
        r'<p class="reason problem">(.*?)</p><pre class="code code-end" tabindex="0">(.*?)</pre>', shown, re.DOTALL
    )
    assert problem is not None
    assert "has no nothing" in problem[1]
    assert problem[2].startswith("Traceback")
    assert "No completed trials" in shown


def test_a_sweep_of_which_nothing_runs_says_why(serve: Callable[..., Served]) -> None:
    served = serve()
    driver = Driver.on(served.services.engine.store)
    client = served.client(Accept="text/html")
    Sweeps(driver.jobs).submit(SWEEP, sweep_id="s")
    planning = client.get("/sweeps/s").text
    assert "No trial is running: why worse and worse: plan generation 0 waits" in planning
    assert "No live worker serves the queue default." in planning
    driver.run(most=1)
    driver.jobs.pause_queue("default")
    trials = client.get("/sweeps/s").text
    assert "why worse and worse 0 waits" in trials
    assert "The queue default is paused" in trials
    driver.jobs.resume_queue("default")
    driver.jobs.claim("default", limit=1, instance_id="w", lease_seconds=60)
    assert "No trial is running" not in client.get("/sweeps/s").text


def test_a_sweep_that_is_being_deleted_does_not_hide_the_others(serve: Callable[..., Served]) -> None:
    served = serve()
    sweeps = served.services.get(Sweeps)
    for sweep_id in ("going", "staying"):
        sweeps.submit(SWEEP, sweep_id=sweep_id)
    served.services.engine.store.delete(JobGates.key(job_id="going"))
    answer = served.client(Accept="text/html").get("/sweeps")
    assert answer.status_code == 200
    assert "/sweeps/staying" in answer.text
    assert "/sweeps/going" not in answer.text
