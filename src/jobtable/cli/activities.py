"""`jobtable activities`: tasks of state machines that programs anywhere poll for."""

from __future__ import annotations

import socket
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.cli.completion import completed
from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.options import AsJson, Limit, on_services
from jobtable.cli.output import ExitCode, print_either, print_fields, print_list, print_table, print_text, say
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.records import Activity
from jobtable.workflows.asl.entities import ActivityTask

app = new_group()

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name of the activity",
        autocompletion=completed(lambda services: (each.name for each in services.activities.list())),
    ),
]


@app.command(example="jobtable activities create pack")
@on_services(creates=True)
def create(services: Services, name: Name, as_json: AsJson = False) -> None:
    """Create an activity. Creating the same again changes nothing."""
    made = services.activities.create(name, arns=Arns())
    print_either(made, lambda: print_table([_row(made)]), as_json=as_json)


@app.command("list", example="jobtable activities list")
@on_services
def list_activities(services: Services, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List activities by name."""
    empty = "There are no activities yet; create one with `jobtable activities create NAME`."
    print_list(services.activities.list(), _row, as_json=as_json, empty=empty, limit=limit)


@app.command(example="jobtable activities poll pack --wait 60 --json")
@on_services
def poll(
    services: Services,
    name: Name,
    wait: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Maximum time to wait for a task")] = 60.0,
    worker: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of this worker, for the history (default: the host)")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take the oldest task of an activity and print its token and input; exit with 3 if there is none in time.

    Answer the token with `jobtable workflows answer`.
    """
    services.activities.get(name)
    task = services.executions.poll(name, worker or socket.gethostname(), wait_seconds=wait)
    if task is None:
        say(f"{name} has no task.")
        raise typer.Exit(ExitCode.NOT_FOUND)
    print_either(task, lambda: _print_task(task), as_json=as_json)


@app.command(example="jobtable activities delete pack --yes")
@on_services
def delete(services: Services, name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete an activity."""
    services.activities.get(name)
    confirm(f"Delete the activity {name}?", yes=yes)
    services.activities.delete(name)
    print_either({"activity": name}, lambda: print_text(f"{name} deleted"), as_json=as_json)


def _row(activity: Activity) -> dict[str, Any]:
    return {"activity": activity.name, "created": activity.created_at, "tags": activity.tags or None}


def _print_task(task: ActivityTask) -> None:
    print_fields({"execution": f"{task.machine}/{task.name}", "token": task.token, "input": task.input})
