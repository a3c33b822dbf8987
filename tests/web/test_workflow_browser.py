"""The pages of workflows in a real browser: from a machine to an execution to a state, live, at any width."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # published without types
from playwright.sync_api import Browser, Page, expect
from tests.web.browsing import LIVE, Watched, open_live, watch
from tests.web.conftest import Served
from tests.web.workflow_world import DONE, FUNCTION, MACHINE, fill_workflows, move_executions, paths, start_durable
from tests.workflows.asl.stored_histories import create_machine
from tests.workflows.durable.driving import Driver, JumpingClock

from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import ExecutionStatus

PAINT = {
    "StartAt": "First",
    "States": {
        "First": {"Type": "Pass", "Next": "Paint"},
        "Paint": {
            "Type": "Task",
            "Resource": Arns().activity("paint"),
            "Catch": [{"ErrorEquals": ["Spilt"], "Next": "Wipe"}],
            "Next": "Hang",
        },
        "Wipe": {"Type": "Pass", "End": True},
        "Hang": {"Type": "Succeed"},
    },
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("workflows")
    server = Served(store=f"file:{folder / 'workflows.db'}")
    fill_workflows(server.services, "long " * 30 + "x" * 120)
    start_durable(server.services, folder)
    server.services.activities.create("paint", arns=Arns())
    create_machine(server.services, "painting", PAINT)
    yield server
    server.stop()


@pytest.fixture
def watched(browser: Browser, served: Served) -> Iterator[Watched]:
    yield from watch(browser, served)


def state(page: Page, name: str, status: str) -> None:
    """Wait until a state of the graph has a status."""
    page.locator(f'[data-state-name="{name}"][aria-label$=", {status}"]').wait_for(state="attached")


def test_from_a_machine_to_a_live_execution_to_a_state(watched: Watched, served: Served) -> None:
    page, services = watched.page, served.services
    page.goto("/workflows")
    page.get_by_role("link", name="painting").click()
    page.locator("#start").get_by_label("Name").fill("wall")
    page.get_by_label("Input (JSON)").fill('{"colour": "blue"}')
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/workflows/executions/painting/wall")
    page.locator(LIVE).wait_for(state="attached")
    page.evaluate("window.isStillHere = true")
    state(page, "First", "not entered")
    move_executions(services.engine)
    state(page, "First", "succeeded")
    state(page, "Paint", "waiting")
    page.get_by_text("a worker of its activity").wait_for()
    page.locator('[data-state-name="Paint"]').click()
    panel = page.locator("#state")
    panel.get_by_text('"colour": "blue"').wait_for()
    assert "state=%2FStates%2FPaint" in page.url
    task = services.executions.poll("paint", "painter", wait_seconds=0)
    assert task is not None
    services.executions.fail(task.token, "Spilt", "all over the floor")
    move_executions(services.engine)
    state(page, "Paint", "caught")
    state(page, "Wipe", "succeeded")
    panel.get_by_text("Spilt: all over the floor").wait_for()
    page.locator(".head-status .badge-succeeded").wait_for()
    assert page.evaluate("window.isStillHere"), "nothing was reloaded"
    page.go_back()
    panel.get_by_text("Choose a state in the graph").wait_for()


def test_a_running_execution_is_stopped_redriven_and_deleted(watched: Watched, served: Served) -> None:
    page, services = watched.page, served.services
    services.executions.start(services.machines.runnable("painting"), "{}", "stopped", arns=Arns())
    move_executions(services.engine)
    page.on("dialog", lambda dialog: dialog.accept())
    open_live(page, "/workflows/executions/painting/stopped")
    page.get_by_role("button", name="Stop").click()
    page.locator(".head-status .badge-aborted").wait_for()
    move_executions(services.engine)
    state(page, "Paint", "aborted")
    page.get_by_role("button", name="Redrive").click()
    page.locator(".head-status .badge-running").wait_for()
    move_executions(services.engine)
    state(page, "Paint", "waiting")
    services.executions.stop("painting", "stopped")
    move_executions(services.engine)
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/workflows/machines/painting")
    assert [each.name for each in services.executions.list("painting")].count("stopped") == 0


def test_faults_of_a_definition_are_shown_with_their_places(watched: Watched, served: Served) -> None:
    page = watched.page
    page.goto("/workflows/new")
    page.get_by_label("Name").fill("made-here")
    field = page.get_by_label("Definition in the Amazon States Language")
    field.fill(json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}}}, indent=2))
    page.locator(".fault-place", has_text="/States/A/Next").wait_for()
    page.get_by_role("button", name="Create").click()
    page.get_by_text("The definition has faults.").wait_for()
    watched.complaints.clear()
    field.fill(json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}))
    page.get_by_text("The definition has no faults.").wait_for()
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/workflows/machines/made-here")
    page.get_by_role("link", name="Change").click()
    page.get_by_label("Publish it as a version").check()
    page.get_by_label("Definition in the Amazon States Language").fill(json.dumps(PAINT))
    page.get_by_role("button", name="Change").click()
    page.wait_for_url("**/workflows/machines/made-here")
    page.get_by_role("link", name="version 1").wait_for()
    assert page.locator('[data-state-name="Paint"]').count() == 1


def test_input_that_is_not_json_is_not_sent(watched: Watched) -> None:
    page = watched.page
    page.goto("/workflows/machines/painting?like=wall")
    page.get_by_label("Input (JSON)").fill("{")
    page.get_by_role("button", name="Start").click()
    page.get_by_text("The input is not JSON").wait_for()


def test_a_callback_is_answered_and_the_page_goes_on(watched: Watched, served: Served) -> None:
    page = watched.page
    open_live(page, f"/workflows/durable/{FUNCTION}/waits-for-an-answer")
    page.get_by_label("Result (JSON)").fill('"yes"')
    page.get_by_role("button", name="Answer", exact=True).click()
    page.get_by_role("button", name="Answer", exact=True).wait_for(state="detached")
    execution = served.services.durable.get(FUNCTION, "waits-for-an-answer")
    effects = json.loads(served.services.durable.input_of(execution) or "{}")["effects"]
    Driver(served.services.engine, JumpingClock(), effects).work_once()
    page.locator(".head-status .badge-succeeded").wait_for()
    page.locator("[data-region=summary] pre", has_text='"answer"').wait_for()


def test_the_graph_is_used_with_the_keyboard_and_zoomed(watched: Watched) -> None:
    page = watched.page
    page.goto(f"/workflows/executions/{MACHINE}/{DONE}")
    graph = page.locator("[data-graph]")
    graph.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.stateName") == "Read image"
    page.keyboard.press("Enter")
    page.locator("#state h2", has_text="Read image").wait_for()
    before = graph.get_attribute("data-zoom")
    page.get_by_role("button", name="Zoom out").click()
    assert graph.get_attribute("data-zoom") != before
    page.get_by_role("link", name="Fold Each album").click()
    page.locator('[data-state-name="Price"]').wait_for(state="detached")
    page.get_by_role("link", name="Unfold Each album").click()
    page.locator('[data-state-name="Price"]').wait_for()


def test_terms_are_explained(watched: Watched) -> None:
    page = watched.page
    page.goto(f"/workflows/machines/{MACHINE}")
    page.get_by_label("What is: transition").click()
    page.get_by_text("The way from one state to the next.").wait_for()
    page.keyboard.press("Escape")
    expect(page.get_by_text("The way from one state to the next.")).not_to_be_visible()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light"), (390, "light"), (1400, "dark")])
def test_every_page_is_clean(browser: Browser, served: Served, width: int, scheme: str) -> None:
    shown = Watched(browser, served, width, scheme)
    for path in paths():
        shown.page.goto(path)
        shown.page.wait_for_load_state("load")
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width, path
        hidden = "[0, ...[...document.querySelectorAll('.scroll')].map(each => each.scrollWidth - each.clientWidth)]"
        assert max(shown.page.evaluate(hidden)) <= 0, path
        found = Axe().run(shown.page, options={"resultTypes": ["violations"]})
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
        assert shown.complaints == [], path
    shown.close()


def test_without_scripts_a_state_is_still_chosen(browser: Browser, served: Served) -> None:
    context = browser.new_context(base_url=served.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"/workflows/executions/{MACHINE}/{DONE}")
    page.locator('[data-state-name="Done"]').click()
    page.locator("#state h2", has_text="Done").wait_for()
    context.close()


def test_an_execution_that_waits_is_counted_as_running(watched: Watched, served: Served) -> None:
    page, services = watched.page, served.services
    open_live(page, "/workflows")
    services.executions.start(services.machines.runnable("painting"), "{}", "counted", arns=Arns())
    row = page.locator("tr", has_text="painting")
    row.locator(".is-running").wait_for()
    services.executions.stop("painting", "counted")
    move_executions(services.engine)
    assert services.executions.get("painting", "counted").status is ExecutionStatus.ABORTED
    row.locator(".is-aborted").wait_for()
