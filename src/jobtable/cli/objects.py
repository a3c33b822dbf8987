"""`jobtable objects`: list and download objects, and delete those that no record names."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from jobtable.app import Services
from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.opening import services_of
from jobtable.cli.options import (
    AsJson,
    Limit,
    ObjectsUrl,
    StoreUrl,
    chosen_settings,
    duration,
    file_to_write,
    on_services,
)
from jobtable.cli.output import bar, columns, print_either, print_fields, print_list
from jobtable.files import whole_file
from jobtable.objects import ListedObject, SweepReport, sweep
from jobtable.settings import without_secret

app = new_group()
_row = columns(ListedObject, "object=key bytes=size time=modified_at")

Prefix = Annotated[str, typer.Option("--prefix", metavar="KEY", help="Only objects under this key, as in jobs/ID")]


@app.command("list", example="jobtable objects list --prefix jobs/5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def list_objects(services: Services, prefix: Prefix = "", limit: Limit = 100, as_json: AsJson = False) -> None:
    """List objects, in no particular order."""
    found = services.objects.list(prefix.strip("/"))
    print_list(found, _row, as_json=as_json, empty="No objects match.", limit=limit)


@app.command(
    "get",
    example=(
        "jobtable jobs checkpoints 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11\n"
        "jobtable objects get jobs/5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11/checkpoints/step-9-77e4a10dccfa weights.pt"
    ),
)
@on_services
def get_object(
    services: Services,
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key of the object, as `jobs artifacts` shows it")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; an existing one is replaced at the end")],
) -> None:
    """Download an object, such as a checkpoint or an artifact."""
    with whole_file(file_to_write(file)) as made, services.objects.open(key) as stream:
        shutil.copyfileobj(stream, made)


@app.command("sweep", example="jobtable objects sweep --dry-run --grace 7d")
def sweep_objects(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing; show what would be deleted")] = False,
    grace: Annotated[
        timedelta,
        typer.Option(
            parser=duration,
            metavar="TIME",
            help="Keep younger objects, whose records may still be written: 90s, 15m, 24h or 7d",
        ),
    ] = timedelta(hours=24),
    prefix: Prefix = "",
    yes: Yes = False,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Delete orphans: objects that no record names, left by a crash."""
    settings = chosen_settings(store, objects)
    with services_of(settings, is_dry_run=dry_run) as services:
        if not dry_run:
            # Their settings are separate, so they may belong to two deployments.
            place, records = settings.objects or services.objects.bucket, without_secret(settings.store)
            confirm(f"Delete every object in {place} that no record in {records} names?", yes=yes)
        report = _swept(services, prefix.strip("/"), grace, dry_run=dry_run)
    counts = {
        "objects": report.objects,
        "orphans" if dry_run else "orphans deleted": report.orphans,
        "bytes": report.orphan_bytes,
        "unfinished deleted": None if dry_run else report.unfinished,
    }
    print_either(report, lambda: print_fields(counts), as_json=as_json)


def _swept(services: Services, prefix: str, grace: timedelta, *, dry_run: bool) -> SweepReport:
    with bar("Checking objects") as shown:

        def is_referenced(key: str) -> bool:
            shown.advance(1)
            return services.is_referenced(key)

        clock = services.store.clock
        return sweep(services.objects, is_referenced, prefix=prefix, grace=grace, dry_run=dry_run, clock=clock)
