"""Durable steps against DBOS on SQLite: one after the other, and sixteen workflows at once, on the same disk.

A step does nothing but note the time, so what is measured is what makes it durable: the time from the first step to
the last, without the beginning and the end of the workflow, which differ in what they do.
"""

# The peer is installed for the benchmarks only, and has no types where it is not.
# mypy: disable-error-code="import-not-found, untyped-decorator, misc, no-untyped-call, unused-ignore"
# pyright: reportMissingImports=false
from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from bench.measure import not_measured, report
from jobtable.app import Services
from jobtable.jobs.report.context import JobContext
from jobtable.systems.journeys.entities import Journey, StageDefinition
from jobtable.systems.journeys.journey_template import path_of
from jobtable.systems.journeys.parts import JourneySource, StepDefinition
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.service import Journeys
from jobtable.systems.journeys.stage import Stage
from jobtable.testing.servers import cache_folder

STEPS, AT_ONCE, ROUNDS, TARGET = 25, 16, 5, 8
Workflow = Callable[[list[float]], None]
"""Runs a workflow whose steps note their times."""

_noted: dict[str, list[float]] = {}


def run() -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder()) as folder:
        try:
            with _dbos(Path(folder)) as peer, _jobtable(Path(folder)) as ours:
                _compare("durable steps, one after the other", ours, peer, workflows=1)
                _compare(f"durable steps, {AT_ONCE} workflows at once", ours, peer, workflows=AT_ONCE)
        except ImportError as error:
            not_measured("durable steps against DBOS", error)


def _compare(bench: str, ours: Workflow, peer: Workflow, *, workflows: int) -> None:
    rates: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        rates.append((_rate(ours, workflows), _rate(peer, workflows)))
    our_rate, peer_rate = (statistics.median(column) for column in zip(*rates, strict=True))
    report(bench, our_rate, "DBOS on SQLite", peer_rate, target=TARGET)


def _rate(workflow: Workflow, workflows: int) -> float:
    times: list[list[float]] = [[] for _ in range(workflows)]
    with ThreadPoolExecutor(workflows) as threads:
        list(threads.map(workflow, times))
    every = [moment for noted in times for moment in noted]
    return (len(every) - workflows) / (max(every) - min(every))


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


@contextmanager
def _dbos(folder: Path) -> Iterator[Workflow]:
    """A workflow of DBOS with its system database in a SQLite file."""
    from dbos import DBOS  # noqa: PLC0415 - one of the peers, which not everyone has installed

    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{folder / 'dbos.sqlite'}",
            "log_level": "ERROR",
            "run_admin_server": False,
        }
    )
    noted: dict[str, list[float]] = {}

    @DBOS.step()
    def step(name: str, number: int) -> int:
        noted[name].append(time.perf_counter())
        return number + 1

    @DBOS.workflow()
    def flow(name: str) -> int:
        number = 0
        for _ in range(STEPS):
            number = step(name, number)
        return number

    DBOS.launch()

    def workflow(times: list[float]) -> None:
        name = str(time.perf_counter_ns())
        noted[name] = times
        flow(name)

    try:
        yield workflow
    finally:
        DBOS.destroy()
