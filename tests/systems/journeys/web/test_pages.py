"""The pages of journeys."""

from __future__ import annotations

import re

import httpx
from tests.systems.journeys.access_patterns import journey
from tests.web.conftest import Served
from tests.web.world import World

from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.service import Journeys


def test_a_report_shows_its_sections_and_says_nothing_twice(world: World, pages: httpx.Client) -> None:
    page = pages.get(f"/journeys/{world.made['journey']}/executions/{world.made['journey_job']}").text
    reports = page.partition("<h2>Reports</h2>")[2]
    assert "detailedResults" in reports
    assert not re.search("<dt>(reportId|title|summary|executionSummary)</dt>", reports)


def test_a_journey_whose_stage_waits_for_a_worker_is_shown(served: Served, pages: httpx.Client) -> None:
    served.services.get(Journeys).create_journey(journey("waiting"))
    served.services.get(JourneyRunner).run("waiting")
    shown = pages.get("/journeys/waiting")
    assert shown.status_code == 200
    assert "execution 1</a>" in shown.text


def test_a_journey_that_has_come_to_its_end_is_at_no_stage(world: World, pages: httpx.Client) -> None:
    page = pages.get(f"/journeys/{world.made['journey']}").text
    assert 'class="card stage"' in page
    assert "stage-current" not in page
