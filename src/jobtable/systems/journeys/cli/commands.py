"""`jobtable journeys`: create journeys, run them, and act on them while they run."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.cli.framework import new_group
from jobtable.cli.local_workers import workers_for
from jobtable.cli.opening import services_of
from jobtable.cli.options import AsJson, Limit, ObjectsUrl, StoreUrl, User, chosen_settings, on_services
from jobtable.cli.output import ExitCode, bar, columns, print_fields, print_json, print_list, print_table, say
from jobtable.settings import Settings
from jobtable.systems.journeys.cli import archives, details
from jobtable.systems.journeys.cli.details import JourneyId
from jobtable.systems.journeys.entities import JobExecution, Journey, StageDefinition
from jobtable.systems.journeys.example.product_catalogue import create_catalogue
from jobtable.systems.journeys.journey_template import DEFAULT_TEMPLATE, JourneyTemplate
from jobtable.systems.journeys.parts import JourneyConfiguration, JourneySource, JourneyStatus, Priority
from jobtable.systems.journeys.runner import QUEUE, JourneyRunner
from jobtable.systems.journeys.service import Journeys

app = new_group()
for part in (details, archives):
    app.take_over(part.app)
_row = columns(
    Journey,
    "journey=journey_id name status progress=overall_progress stage=current_stage_id priority created=created_at",
)

OnlySubmit = Annotated[
    bool, typer.Option("--submit-only", help=f"Start no worker: those of the queue `{QUEUE}` do the work.")
]
Skip = Annotated[list[str] | None, typer.Option("--skip", metavar="STAGE", help="Stage to skip, which must allow it")]


@app.command(
    example=(
        "jobtable journeys example catalogue.db\n"
        "jobtable journeys create catalogue.db --id JRN-1 --stage tmf_mapping=my_stages:Mapping"
    )
)
def create(
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", dir_okay=False, help="SQLite file to transform, where workers can read it"),
    ],
    name: Annotated[str, typer.Option(help="Name of the journey")] = "Product catalogue",
    journey_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Id of the journey (default: a new one)")
    ] = None,
    priority: Annotated[Priority, typer.Option(help="Priority of the journey")] = Priority.MEDIUM,
    batch_rows: Annotated[int, typer.Option(min=1, help="Number of rows to migrate at once")] = 200,
    stage: Annotated[
        list[str] | None,
        typer.Option(metavar="STAGE=MODULE:CLASS", help="Class for a stage, instead of the default one"),
    ] = None,
    can_skip: Annotated[
        list[str] | None, typer.Option(metavar="STAGE", help="Stage that may be skipped; repeatable")
    ] = None,
    rules: Annotated[bool, typer.Option("--rules/--no-rules", help="Add the rules of the example, or none")] = True,
    timeout: Annotated[int, typer.Option(min=1, help="Maximum duration of a stage in seconds")] = 1800,
    user: User = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Create a journey with the six default stages and the rules for a product catalogue."""
    template = _template(stage or [], can_skip or [])
    settings = chosen_settings(store, objects, user=user, creates=True)
    with services_of(settings) as services:
        now = services.store.clock.now()
        journey = Journey(
            journey_id=journey_id or f"JRN-{uuid.uuid4().hex[:12].upper()}",
            name=name,
            priority=priority,
            created_by=settings.user,
            oda_component_type="PRODUCTCATALOG",
            source=JourneySource(schema_id=source.stem, schema_name=source.name),
            configuration=JourneyConfiguration(timeout=timeout),
            parameters={"source": str(source.absolute()), "batchRows": batch_rows},
            created_at=now,
            updated_at=now,
        )
        services.get(Journeys).create_from_template(journey, template, with_example_rules=rules)
        if settings.server is None and not source.exists():
            say(f"File {source.absolute()} does not exist here; the journey fails unless its workers find it.")
        _print_journey(services.get(Journeys), journey.journey_id, as_json=as_json)


def _template(replaced: list[str], skippable: list[str]) -> JourneyTemplate:
    template = DEFAULT_TEMPLATE.allowing_skip(*skippable)
    for text in replaced:
        stage_id, equals, implementation = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"--stage {text} must have the form STAGE=MODULE:CLASS")
        template = template.replacing(stage_id, implementation)
    return template


@app.command(example="jobtable journeys example catalogue.db --products 2000")
def example(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="SQLite file to write")],
    products: Annotated[int, typer.Option(min=1, help="Number of products")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Random seed; the same seed gives the same rows")] = 1,
) -> None:
    """Write an invented product catalogue, to try a journey."""
    try:
        create_catalogue(path, products=products, seed=seed)
    except (OSError, sqlite3.Error) as error:
        raise typer.BadParameter(f"cannot write {path}: {error}") from error
    say(f"Wrote {path} with {products} products.")


@app.command("list", example="jobtable journeys list --status running --json")
@on_services
def list_journeys(
    journeys: Journeys,
    status: Annotated[JourneyStatus | None, typer.Option(help="Only journeys with this status")] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List journeys, newest first."""
    empty = "There are no journeys yet; create one with `jobtable journeys create SOURCE`."
    if status is not None:
        empty = f"No journey is {status}."
    found = journeys.list_journeys(status, newest_first=True)
    print_list(found, _row, as_json=as_json, empty=empty, limit=limit)


@app.command(example="jobtable journeys show JRN-1")
@on_services
def show(journeys: Journeys, journey_id: JourneyId, as_json: AsJson = False) -> None:
    """Show a journey with its stages and executions."""
    _print_journey(journeys, journey_id, as_json=as_json)


@app.command(example="jobtable journeys run JRN-1")
@on_services(user=User)
def run(
    services: Services,
    settings: Settings,
    journey_id: JourneyId,
    skip: Skip = None,
    submit_only: OnlySubmit = False,
    as_json: AsJson = False,
) -> None:
    """Run a journey with its own worker and a progress bar, or continue it after a crash or Ctrl-C."""
    _skip(services, journey_id, skip)
    journey = services.get(JourneyRunner).run(journey_id, by=settings.user)
    _finish(services, settings, journey, submit_only=submit_only, as_json=as_json)


@app.command(example="jobtable journeys resume JRN-1")
@on_services(user=User)
def resume(
    services: Services,
    settings: Settings,
    journey_id: JourneyId,
    submit_only: OnlySubmit = False,
    as_json: AsJson = False,
) -> None:
    """Resume a paused journey after its last finished step."""
    journey = services.get(JourneyRunner).resume(journey_id, by=settings.user)
    _finish(services, settings, journey, submit_only=submit_only, as_json=as_json)


@app.command(example="jobtable journeys retry JRN-1")
@on_services(user=User)
def retry(
    services: Services,
    settings: Settings,
    journey_id: JourneyId,
    skip: Skip = None,
    submit_only: OnlySubmit = False,
    as_json: AsJson = False,
) -> None:
    """Run the failed or cancelled stage again, as a new execution, and then the later stages."""
    _skip(services, journey_id, skip)
    journey = services.get(JourneyRunner).retry(journey_id, by=settings.user)
    _finish(services, settings, journey, submit_only=submit_only, as_json=as_json)


def _skip(services: Services, journey_id: str, stages: Sequence[str] | None) -> None:
    for stage_id in stages or ():
        services.get(JourneyRunner).skip(journey_id, stage_id)


def _finish(services: Services, settings: Settings, journey: Journey, *, submit_only: bool, as_json: bool) -> None:
    """Wait for a journey with a progress bar, print it, and exit with 5 unless it is completed."""
    if not submit_only and journey.status is JourneyStatus.RUNNING:
        try:
            journey = _work(services, settings, journey)
        except KeyboardInterrupt:
            say(f"Finished steps stay finished; continue with: jobtable journeys run {journey.journey_id}")
            raise
    _print_journey(services.get(Journeys), journey.journey_id, as_json=as_json)
    if not submit_only and journey.status is not JourneyStatus.COMPLETED:
        raise typer.Exit(ExitCode.NOT_COMPLETED)


def _work(services: Services, settings: Settings, journey: Journey) -> Journey:
    """Wait for a journey with a progress bar; a local worker or the server's workers run it."""
    working = workers_for(services, settings, [QUEUE], preload=["jobtable.systems.journeys.runner"])
    with working as workers, bar(journey.name, 100) as shown:
        return workers.poll(
            lambda: services.get(Journeys).get_journey(journey.journey_id),
            lambda seen: seen.status is not JourneyStatus.RUNNING,
            lambda seen: shown.reach(seen.overall_progress),
        )


@app.command(example="jobtable journeys pause JRN-1")
@on_services
def pause(runner: JourneyRunner, journey_id: JourneyId) -> None:
    """Pause a journey after its current step, or where that step saves its position."""
    runner.pause(journey_id)
    say(f"Journey {journey_id} is paused; continue with `jobtable journeys resume {journey_id}`.")


@app.command(example="jobtable journeys cancel JRN-1")
@on_services(user=User)
def cancel(runner: JourneyRunner, settings: Settings, journey_id: JourneyId) -> None:
    """Cancel a journey; its results so far are kept."""
    runner.cancel(journey_id, by=settings.user)
    say(f"Journey {journey_id} is cancelled.")


def _print_journey(journeys: Journeys, journey_id: str, *, as_json: bool) -> None:
    found = journeys.get_complete_journey(journey_id, consistent=True)
    if as_json:
        print_json(found)
        return
    journey = found.journey
    print_fields(_row(journey) | {"source": journey.source.schema_name, **journey.aggregates.model_dump()})
    latest = {execution.stage_id: execution for execution in reversed(found.recent_executions)}
    print_table([_stage_row(stage, latest.get(stage.stage_id)) for stage in found.stages])


def _stage_row(stage: StageDefinition, execution: JobExecution | None) -> dict[str, Any]:
    return {
        "stage": stage.stage_id,
        "status": stage.status.value,
        "progress": None if execution is None else execution.progress,
        "execution": None if execution is None else execution.execution_number,
        "seconds": None if execution is None else execution.duration,
        "logs": None if execution is None else execution.metrics.total_logs,
        "job": None if execution is None else execution.job_id,
        "error": None if execution is None else execution.error_message,
    }
