"""The parts of the demonstration: each is started once, whatever happens in between, and says how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jobtable.app import Services
from jobtable.errors import AlreadyExistsError, ConflictError
from jobtable.jobs.stored.fields import FINAL, Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.systems.albums.entities import ExecutionStatus
from jobtable.systems.albums.example import PATHS
from jobtable.systems.conversations.analysis.export import read_files, write_export
from jobtable.systems.conversations.analysis.generated import generate_export
from jobtable.systems.journeys.entities import Journey
from jobtable.systems.journeys.example.catalogue import create_catalogue
from jobtable.systems.journeys.parts import JourneyStatus, Source
from jobtable.systems.journeys.template import DEFAULT_TEMPLATE
from jobtable.systems.sweeps.parameters import Choice, FloatRange, IntRange
from jobtable.systems.sweeps.stoppers import Asha
from jobtable.systems.sweeps.sweep import Sweep

USER = "demo"
_SWEEP, _JOURNEY, _CONVERSATION, _RUN = "demo-sweep", "JRN-DEMO", "demo-town-hall", "demo-run"
_RECEIPTS, _EXECUTION = "demo-receipts", "demo-records"
_RECEIPT_COUNT = 9
_LISTING = """Nina Simone - Pastel Blues (1965)
Kraftwerk - Autobahn (1974)
Fela Kuti - Zombie (1976)
Kate Bush - Hounds of Love (1985)
Massive Attack - Mezzanine (1998)
Somebody - Something from Tomorrow (2199)
"""


@dataclass(frozen=True)
class State:
    """How far a part is."""

    status: str
    percent: float
    detail: str = ""
    is_settled: bool = False
    """Whether it has come to its end, or to a person that it waits for."""


@dataclass(frozen=True)
class Part:
    """One part: what it shows, the page where it is seen, how it begins and how far it is."""

    title: str
    page: str
    start: Callable[[Services, Path], None]
    look: Callable[[Services], State]


def _start_sweep(services: Services, folder: Path) -> None:
    sweep = Sweep(
        name="digits",
        task="jobtable.systems.sweeps.demo.training:train",
        space={
            "learning_rate": FloatRange(low=0.0003, high=0.1, log=True),
            "hidden": IntRange(low=8, high=64),
            "alpha": FloatRange(low=1e-5, high=1e-1, log=True),
            "activation": Choice(values=["relu", "tanh"]),
        },
        objective="val_loss",
        sampler="tpe",
        stopper=Asha(first_epoch=3),
        trials=16,
        generation_size=4,
        seed=7,
    )
    services.sweeps.submit(sweep, sweep_id=_SWEEP, user=USER)


def _look_at_sweep(services: Services) -> State:
    progress = services.sweeps.get_progress(_SWEEP)
    ended = progress.made - progress.open
    best = "" if progress.best is None else f", best loss {progress.best.value:.4f}"
    detail = f"{ended} of {progress.total} trials, {progress.stopped} stopped early{best}"
    return State(progress.status, 100 * ended / progress.total, detail, progress.status in FINAL)


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
        source=Source(schema_id="catalogue", schema_name=catalogue.name),
        parameters={"source": str(catalogue.absolute()), "batchRows": 200},
        created_at=now,
        updated_at=now,
    )
    with suppress(AlreadyExistsError):
        services.journeys.create_from_template(journey, with_example_rules=True)
    with suppress(ConflictError):  # it was started before, and has ended or was paused
        services.journey_runner.run(_JOURNEY, by=USER)


def _look_at_journey(services: Services) -> State:
    journey = services.journeys.get_journey(_JOURNEY)
    is_over = journey.status in (JourneyStatus.COMPLETED, JourneyStatus.FAILED, JourneyStatus.CANCELLED)
    done, total = journey.aggregates.completed_jobs, len(DEFAULT_TEMPLATE.implementations)
    return State(journey.status.upper(), journey.overall_progress, f"{done} of {total} stages", is_over)


def _start_conversation(services: Services, folder: Path) -> None:
    export = folder / "conversation"
    if not export.exists():
        write_export(generate_export(3, comments=150, voters=80), export)
    services.conversation_runs.start(_CONVERSATION, *read_files(export), run_id=_RUN, user=USER)


def _look_at_conversation(services: Services) -> State:
    run = services.conversation_runs.get(_RUN)
    detail = f"{sum(job.status is Status.COMPLETED for job in run.stages.values())} of {len(run.stages)} stages"
    return State(run.status, run.progress, detail, run.status in FINAL)


def _start_execution(services: Services, folder: Path) -> None:
    for number, definition in enumerate(PATHS.values(), start=1):
        listing = _LISTING.encode()
        services.album_executions.start(
            definition, listing, "records.txt", execution_id=f"{_EXECUTION}-{number}", user=USER
        )


def _look_at_execution(services: Services) -> State:
    executions = [services.albums.get_execution(f"{_EXECUTION}-{number}") for number in range(1, len(PATHS) + 1)]
    waiting = sum(each.status is ExecutionStatus.WAITING for each in executions)
    is_settled = all(each.status is not ExecutionStatus.RUNNING for each in executions)
    if waiting:
        return State("WAITING", 50, f"{waiting} of {len(executions)} executions wait for a person", is_settled)
    status = "RUNNING" if not is_settled else executions[0].status.upper()
    return State(status, 100 if is_settled else 25, "", is_settled)


def _start_receipts(services: Services, folder: Path) -> None:
    new = NewJob(
        name="read receipts",
        task="jobtable.systems.receipts.demo.reading:read_receipts",
        params={"count": _RECEIPT_COUNT},
        job_id=_RECEIPTS,
        job_type="receipts",
        user=USER,
        tags=frozenset({"demo"}),
    )
    services.jobs.submit(new)


def _look_at_receipts(services: Services) -> State:
    job = services.jobs.queries.get_job(_RECEIPTS)
    return State(job.status, job.progress, f"{_RECEIPT_COUNT} receipts", job.is_final)


PARTS = (
    Part("Receipts", "/receipts", _start_receipts, _look_at_receipts),
    Part("Album executions", "/executions", _start_execution, _look_at_execution),
    Part("Conversation", f"/conversations/{_CONVERSATION}", _start_conversation, _look_at_conversation),
    Part("Journey", f"/journeys/{_JOURNEY}", _start_journey, _look_at_journey),
    Part("Sweep", f"/sweeps/{_SWEEP}", _start_sweep, _look_at_sweep),
)
