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
from jobtable.cli.framework import CommandGroup
from jobtable.cli.opening import wait_for_store
from jobtable.cli.options import AsJson, ObjectsUrl, StoreUrl, names_store, refuse_memory, resolved
from jobtable.cli.output import print_either, print_table, say
from jobtable.connection import default_objects_url
from jobtable.errors import ObjectStoreUnavailable
from jobtable.jobs.lifecycle.instances import InstanceInfo
from jobtable.jobs.verbs import WorkVerbs
from jobtable.jobs.worker.worker import Worker
from jobtable.objects import open_objects
from jobtable.settings import Settings, without_secret
from jobtable.system import declared
from jobtable.workflows.table_and_queues import QUEUES

app = CommandGroup()
_STDIN = 0


@app.command(example="jobtable worker --queue gpu --slots 2 --until-empty")
def worker(
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", "-q", metavar="NAME", help="Queue to serve; repeatable (default: the settings)"),
    ] = None,
    slots: Annotated[int | None, typer.Option(min=1, help="Number of jobs to run at once")] = None,
    until_empty: Annotated[bool, typer.Option("--until-empty", help="Exit when the queues are empty")] = False,
    until_stdin_closes: Annotated[
        bool, typer.Option("--until-stdin-closes", help="Stop when the program that writes to stdin exits")
    ] = False,
    inline: Annotated[
        bool, typer.Option("--inline", help="Run inline tasks in the worker's own process: fast, but not isolated")
    ] = False,
    preload: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE", help="Module to import once, before any job starts; repeatable"),
    ] = None,
    lease_seconds: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Time without a heartbeat after which other workers take its jobs"),
    ] = None,
    drain_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Time for running jobs to end when the worker stops")
    ] = 30.0,
    instance_type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Machine type, as in p3.2xlarge (default: detected)")
    ] = None,
    gpus: Annotated[int | None, typer.Option(min=0, help="Number of GPUs (default: detected)")] = None,
    zone: Annotated[str | None, typer.Option(metavar="NAME", help="Availability zone of the machine")] = None,
    spot: Annotated[bool, typer.Option("--spot", help="The machine is a spot instance")] = False,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Run jobs until Ctrl-C, or until the queues are empty.

    Tasks are imported from the current folder and from installed packages. The first Ctrl-C or SIGTERM lets running
    jobs end and releases those that do not end in time; the second releases all of them at once. Through a server
    (--server, with a token of the role worker), it runs tasks that need no store of
    their own.
    """
    queues = tuple(queue) if queue else None
    settings = _settings(store, objects=objects, queues=queues, slots=slots, lease_seconds=lease_seconds)
    refuse_memory(settings)
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    logging.getLogger("jobtable.worker").setLevel(logging.INFO)  # says that it waits for jobs before it exits
    if settings.server is None:
        wait_for_store(settings)
        _look_at_objects(settings)
    place = without_secret(settings.server or settings.store)
    slots_text = "1 slot" if settings.slots == 1 else f"{settings.slots} slots"
    say(f"Serving {', '.join(settings.queues)} with {slots_text} on {place}; stop with Ctrl-C.")
    jobs_worker = Worker(
        opener_of(settings),
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
    print_either(report, lambda: print_table([vars(report)]), as_json=as_json)


def _settings(store: str | None, **flags: Any) -> Settings:
    """Return the settings of a worker: `--server` wins, then any named store, then the server of the settings."""
    found = resolved(store=store, **flags)
    is_meant = found.sources["server"] == "--server" or found.sources["store"] == "default"
    server = found.settings.server if is_meant and not names_store(found) else None
    return found.settings.model_copy(update={"server": server})


def opener_of(settings: Settings) -> Callable[[], WorkVerbs]:
    """Return how the worker, and the process of each job, opens the job service."""
    if settings.server is not None:
        from jobtable.remote.work import open_work  # noqa: PLC0415 - loaded when it is used

        return partial(open_work, settings.server, settings.token)
    return partial(open_jobs, settings.store, settings.objects)


def _look_at_objects(settings: Settings) -> None:
    """Raise if the object store cannot be used: the worker would fail one job after the other."""
    with closing(open_objects(settings.objects or default_objects_url(settings.store))) as objects:
        try:
            any(objects.list("jobs"))
        except ObjectStoreUnavailable as error:
            say(f"The object store is unavailable for now: {error}")


def _drain_at_end_of_input(worker: Worker) -> None:
    """Stop the worker, as SIGTERM does, at the end of stdin."""
    # Not sys.stdin: holding its lock here at interpreter exit would be fatal.
    while os.read(_STDIN, 4096):
        pass
    worker.drain()


def _instance(instance_type: str | None, gpus: int | None, zone: str | None, *, is_spot: bool) -> InstanceInfo:
    """Describe the machine by the options, and by what can be detected."""
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
    """Prepare what has a queue that is served, and run its upkeep while the block runs."""
    served = [system for system, queues in declared("queues") if not set(queues).isdisjoint(settings.queues)]
    serves_workflows = not set(QUEUES).isdisjoint(settings.queues)
    if not (served or serves_workflows) or settings.server is not None:
        yield
        return
    with Services.open(settings.store, settings.objects) as services:
        for system in served:
            services.prepare(system)
        with kept_up(services, settings.queues):
            yield
