"""`jobtable workers`: list and show workers."""

from __future__ import annotations

from itertools import chain
from typing import Annotated

import typer

from jobtable.app import Services
from jobtable.cli.framework import MOST_LINES, new_group
from jobtable.cli.options import AsJson, Limit, on_services
from jobtable.cli.output import columns, first_of, print_fields, print_json, print_list, print_part
from jobtable.jobs.stored.entities import Instance, InstanceJob
from jobtable.jobs.stored.field_types import InstanceStatus

app = new_group()
_held_row = columns(InstanceJob, "job=job_id status since=assigned_at")
_row = columns(
    Instance,
    "worker=instance_id type=instance_type status health=health_status"
    " queues slots GPUs=gpu_count spot=is_spot since=launched_at",
)


@app.command("list", example="jobtable workers list --all")
@on_services
def list_workers(
    services: Services,
    every: Annotated[bool, typer.Option("--all", help="Include workers that have ended")] = False,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List running workers."""
    statuses = list(InstanceStatus) if every else [InstanceStatus.RUNNING]
    found = chain.from_iterable(map(services.jobs.queries.list_instances_by_status, statuses))
    empty = "No worker is running; start one with `jobtable worker`."
    print_list(found, _row, as_json=as_json, empty=empty, limit=limit)


@app.command(example="jobtable workers show gpu-box-4711-0f3c9a1b")
@on_services
def show(
    services: Services,
    instance_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the worker")],
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=MOST_LINES, help="Maximum number of its jobs to show")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show a worker and its jobs."""
    instance = services.store.get(Instance.key(instance_id=instance_id))
    with first_of(services.jobs.queries.list_jobs_of_instance(instance_id), limit) as held:
        if as_json:
            print_json({"worker": instance, "jobs": held})
            return
        print_fields({**_row(instance), "address": instance.ip_address, "zone": instance.availability_zone})
        print_part("Jobs", [_held_row(each) for each in held])
