"""Journeys as a system: what the product finds by its entry point."""

from jobtable.system import Command, Listing, NavigationEntry, Service, System

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
    job_page="/journeys/{id}",
    delete_command="journeys delete {id}",
    commands={"journeys": Command(f"{_HERE}.cli.commands", "Journeys: create, run, export and import them.")},
    listings={"journey": Listing("journeys list", "journeys")},
    demo=f"{_HERE}.demo:PART",
)
