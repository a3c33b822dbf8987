"""Journeys as files: `jobtable journeys export`, `import` and `delete`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.options import AsJson, ObjectsUrl, StoreUrl, User, file_to_write, on_services, open_services
from jobtable.cli.output import print_either, say
from jobtable.objects import object_key
from jobtable.settings import Settings
from jobtable.systems.journeys.archives.check import MOST_BYTES
from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.archives.restore import Existing
from jobtable.systems.journeys.cli.details import JourneyId

app = new_group()


@app.command(example="jobtable journeys export JRN-1 backup.zip")
def export(
    journey_id: JourneyId,
    path: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The file to write. Without it: the journey's id, .zip.")
    ] = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write a journey and its jobs, with every item and object, to one file with checksums."""
    target = path or Path(object_key(f"{journey_id}.zip"))  # an id may have slashes; the file stands in this folder
    file = file_to_write(target)
    with open_services(store, objects) as services:
        made = services.get(JourneyBackups).get_journey_complete(journey_id, file)
    counts = {"file": str(target), "journey": journey_id, "items": made.items, "objects": made.objects}
    written = f"Wrote {target}: {made.items} items and {made.objects} objects."
    print_either(counts | {"bytes": target.stat().st_size}, lambda: say(written), as_json=as_json)


@app.command("import", example="jobtable journeys import backup.zip --existing merge")
@on_services(creates=True)
def import_journey(
    backups: JourneyBackups,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="File that `journeys export` wrote")],
    existing: Annotated[
        Existing,
        typer.Option(
            help="Where the journey is there: refuse; merge, which adds what is missing; replace, which makes it the "
            "file's."
        ),
    ] = Existing.REFUSE,
    most_bytes: Annotated[int, typer.Option(min=1, help="Reject a file whose unpacked size is larger")] = MOST_BYTES,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Import a journey after its whole file is checked; if interrupted, run it again."""
    if existing is Existing.REPLACE:
        confirm(f"Delete everything of the stored journey that {path} does not contain?", yes=yes)
    done = backups.import_journey_complete(path, existing, most_bytes=most_bytes)
    removed = f", removed {done.removed_items} and {done.removed_objects}" if existing is Existing.REPLACE else ""
    stored = f"Journey {done.journey_id}: stored {done.items} items and {done.objects} objects{removed}."
    print_either(done, lambda: say(stored), as_json=as_json)


@app.command(example="jobtable journeys delete JRN-1 --yes")
@on_services(user=User)
def delete(
    backups: JourneyBackups,
    settings: Settings,
    journey_id: JourneyId,
    stop: Annotated[
        bool, typer.Option("--stop", help="Cancel the journey if it is active, and wait for its worker")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete a journey and its jobs, with every item and object; if interrupted, run it again."""
    confirm(f"Delete journey {journey_id} with its executions, jobs, logs, reports and files?", yes=yes)
    count = backups.delete_journey(journey_id, stop=stop, by=settings.user)
    say(f"Deleted journey {journey_id}: {count} items, and its objects.")
