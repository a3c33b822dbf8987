"""`jobtable worker`: run jobs."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from jobtable.app import Services, open_jobs
from jobtable.cli.background import kept_up
from jobtable.cli.opening import wait_for_store
from jobtable.cli.options import AsJson, ObjectsUrl, StoreUrl, names_store, refuse_memory, resolved
from jobtable.cli.output import print_json, print_table, say
from jobtable.connection import default_objects_url
from jobtable.errors import ObjectStoreUnavailable
from jobtable.jobs.lifecycle.instances import InstanceInfo
from jobtable.jobs.verbs import WorkVerbs
from jobtable.jobs.worker.worker import Worker
from jobtable.objects import open_objects
from jobtable.settings import Settings, without_secret
from jobtable.system import declared

app = typer.Typer(rich_markup_mode=None)
_STDIN = 0


@app.command()
def worker(
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue", "-q", metavar="NAME", help="A queue to serve; may be given several times. Without it: settings."
        ),
    ] = None,
    slots: Annotated[int | None, typer.Option("--slots", min=1, help="How many jobs to run at once.")] = None,
    until_empty: Annotated[bool, typer.Option("--until-empty", help="End when the queues are empty.")] = False,
    until_stdin_closes: Annotated[
        bool, typer.Option("--until-stdin-closes", help="Also stop when the program is gone that writes to stdin.")
    ] = False,
    inline: Annotated[
        bool,
        typer.Option("--inline", help="Run tasks that are marked inline in this process, in batches: fast, not apart."),
    ] = False,
    preload: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE", help="Import this once, before any job starts; may be given several times."),
    ] = None,
    lease_seconds: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="After how many silent seconds its jobs go to others.")
    ] = None,
    drain_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long jobs may take to end when the worker is stopped.")
    ] = 30.0,
    instance_type: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="What it runs on, as in p3.2xlarge. Without it: what can be seen."),
    ] = None,
    gpus: Annotated[int | None, typer.Option(min=0, help="How many GPUs it has. Without it: what can be seen.")] = None,
    zone: Annotated[str | None, typer.Option(metavar="NAME", help="The availability zone that it stands in.")] = None,
    spot: Annotated[bool, typer.Option("--spot", help="It is a spot instance, which may go away.")] = False,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Run jobs until Ctrl-C, or until the queues are empty.

    Tasks are imported from the current folder and from what is installed. The first Ctrl-C or SIGTERM lets running jobs
    end, and gives back what has not ended in time; the second one does so at once. Through a server (--server, with a
    token of the role worker) it runs tasks that need no store of their own.

    \b
    Example:
        jobtable worker --queue gpu --slots 2 --until-empty
    """
    queues = tuple(queue) if queue else None
    settings = _settings(store, objects=objects, queues=queues, slots=slots, lease_seconds=lease_seconds)
    refuse_memory(settings)
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    logging.getLogger("jobtable.worker").setLevel(logging.INFO)  # it tells that it waits for jobs before it ends
    if settings.server is None:
        wait_for_store(settings)
        _look_at_objects(settings)
    place = without_secret(settings.server or settings.store)
    say(f"Working on {', '.join(settings.queues)} with {settings.slots} slot(s) in {place}; stop with Ctrl-C.")
    jobs_worker = Worker(
        _opener(settings),
        settings.queues,
        slots=settings.slots,
        lease_seconds=settings.lease_seconds,
        mode="inline" if inline else "process",
        preload=preload or (),
        until_empty=until_empty,
        instance=_instance(instance_type, gpus, zone, is_spot=spot),
        drain_seconds=drain_seconds,
    )
    if until_stdin_closes:
        threading.Thread(target=_drain_at_end_of_input, args=(jobs_worker,), name="stdin", daemon=True).start()
    with _watching(settings):
        report = jobs_worker.run()
    if as_json:
        print_json(report)
    else:
        print_table([vars(report)])


def _settings(store: str | None, **flags: Any) -> Settings:
    """The settings of a worker: a server that is named with the command, or a store that is named anywhere, wins."""
    found = resolved(store=store, **flags)
    is_meant = found.sources["server"] == "--server" or found.sources["store"] == "default"
    server = found.settings.server if is_meant and not names_store(found) else None
    return found.settings.model_copy(update={"server": server})


def _opener(settings: Settings) -> Callable[[], WorkVerbs]:
    """How the worker, and the process of each of its jobs, opens what it works on."""
    if settings.server is not None:
        from jobtable.remote.work import open_work  # noqa: PLC0415 - loaded when it is used

        return partial(open_work, settings.server, settings.token)
    return partial(open_jobs, settings.store, settings.objects)


def _look_at_objects(settings: Settings) -> None:
    """Raise where there is no place for objects: the worker would take one job after the other, and fail them all."""
    with closing(open_objects(settings.objects or default_objects_url(settings.store))) as objects:
        try:
            any(objects.list("jobs"))
        except ObjectStoreUnavailable as error:
            say(f"Objects cannot be used now, which may pass: {error}")


def _drain_at_end_of_input(worker: Worker) -> None:
    """Stop the worker as SIGTERM does when nobody can write to stdin any more."""
    # Not by sys.stdin: at the end of the interpreter its lock may be held here, which is fatal.
    while os.read(_STDIN, 4096):
        pass
    worker.drain()


def _instance(instance_type: str | None, gpus: int | None, zone: str | None, *, is_spot: bool) -> InstanceInfo:
    """What the person says of the machine, and what the machine itself can say of the rest."""
    seen = InstanceInfo.of_this_machine()
    return replace(
        seen,
        instance_type=instance_type or seen.instance_type,
        gpu_count=seen.gpu_count if gpus is None else gpus,
        availability_zone=zone,
        is_spot=is_spot,
    )


@contextmanager
def _watching(settings: Settings) -> Iterator[None]:
    """Prepare the systems whose queues are served, and run their upkeep."""
    served = [system for system, queues in declared("queues") if not set(queues).isdisjoint(settings.queues)]
    if not served or settings.server is not None:
        yield
        return
    with Services.open(settings.store, settings.objects) as services:
        for system in served:
            services.prepare(system)
        with kept_up(services, settings.queues):
            yield
