"""Journeys with many executions, and many of them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.systems.journeys import access_patterns as journeys
from tests.web.crowd import at

from jobtable.app import Services
from jobtable.model import Entity
from jobtable.systems.journeys.default_stages import default_stages
from jobtable.systems.journeys.parts import Priority, ReportType
from jobtable.systems.journeys.service import Journeys

IDS = {"journey_id": "J", "stage_id": "raw_analysis"}
"""What paths of routes say, by the name of the parameter."""
ASKED: dict[str, list[str]] = {"/api/v1/journeys": ["", "status=failed"]}
"""Queries of routes, beside what their paths say."""
WHOLE: dict[str, str] = {
    "/api/v1/journeys/{journey_id}": "the whole journey, as it is asked for",
    "/api/v1/journeys/{journey_id}/rules": "a stage has 999 at most",
    "/api/v1/journeys/{journey_id}/export": "a file with everything",
    "/journeys/{journey_id}": "the whole journey",
}
"""What is asked for as a whole, and is as large as it is."""


def fill(services: Services, count: int) -> None:
    """Write so many of everything."""
    services.get(Journeys)  # with its table
    services.store.batch_put(_journey(count))


def _journey(count: int) -> Iterator[Entity]:
    yield journeys.journey("J", at(0))
    yield from default_stages("J", at(0))
    for n in range(count):
        yield journeys.journey(f"J-{n}", at(n))
        yield journeys.rule("J", "raw_analysis", n, Priority.HIGH)
        yield journeys.execution("J", 1, "raw_analysis", n + 1, f"run-{n}")
        yield journeys.log("J", "run-0", "step", n + 1, f"L{n}")
        made = journeys.report("J", "run-0", ReportType.SUMMARY, n)
        yield made.replace(report_id=f"r{n}", s3_location="s3://bucket/reports/x.json")
