"""A journey that has ended, for the tests of pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.systems.journeys.access_patterns import journey
from tests.web.world import MARKUP

from jobtable.app import Services
from jobtable.systems.journeys.example.product_catalogue import create_catalogue
from jobtable.systems.journeys.example.rule_book import example_rules
from jobtable.systems.journeys.journey_template import DEFAULT_TEMPLATE
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.service import Journeys

MISSING: list[str] = []
"""Pages of what does not exist."""


def fill(services: Services, folder: Path) -> None:
    """Start what the worker of the world then runs."""
    create_catalogue(folder / "catalogue.db", products=20)
    now = services.store.clock.now()
    created = journey("J1").replace(name=f"Catalogue {MARKUP}", parameters={"source": str(folder / "catalogue.db")})
    services.get(Journeys).create_journey(created, DEFAULT_TEMPLATE.stages("J1", now), example_rules("J1", "ada", now))
    services.get(JourneyRunner).run("J1")


def made(services: Services) -> dict[str, str]:
    """The ids of what was made, by name."""
    execution = next(iter(services.get(Journeys).list_executions("J1")))
    return {"journey": "J1", "journey_job": execution.job_id}


def paths(made: Mapping[str, str]) -> list[str]:
    """Every page, with something on it."""
    here = f"/journeys/{made['journey']}"
    return ["/journeys", here, f"{here}/executions/{made['journey_job']}"]


def tables(made: Mapping[str, str]) -> list[str]:
    """Pages with tables that fit every width."""
    return [f"/journeys/{made['journey']}"]


def owners(made: Mapping[str, str]) -> dict[str, set[str | None]]:
    """Where the pages of the jobs lead, by the type of the job."""
    page: set[str | None] = {f"/journeys/{made['journey']}"}
    return {"journey_stage": page, "journey_end": page}
