"""`jobtable queues`: list, show, create, change, pause, resume and delete queues."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.cli.framework import MOST_LINES, Yes, confirm, new_group
from jobtable.cli.options import AsJson, Limit, on_services
from jobtable.cli.output import (
    columns,
    first_of,
    print_either,
    print_fields,
    print_json,
    print_list,
    print_part,
    print_table,
    print_text,
)
from jobtable.jobs.stored.entities import Queue, QueueJob

app = new_group()
_entry_row = columns(QueueJob, "job=job_id priority since=enqueued_at")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the queue")]
MostAtOnce = Annotated[
    int | None, typer.Option("--max-concurrent-jobs", min=1, help="Maximum number of jobs that run at once")
]
Priority = Annotated[
    int | None,
    typer.Option("--priority", min=0, max=999, help="Priority among the queues of a worker; higher goes first"),
]
Description = Annotated[str | None, typer.Option("--description", metavar="TEXT", help="Purpose of the queue")]


@app.command("list", example="jobtable queues list")
@on_services
def list_queues(services: Services, limit: Limit = 100, as_json: AsJson = False) -> None:
    """List queues with their numbers of waiting and running jobs."""
    empty = "There are no queues yet; the first job submitted to a queue creates it."
    print_list(services.jobs.queries.list_queues(), _row, as_json=as_json, empty=empty, limit=limit)


@app.command(example="jobtable queues show gpu")
@on_services
def show(
    services: Services,
    name: Name,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=MOST_LINES, help="Maximum number of next jobs to show")
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Show a queue and its next jobs."""
    queue = services.jobs.queries.get_queue(name)
    with first_of(services.jobs.queries.list_ready(name), limit) as upcoming:
        if as_json:
            print_json({"queue": queue, "next": upcoming})
            return
        print_fields({**_row(queue), "description": queue.description, "created": queue.created_at})
        print_part("Next jobs", [_entry_row(entry) for entry in upcoming])


@app.command(example="jobtable queues create gpu --max-concurrent-jobs 4 --priority 800")
@on_services(creates=True)
def create(
    services: Services,
    name: Name,
    max_concurrent_jobs: MostAtOnce = None,
    priority: Priority = None,
    description: Description = None,
    as_json: AsJson = False,
) -> None:
    """Create a queue; exit with 4 if it already exists."""
    queue = services.jobs.create_queue(
        name, max_concurrent_jobs=max_concurrent_jobs, priority=priority, description=description
    )
    _print(queue, as_json)


@app.command(example="jobtable queues change gpu --max-concurrent-jobs 8")
@on_services
def change(
    services: Services,
    name: Name,
    max_concurrent_jobs: MostAtOnce = None,
    priority: Priority = None,
    description: Description = None,
    as_json: AsJson = False,
) -> None:
    """Change the settings of a queue; those not given keep their values."""
    changed = services.jobs.change_queue(
        name, max_concurrent_jobs=max_concurrent_jobs, priority=priority, description=description
    )
    _print(changed, as_json)


@app.command(example="jobtable queues pause gpu")
@on_services
def pause(services: Services, name: Name, as_json: AsJson = False) -> None:
    """Pause a queue: no more of its jobs start, running ones continue."""
    _print(services.jobs.pause_queue(name), as_json)


@app.command(example="jobtable queues resume gpu")
@on_services
def resume(services: Services, name: Name, as_json: AsJson = False) -> None:
    """Resume a paused queue."""
    _print(services.jobs.resume_queue(name), as_json)


@app.command(example="jobtable queues delete gpu --yes")
@on_services
def delete(services: Services, name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a queue; exit with 4 if a job waits or runs in it.

    A later job that names the queue creates it again, with default settings.
    """
    confirm(f"Delete the queue {name} and its settings?", yes=yes)
    services.jobs.delete_queue(name)
    print_either({"queue": name}, lambda: print_text(f"{name} deleted"), as_json=as_json)


def _print(queue: Queue, as_json: bool) -> None:
    print_either(queue, lambda: print_table([_row(queue)]), as_json=as_json)


def _row(queue: Queue) -> dict[str, Any]:
    return {
        "queue": queue.queue_name,
        "state": "paused" if queue.paused_at else "open",
        "waiting": queue.waiting_count,
        "running": queue.running_count,
        "limit": queue.max_concurrent_jobs,
        "priority": queue.priority,
    }
