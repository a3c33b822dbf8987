"""The pages of sweeps."""

from __future__ import annotations

import re

import httpx
import pytest
from tests.web.conftest import Served
from tests.web.world import World

from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.web import pages as sweeps


def test_what_the_trials_of_a_sweep_report_is_not_drawn_as_one_line(world: World, pages: httpx.Client) -> None:
    series = "data-region=.series.>(.*?)</script>"
    assert re.findall(series, pages.get(f"/jobs/{world.made['sweep']}").text) == ["[]"]
    assert re.findall(series, pages.get(f"/jobs/{world.completed_job}").text) != ["[]"]


def test_of_a_sweep_with_very_many_trials_the_best_are_listed(
    world: World, served: Served, pages: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "_MOST_TRIALS", 2)
    monkeypatch.setattr(sweeps, "_MOST_ROWS", 3)
    page = pages.get(f"/sweeps/{world.made['sweep']}").text
    listed = page.partition('data-region="trials"')[2]
    best = served.services.get(Sweeps).list_best(world.made["sweep"], limit=3)
    assert re.findall('href="/jobs/([^"]+)"', listed) == [trial.job_id for trial in best]
    assert "Showing 3 of 12 trials" in listed
    assert page.count("of the first 2 trials") == 3
    monkeypatch.setattr(sweeps, "_MOST_TRIALS", 12)
    assert "of the first" not in pages.get(f"/sweeps/{world.made['sweep']}").text, "these are all"
