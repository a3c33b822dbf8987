"""`jobtable queues`: list, show, create, change, pause, resume and delete queues."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobtable.cli.confirmation import Yes, confirm
from jobtable.cli.groups import new_group
from jobtable.cli.options import MOST_LINES, AsJson, Limit, ObjectsUrl, StoreUrl, open_services
from jobtable.cli.output import first_of, print_fields, print_json, print_list, print_part, print_table, print_text
from jobtable.jobs.stored.entities import Queue, QueueJob

app = new_group()

Name = Annotated[str, typer.Argument(metavar="NAME", help="The queue's name.")]
MostAtOnce = Annotated[
    int | None, typer.Option("--max-concurrent-jobs", min=1, help="How many of its jobs may run at once.")
]
Priority = Annotated[
    int | None, typer.Option("--priority", min=0, max=999, help="Workers of several queues take from the higher first.")
]
Description = Annotated[str | None, typer.Option("--description", help="What the queue is for.")]


@app.command("list")
def list_queues(
    limit: Limit = 100, store: StoreUrl = None, objects: ObjectsUrl = None, as_json: AsJson = False
) -> None:
    """List the queues with what waits and runs in them.

    \b
    Example:
        jobtable queues list
    """
    with open_services(store, objects) as services:
        empty = "There are no queues yet; the first job of a queue makes it."
        print_list(services.jobs.queries.list_queues(), _row, as_json=as_json, empty=empty, limit=limit)


@app.command()
def show(
    name: Name,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=MOST_LINES, help="How many of the next jobs to show.")
    ] = 10,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show a queue and the jobs that come next in it.

    \b
    Example:
        jobtable queues show gpu
    """
    with open_services(store, objects) as services:
        queue = services.jobs.queries.get_queue(name)
        with first_of(services.jobs.queries.list_ready(name), limit) as upcoming:
            if as_json:
                print_json({"queue": queue, "next": upcoming})
                return
            print_fields({**_row(queue), "description": queue.description, "created": queue.created_at})
            print_part("Next", [_place_row(place) for place in upcoming])


@app.command()
def create(
    name: Name,
    max_concurrent_jobs: MostAtOnce = None,
    priority: Priority = None,
    description: Description = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Create a queue. Exit code 4 if it is there already.

    \b
    Example:
        jobtable queues create gpu --max-concurrent-jobs 4 --priority 800
    """
    given = {"max_concurrent_jobs": max_concurrent_jobs, "priority": priority, "description": description}
    options: dict[str, Any] = {option: value for option, value in given.items() if value is not None}
    with open_services(store, objects, creates=True) as services:
        _print(services.jobs.create_queue(name, **options), as_json)


@app.command()
def change(
    name: Name,
    max_concurrent_jobs: MostAtOnce = None,
    priority: Priority = None,
    description: Description = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Change the settings of a queue; what is not given stays.

    \b
    Example:
        jobtable queues change gpu --max-concurrent-jobs 8
    """
    with open_services(store, objects) as services:
        changed = services.jobs.change_queue(
            name, max_concurrent_jobs=max_concurrent_jobs, priority=priority, description=description
        )
        _print(changed, as_json)


@app.command()
def pause(name: Name, store: StoreUrl = None, objects: ObjectsUrl = None, as_json: AsJson = False) -> None:
    """Let no more jobs of a queue start; those that run go on.

    \b
    Example:
        jobtable queues pause gpu
    """
    with open_services(store, objects) as services:
        _print(services.jobs.pause_queue(name), as_json)


@app.command()
def resume(name: Name, store: StoreUrl = None, objects: ObjectsUrl = None, as_json: AsJson = False) -> None:
    """Let the jobs of a paused queue start again.

    \b
    Example:
        jobtable queues resume gpu
    """
    with open_services(store, objects) as services:
        _print(services.jobs.resume_queue(name), as_json)


@app.command()
def delete(
    name: Name, yes: Yes = False, store: StoreUrl = None, objects: ObjectsUrl = None, as_json: AsJson = False
) -> None:
    """Delete a queue in which nothing waits or runs. Exit code 4 if something does.

    A job that names it makes it again, with the usual settings.

    \b
    Example:
        jobtable queues delete gpu --yes
    """
    confirm(f"Delete the queue {name} with its settings?", yes=yes)
    with open_services(store, objects) as services:
        services.jobs.delete_queue(name)
    if as_json:
        print_json({"queue": name})
    else:
        print_text(f"{name} deleted")


def _print(queue: Queue, as_json: bool) -> None:
    if as_json:
        print_json(queue)
    else:
        print_table([_row(queue)])


def _row(queue: Queue) -> dict[str, Any]:
    return {
        "queue": queue.queue_name,
        "state": "paused" if queue.paused_at else "open",
        "waiting": queue.waiting_count,
        "running": queue.running_count,
        "at once": queue.max_concurrent_jobs,
        "priority": queue.priority,
    }


def _place_row(place: QueueJob) -> dict[str, Any]:
    return {"job": place.job_id, "priority": place.priority, "since": place.enqueued_at}
