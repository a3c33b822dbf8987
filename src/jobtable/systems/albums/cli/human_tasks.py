"""`jobtable tasks`: what people are asked, and what they answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from jobtable.cli.background import signalled
from jobtable.cli.framework import new_group
from jobtable.cli.opening import services_of
from jobtable.cli.options import AsJson, Limit, ObjectsUrl, StoreUrl, chosen_settings, open_services
from jobtable.cli.output import first_of, print_fields, print_json, print_list, print_table, say
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.cli.album_executions import SubmitOnly, WorkflowOption, finish, without_token
from jobtable.systems.albums.entities import TaskStatus, ValidationTask
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.watch import Watch

app = new_group()

TaskId = Annotated[str, typer.Argument(metavar="ID", help="Id of the task")]


@app.command("list", example="jobtable tasks list --status timed-out")
def list_tasks(
    status: Annotated[TaskStatus, typer.Option("--status", help="Only tasks with this status")] = TaskStatus.PENDING,
    workflow_type: WorkflowOption = None,
    limit: Limit = 50,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """List tasks, oldest first; by default those that wait for an answer."""
    with (
        open_services(store, objects) as services,
        first_of(services.get(AlbumWorkflows).list_tasks(status, workflow_type, limit=limit + 1), limit) as found,
    ):
        if as_json:
            print_json([without_token(task) for task in found])
        else:
            print_list(found, _row, as_json=False, empty="No tasks match.")


def _row(task: ValidationTask) -> dict[str, Any]:
    return {
        "task": task.task_id,
        "status": task.status,
        "workflow type": task.workflow_type,
        "execution": task.execution_id,
        "albums": len(task.albums),
        "expires": task.expires_at,
    }


@app.command(example="jobtable tasks show 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --json")
def show(task_id: TaskId, store: StoreUrl = None, objects: ObjectsUrl = None, as_json: AsJson = False) -> None:
    """Show a task with its albums and its answer."""
    with open_services(store, objects) as services:
        task = services.get(AlbumWorkflows).get_task(task_id)
    shown = without_token(task)
    if as_json:
        print_json(shown)
        return
    print_fields({name: getattr(task, name) for name in shown if name not in ("albums", "validated_data")})
    for name in ("albums", "validated_data"):
        if shown[name]:
            say("Albums:" if name == "albums" else "Answer:")
            print_table(shown[name])


@app.command(example="jobtable tasks token 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
def token(task_id: TaskId, store: StoreUrl = None, objects: ObjectsUrl = None, as_json: AsJson = False) -> None:
    """Create a new token for a waiting task and print it, this once; the previous one becomes invalid."""
    with open_services(store, objects) as services:
        services.get(AlbumWorkflows).get_task(task_id)
        made = services.get(Answers).renew_token(task_id)
    if as_json:
        print_json({"task_id": task_id, "token": made})
    else:
        typer.echo(made)


@app.command(example='jobtable tasks complete 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --token "$TOKEN" --confirm')
def complete(
    task_id: TaskId,
    shown: Annotated[
        str, typer.Option("--token", metavar="TOKEN", envvar="JOBTABLE_TASK_TOKEN", help="Token of the task")
    ],
    answer: Annotated[
        Path | None,
        typer.Option("--answer", metavar="FILE", help="JSON list of albums; - reads it from stdin"),
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Confirm that all albums are correct")] = False,
    submit_only: SubmitOnly = False,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Answer a task and run its execution until it ends or waits again.

    The answer is a list of the albums that are right, as `jobtable tasks show --json` shows them; what it leaves out is
    taken for wrong.
    """
    if confirm == (answer is not None):
        raise typer.BadParameter("give either --answer FILE or --confirm")
    settings = chosen_settings(store, objects)
    with services_of(settings) as services:
        task = services.get(AlbumWorkflows).get_task(task_id)
        answered = [album.model_dump(mode="json") for album in task.albums] if answer is None else _read(answer)
        execution = services.get(Answers).complete(task_id, shown, answered)
        finish(services, execution, settings, submit_only=submit_only, as_json=as_json)


def _read(file: Path) -> Any:
    is_stdin = str(file) == "-"
    if is_stdin and sys.stdin is None:
        raise typer.BadParameter("stdin is closed: write the answer to it, or to a FILE")
    try:
        return json.loads(sys.stdin.read() if is_stdin else file.read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{file} is not JSON: {error}") from error


@app.command(example="jobtable tasks expire --follow")
def expire(
    follow: Annotated[bool, typer.Option("--follow", help="Go on until SIGTERM or Ctrl-C.")] = False,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Time out tasks that nobody answered, and look after executions that stand still."""
    with open_services(store, objects) as services:
        if follow:
            stop = signalled()
            say("Looking after tasks and executions; stop with Ctrl-C.")
            services.get(Watch).keep(stop.wait, say)
            return
        report = services.get(Watch).expire_due()
    if as_json:
        print_json(report)
        return
    say(
        f"Checked {report.looked_at} executions: {report.timed_out} tasks timed out, {report.failed} executions failed."
    )
    for execution_id, problem in report.problems.items():
        say(f"Execution {execution_id}: {problem}")
