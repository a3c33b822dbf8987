"""The journey of the demonstration."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from jobtable.app import Services
from jobtable.demo import USER, DemoPart, DemoState
from jobtable.errors import AlreadyExistsError, ConflictError
from jobtable.systems.journeys.entities import Journey
from jobtable.systems.journeys.example.product_catalogue import create_catalogue
from jobtable.systems.journeys.journey_template import DEFAULT_TEMPLATE
from jobtable.systems.journeys.parts import JourneySource, JourneyStatus
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.service import Journeys

_JOURNEY = "JRN-DEMO"


def _start_journey(services: Services, folder: Path) -> None:
    catalogue = folder / "catalogue.db"
    if not catalogue.exists():
        create_catalogue(catalogue, products=400, seed=1)
    now = services.store.clock.now()
    journey = Journey(
        journey_id=_JOURNEY,
        name="Product catalogue to documents",
        created_by=USER,
        oda_component_type="PRODUCTCATALOG",
        source=JourneySource(schema_id="catalogue", schema_name=catalogue.name),
        parameters={"source": str(catalogue.absolute()), "batchRows": 200},
        created_at=now,
        updated_at=now,
    )
    with suppress(AlreadyExistsError):
        services.get(Journeys).create_from_template(journey, with_example_rules=True)
    with suppress(ConflictError):  # it has already ended, or was paused
        services.get(JourneyRunner).run(_JOURNEY, by=USER)


def _look_at_journey(services: Services) -> DemoState:
    journey = services.get(Journeys).get_journey(_JOURNEY)
    is_over = journey.status in (JourneyStatus.COMPLETED, JourneyStatus.FAILED, JourneyStatus.CANCELLED)
    done, total = journey.aggregates.completed_jobs, len(DEFAULT_TEMPLATE.implementations)
    return DemoState(journey.status.upper(), journey.overall_progress, f"{done} of {total} stages", is_over)


PART = DemoPart("Journey", f"/journeys/{_JOURNEY}", _start_journey, _look_at_journey)
