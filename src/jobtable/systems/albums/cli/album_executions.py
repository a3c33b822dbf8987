"""`jobtable executions`: run album workflows, and see how they went."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.cli.completion import MOST, completed
from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.local_workers import LocalWorkers, ServerWorkers, workers_for
from jobtable.cli.opening import services_of
from jobtable.cli.options import AsJson, Limit, ObjectsUrl, StoreUrl, User, chosen_settings, open_services, resolved
from jobtable.cli.output import ExitCode, bar, print_fields, print_json, print_list, print_table, say
from jobtable.settings import Settings
from jobtable.systems.albums.album_executions import ANSWER_WITHIN, FORMER, Executions, is_former
from jobtable.systems.albums.entities import (
    Album,
    Execution,
    ExecutionStatus,
    ValidationTask,
    WorkflowMetrics,
    WorkflowType,
)
from jobtable.systems.albums.metrics import count_and_compare
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.style_comparison import MOST_RUNS, Compared, Comparisons, Measured
from jobtable.systems.albums.watch import Watch
from jobtable.systems.albums.workflow_runs import TASKS
from jobtable.workflows.table_and_queues import EXECUTIONS_QUEUE, FUNCTIONS_QUEUE, QUEUES


def _ids(services: Services) -> Iterator[str]:
    return (each.execution_id for each in services.get(AlbumWorkflows).list_newest_executions(limit=MOST))


app = new_group()

WorkflowOption = Annotated[
    WorkflowType | None, typer.Option("--workflow-type", "-t", help="Only executions of this type")
]
ExecutionId = Annotated[str, typer.Argument(metavar="ID", help="Id of the execution", autocompletion=completed(_ids))]
SubmitOnly = Annotated[
    bool,
    typer.Option("--submit-only", help="Submit only; workers of `workflows` and `functions` do the work"),
]


@app.command(example="jobtable executions start shelf.jpg --workflow-type durable-functions")
def start(
    image: Annotated[
        Path, typer.Argument(metavar="FILE", help="Photograph or scan of covers or of a list; or a listing as text")
    ],
    workflow_type: Annotated[
        WorkflowType, typer.Option("--workflow-type", "-t", help="How to run the workflow")
    ] = WorkflowType.STEP_FUNCTIONS,
    answer_within: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="Time for a person to answer")
    ] = ANSWER_WITHIN.total_seconds(),
    on_timeout: Annotated[
        str, typer.Option(metavar="ACT", help="What follows if nobody answers in time: fail or continue")
    ] = "fail",
    deliver: Annotated[
        str | None, typer.Option(metavar="MODULE:NAME", help="Function that sends the task and its token")
    ] = None,
    submit_only: SubmitOnly = False,
    user: User = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Start an execution and run it until it ends or waits for a person.

    Reading a picture needs the extra `vision`. A listing has a line for each album: `Artist - Album (1973)`.
    """
    content = _read(image)
    settings = chosen_settings(store, objects, creates=True)
    with services_of(settings) as services:
        execution = services.get(Executions).start(
            workflow_type,
            content,
            image.name,
            user=resolved(user=user).settings.user,
            answer_within=timedelta(seconds=answer_within),
            on_timeout=on_timeout,
            deliver=deliver,
        )
        finish(services, execution, settings, submit_only=submit_only, as_json=as_json)


def _read(image: Path) -> bytes:
    try:
        return image.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"cannot read {image}: {error.strerror}") from error


@app.command(example="jobtable executions compare cover.jpg shelf.txt --runs 5")
def compare(
    images: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Pictures or listings")],
    runs: Annotated[int, typer.Option(min=1, max=MOST_RUNS, help="How often each style gets each image")] = 3,
    user: User = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Run both styles side by side with the same images, answers and timeouts, and print what was measured.

    Every question is answered by this command: all albums are right. The page /executions/compare shows the same.
    """
    contents = [(image.name, _read(image)) for image in images]
    settings = chosen_settings(store, objects, creates=True)
    with services_of(settings) as services:
        comparisons = services.get(Comparisons)
        comparison_id = comparisons.start(contents, runs, user=resolved(user=user).settings.user).comparison_id
        say(f"Comparison {comparison_id}: {2 * runs * len(images)} executions")

        def look() -> Compared:
            comparisons.confirm(comparison_id)
            seen = comparisons.read(comparison_id)
            for each in seen.executions:
                if each.figures is None:
                    services.get(Watch).check(each.execution_id)
            return seen

        with (
            _workers(services, settings) as workers,
            bar("Comparing", len(images) * runs * 2) as done,
        ):

            def show(seen: Compared) -> None:
                done.reach(sum(each.figures is not None for each in seen.executions))

            compared = workers.poll(look, lambda seen: seen.is_settled, show)
    if as_json:
        print_json({"comparison": compared.comparison, "executions": compared.executions})
        return
    print_table([_measured_row(each) for each in compared.measured])
    say(f"Prices of {', '.join(compared.prices)}. Page: /executions/compare/{comparison_id}")
    if any(each.status is ExecutionStatus.FAILED for each in compared.executions):
        raise typer.Exit(ExitCode.NOT_COMPLETED)


def _measured_row(measured: Measured) -> dict[str, Any]:
    step, durable = (measured.medians[kind] for kind in WorkflowType)
    return {
        "median": measured.title,
        "unit": measured.unit,
        "step functions": step,
        "durable functions": durable,
    }


@app.command(example="jobtable executions retry 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
def retry(
    execution_id: ExecutionId,
    submit_only: SubmitOnly = False,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Continue a failed execution from the step that failed, until it ends or waits for a person."""
    settings = chosen_settings(store, objects)
    with services_of(settings) as services:
        execution = services.get(Executions).retry(execution_id)
        finish(services, execution, settings, submit_only=submit_only, as_json=as_json)


@app.command(example="jobtable executions delete 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --yes")
def delete(
    execution_id: ExecutionId,
    stop: Annotated[
        bool, typer.Option("--stop", help="Stop the execution if it is active, and wait for its worker")
    ] = False,
    yes: Yes = False,
    user: User = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Delete an execution with its albums, tasks, image and jobs; if interrupted, run it again."""
    confirm(f"Delete execution {execution_id} with its albums, tasks, image and jobs?", yes=yes)
    by = resolved(user=user).settings.user
    with open_services(store, objects) as services:
        count = services.get(Executions).delete(execution_id, stop=stop, by=by)
    if as_json:
        print_json({"execution": execution_id, "items": count})
    else:
        say(f"Deleted execution {execution_id}: {count} items, and its image.")


def finish(services: Services, execution: Execution, settings: Settings, *, submit_only: bool, as_json: bool) -> None:
    """Let workers run an execution until it ends or waits, with a bar; print it, and end with 5 if it failed."""
    executions = services.get(Executions)
    if not submit_only:
        execution = _run(services, execution, settings)
    _print_execution(executions, execution.execution_id, as_json=as_json)
    if execution.status is ExecutionStatus.WAITING:
        task_id = (execution.task_ids or ["TASK"])[-1]
        say(f"The execution waits for a person; get a token with `jobtable tasks token {task_id}`")
    if execution.status is ExecutionStatus.FAILED:
        say(f"The execution failed; continue it with `jobtable executions retry {execution.execution_id}`")
        raise typer.Exit(ExitCode.NOT_COMPLETED)


def _workers(services: Services, settings: Settings) -> LocalWorkers | ServerWorkers:
    """Return workers as `jobtable up` starts them: no function keeps the moves of state machines waiting."""
    small = [EXECUTIONS_QUEUE]
    return workers_for(services, settings, [FUNCTIONS_QUEUE], small=small, slots=settings.slots, preload=TASKS)


def _run(services: Services, execution: Execution, settings: Settings) -> Execution:
    say(
        f"Execution {execution.execution_id}: if you stop this command, "
        f"`jobtable worker --queue {' --queue '.join(QUEUES)}` continues it."
    )
    working = _workers(services, settings)
    with working as workers, bar("Running") as steps:
        shown = execution

        def show(seen: Execution) -> None:
            nonlocal shown
            if (seen.current_step, seen.status) != (shown.current_step, shown.status):
                steps.advance(1)
            shown = seen

        def is_over(seen: Execution) -> bool:
            # The workflow ends behind its records: its worker is not to be stopped before that.
            has_ended = seen.status in (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED)
            is_here = settings.server is None
            is_watched = is_here and services.get(Executions).find_watch(seen.execution_id) is not None
            return seen.status is ExecutionStatus.WAITING or (has_ended and not is_watched)

        return workers.poll(lambda: services.get(Watch).check(execution.execution_id), is_over, show)


def _print_execution(executions: Executions, execution_id: str, *, as_json: bool) -> None:
    found = executions.records.get_execution_with_albums(execution_id)
    execution = found.execution
    tasks = list(executions.records.list_execution_tasks(execution.workflow_type, execution_id))
    if as_json:
        print_json({"execution": execution, "albums": found.albums, "tasks": list(map(without_token, tasks))})
        return
    print_fields(
        {
            "execution": execution.execution_id,
            "workflow type": execution.workflow_type,
            "status": execution.status,
            "step": execution.current_step,
            "attempt": execution.attempt or 1,
            "failure": execution.failure,
            "started": execution.start_time,
            "ended": execution.end_time,
            "duration in ms": execution.duration_ms,
            "estimated cost": execution.estimated_cost,
            "image": execution.image_s3_key,
            "user": execution.created_by,
            "note": _note(executions, execution),
        }
    )
    if found.albums:
        print_table([_album_row(album) for album in found.albums])
    if tasks:
        print_table([{"task": t.task_id, "status": t.status, "expires": t.expires_at} for t in tasks])


def _note(executions: Executions, execution: Execution) -> str | None:
    """Return how to finish an execution of an earlier version."""
    watch = executions.find_watch(execution.execution_id)
    return FORMER.format(id=execution.execution_id) if is_former(watch) else None


def without_token(task: ValidationTask) -> dict[str, Any]:
    """The task as people see it: nobody needs the digest of its token."""
    return task.model_dump(mode="json", exclude={"token_sha256", "workflow_sha256", "sort_value"})


def _album_row(album: Album) -> dict[str, Any]:
    return {
        "album": album.album_index,
        "name": album.album_name,
        "artist": album.artist,
        "year": album.year,
        "year validated": album.year_validated,
        "price": album.price_estimate,
        "source": album.price_source,
    }


_NO_EXECUTIONS = "There are no executions yet; start one with `jobtable executions start FILE`."


@app.command("list", example="jobtable executions list --status waiting")
def list_executions(
    workflow_type: WorkflowOption = None,
    status: Annotated[ExecutionStatus | None, typer.Option("--status", help="Only executions with this status")] = None,
    limit: Limit = 50,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """List executions, newest first."""
    with open_services(store, objects) as services:
        found = services.get(AlbumWorkflows).list_newest_executions(workflow_type, status, limit=limit + 1)
        is_narrowed = workflow_type is not None or status is not None
        empty = "No executions match." if is_narrowed else _NO_EXECUTIONS
        print_list(found, _row, as_json=as_json, empty=empty, limit=limit)


def _row(execution: Execution) -> dict[str, Any]:
    return {
        "execution": execution.execution_id,
        "workflow type": execution.workflow_type,
        "status": execution.status,
        "step": execution.current_step,
        "started": execution.start_time,
        "duration in ms": execution.duration_ms,
        "cost": execution.estimated_cost,
    }


@app.command(example="jobtable executions show 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
def show(
    execution_id: ExecutionId,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show an execution with its albums and tasks."""
    with open_services(store, objects) as services:
        _print_execution(services.get(Executions), execution_id, as_json=as_json)


@app.command(example="jobtable executions metrics 2025-01-15")
def metrics(
    day: Annotated[str | None, typer.Argument(metavar="DATE", help="Day, as in 2025-01-15 (default: today)")] = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Count the executions of a day (UTC) by workflow type, without storing the counts."""
    with open_services(store, objects) as services:
        compared = count_and_compare(services.store, _day(day, services))
    if as_json:
        print_json(compared)
        return
    sides = (compared.step_functions, compared.durable_functions)
    print_table([_metrics_row(side) for side in sides if side is not None])


def _day(text: str | None, services: Services) -> date:
    if text is None:
        return services.store.clock.now().date()
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a date; write it as in 2025-01-15") from error


def _metrics_row(found: WorkflowMetrics) -> dict[str, Any]:
    return {
        "workflow type": found.workflow_type,
        "date": str(found.date),
        "executions": found.execution_count,
        "succeeded": found.success_count,
        "failed": found.failure_count,
        "average ms": found.avg_duration_ms,
        "total cost": found.total_cost,
        "cost each": found.avg_cost_per_execution,
    }
