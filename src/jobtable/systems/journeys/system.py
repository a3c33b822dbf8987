"""Journeys as a system: what the product finds by its entry point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobtable.system import Command, Listing, NavigationEntry, Owner, Service, System, current_path

if TYPE_CHECKING:
    from jobtable.jobs.stored.entities import Job

_HERE = "jobtable.systems.journeys"

SYSTEM = System(
    name="journeys",
    title="Journeys",
    order=20,
    tables=(f"{_HERE}.entities:journeys",),
    entities=(f"{_HERE}.entities",),
    patterns=(f"{_HERE}.service",),
    objects={"journeys": f"{_HERE}.execution_records:ExecutionRecords"},
    services=(
        Service(f"{_HERE}.service:Journeys", f"{_HERE}.service:Journeys.of", f"{_HERE}.remote:ServerJourneys"),
        Service(f"{_HERE}.runner:JourneyRunner", remote=f"{_HERE}.remote:ServerRunner"),
        Service(f"{_HERE}.execution_records:ExecutionRecords", f"{_HERE}.execution_records:ExecutionRecords.of"),
        Service(
            f"{_HERE}.archives.journey_backups:JourneyBackups",
            f"{_HERE}.archives.journey_backups:JourneyBackups.of",
            f"{_HERE}.remote:ServerBackups",
        ),
    ),
    queues=("journeys",),
    tasks=(f"{_HERE}.runner",),
    moved={"jobtable.journeys.": f"{_HERE}."},
    api=(f"{_HERE}.web.api", f"{_HERE}.web.run_api"),
    pages=(f"{_HERE}.web.pages",),
    web=f"{_HERE}.web",
    navigation=(NavigationEntry("/journeys", "Journeys", "journeys"),),
    icons={
        "journeys": '<circle cx="5" cy="6" r="2"/><circle cx="19" cy="18" r="2"/>'
        '<path d="M7 6h7a4 4 0 0 1 0 8h-4a4 4 0 0 0 0 4h7"/>'
    },
    live=f"{_HERE}.web.pages:TOPICS",
    owner=f"{_HERE}.system:owner_of",
    thing="journey",
    job_page="/journeys/{id}",
    delete_command="journeys delete {id}",
    commands={"journeys": Command(f"{_HERE}.cli.commands", "Create, run, show, export and import journeys.")},
    listings={"journey": Listing("journeys list", "journeys")},
    demo=f"{_HERE}.demo:PART",
)


def owner_of(job: Job, parent: Job | None) -> Owner | None:
    """Return the journey of a job that runs or ends one of its stages."""
    task = job.definition.task
    if not (
        job.job_type in {"journey_stage", "journey_end"} if task is None else current_path(task).startswith(f"{_HERE}.")
    ):
        return None
    journey_id = job.definition.params.get("journey_id")
    return Owner(SYSTEM.name, journey_id or job.root_job_id or job.job_id, journey_id or "")
