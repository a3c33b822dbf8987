"""The pages of journeys in a browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser
from tests.web.browsing import Watched, check_without_scripts
from tests.web.conftest import Served
from tests.web.world import World

from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.service import Journeys


def test_a_rule_is_switched_off_and_on(watched: Watched, served: Served, world: World) -> None:
    page = watched.page
    page.goto(f"/journeys/{world.made['journey']}")
    page.get_by_role("button", name="Turn off").first.click()
    page.locator("[data-region=rules]", has_text="inactive").wait_for()
    off = [
        rule for rule in served.services.get(Journeys).list_rules(world.made["journey"]) if rule.status == "inactive"
    ]
    assert len(off) == 1
    page.get_by_role("button", name=f"Turn on {off[0].title}").click()
    page.locator("[data-region=rules]", has_not_text="inactive").wait_for()


def test_a_journey_is_exported_and_imported(watched: Watched, served: Served, world: World, tmp_path: Path) -> None:
    page = watched.page
    page.goto(f"/journeys/{world.made['journey']}")
    with page.expect_download() as started:
        page.get_by_role("link", name="Export").click()
    started.value.save_as(tmp_path / "journey.zip")
    served.services.get(JourneyBackups).delete_journey(world.made["journey"])
    page.goto("/journeys")
    page.locator("input[type=file]").set_input_files(tmp_path / "journey.zip")
    page.wait_for_url(f"**/journeys/{world.made['journey']}")
    page.locator(".head-status .badge-completed").wait_for()


def test_the_focus_is_seen_on_the_choice_of_a_file(watched: Watched) -> None:
    page = watched.page
    page.goto("/journeys")
    page.locator("input[type=file]").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert page.locator("label.button").evaluate("label => getComputedStyle(label).outlineStyle") == "solid"


def test_without_scripts_nothing_is_offered_that_needs_them(browser: Browser, served: Served, world: World) -> None:
    check_without_scripts(browser, served, f"/journeys/{world.made['journey']}")
