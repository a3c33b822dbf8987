"""The pages of executions and tasks in a browser."""

from __future__ import annotations

import pytest
from tests.systems.albums.driving import work
from tests.web.browsing import Watched
from tests.web.conftest import Served
from tests.web.world import World

from jobtable.systems.albums.service import AlbumWorkflows


def test_the_executions_of_a_day_are_counted_and_compared(watched: Watched, served: Served) -> None:
    page = watched.page
    page.goto("/executions")
    page.locator(".js-plotly-plot").first.wait_for()
    titles = page.locator("[data-plot]").evaluate_all("all => all.map(each => each.getAttribute('aria-label'))")
    assert titles == ["Executions per day"], "none has ended, so none has a duration and a cost"
    kept = "/api/v1/workflow-metrics?workflow_type=step-functions"
    assert served.client().get(kept).json()["items"] == []
    with page.expect_response("**/compute"):
        page.get_by_role("button", name="Store today's metrics").click()
    assert len(served.client().get(kept).json()["items"]) == 1


@pytest.mark.parametrize("task", ["task", "durable task"])
def test_a_validation_task_is_completed(watched: Watched, served: Served, world: World, task: str) -> None:
    albums = served.services.get(AlbumWorkflows)
    execution_id = albums.get_task(world.made[task]).execution_id
    page = watched.page
    page.goto(f"/executions/tasks/{world.made[task]}")
    page.get_by_label("Year").first.fill("1998")
    page.get_by_role("button", name="Submit answer").click()
    page.wait_for_url(f"**/executions/{execution_id}")
    work(served.services.engine)
    page.locator(".head-status .badge-completed").wait_for()
    assert albums.get_album(execution_id, 1).year == 1998


def test_paper_is_white_though_the_screen_is_dark(watched: Watched, world: World) -> None:
    page = watched.page
    page.add_init_script("localStorage.setItem('theme', 'dark')")
    page.goto("/executions")
    page.locator(".main-svg").first.wait_for()
    page.emulate_media(media="print")
    dark = "rgb(26, 29, 38)"
    assert page.evaluate("getComputedStyle(document.body).color") == dark
    assert page.locator(".chart text").first.evaluate("text => getComputedStyle(text).fill") == dark
    page.goto("/jobs")
    assert page.locator("input:visible, select:visible, button:visible").count() == 0, "they do nothing on paper"
