"""The steps of a journey's stage against DBOS on SQLite, on the same disk."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import not_measured
from bench.step_rates import STEPS, Workflow, compare_steps, dbos_steps
from jobtable.app import Services
from jobtable.jobs.report.context import JobContext
from jobtable.systems.journeys.entities import Journey, StageDefinition
from jobtable.systems.journeys.journey_template import path_of
from jobtable.systems.journeys.parts import JourneySource, StepDefinition
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.service import Journeys
from jobtable.systems.journeys.stage import Stage
from jobtable.testing.servers import cache_folder

TARGET = 8
_noted: dict[str, list[float]] = {}


def run() -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder()) as folder:
        try:
            with dbos_steps(Path(folder)) as peer, _jobtable(Path(folder)) as ours:
                compare_steps("durable steps", ours, "DBOS on SQLite", peer, target=TARGET)
        except ImportError as error:
            not_measured("durable steps against DBOS", error)


class _Noting(Stage):
    """Notes the time in every step."""

    def note(self) -> None:
        _noted[self.journey.journey_id].append(time.perf_counter())
        self.results["steps"] = len(_noted[self.journey.journey_id])


Steps: type[Stage] = type("Steps", (_Noting,), {f"step_{n:03d}": _Noting.note for n in range(STEPS)})


@contextmanager
def _jobtable(folder: Path) -> Iterator[Workflow]:
    """A stage of a journey on the embedded engine, with a lease that fences every step."""
    with Services.open(f"file:{folder / 'jobtable.db'}") as services:
        services.get(JourneyRunner)

        def workflow(times: list[float]) -> None:
            journey_id = f"J{time.perf_counter_ns()}"
            _noted[journey_id] = times
            services.get(Journeys).create_journey(*_journey(journey_id, services))
            runner = JourneyRunner(services.engine, queue=journey_id)
            runner.run(journey_id)
            (lease,) = services.engine.claim(journey_id, limit=1, instance_id="bench", lease_seconds=60)
            with JobContext(services.engine, lease) as context:
                runner.execute(context, journey_id)

        yield workflow


def _journey(journey_id: str, services: Services) -> tuple[Journey, list[StageDefinition]]:
    now = services.store.clock.now()
    journey = Journey(
        journey_id=journey_id,
        name="Steps",
        created_by="bench",
        oda_component_type="BENCH",
        source=JourneySource(schema_id="none", schema_name="none"),
        created_at=now,
        updated_at=now,
    )
    stage = StageDefinition(
        journey_id=journey_id,
        stage_id="steps",
        name="Steps",
        order=1,
        estimated_duration="1m",
        implementation=path_of(Steps),
        steps=[StepDefinition(step_id=f"step_{n:03d}", name="step", estimated_duration="1m") for n in range(STEPS)],
        created_at=now,
        updated_at=now,
    )
    return journey, [stage]
