"""The system of album workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobtable.system import Command, Listing, NavigationEntry, Owner, Service, System, current_path

if TYPE_CHECKING:
    from jobtable.jobs.stored.entities import Job

_HERE = "jobtable.systems.albums"

SYSTEM = System(
    name="albums",
    title="Executions",
    order=40,
    tables=(f"{_HERE}.entities:workflows",),
    entities=(f"{_HERE}.entities",),
    patterns=(f"{_HERE}.service",),
    objects={"uploads": f"{_HERE}.executions:Executions"},
    services=(
        Service(f"{_HERE}.service:AlbumWorkflows", f"{_HERE}.service:AlbumWorkflows.of"),
        Service(f"{_HERE}.executions:Executions", remote=f"{_HERE}.remote:ServerExecutions"),
        Service(f"{_HERE}.answers:Answers", remote=f"{_HERE}.remote:ServerAnswers"),
        Service(f"{_HERE}.watch:Watch", remote=f"{_HERE}.remote:ServerWatch"),
    ),
    queues=("albums",),
    tasks=(f"{_HERE}.runner",),
    upkeep=f"{_HERE}.watch:Watch",
    moved={"jobtable.albums.": f"{_HERE}."},
    api=(f"{_HERE}.web.api", f"{_HERE}.web.run_api"),
    pages=(f"{_HERE}.web.pages",),
    web=f"{_HERE}.web",
    navigation=(NavigationEntry("/executions", "Executions", "executions"),),
    icons={"executions": '<circle cx="12" cy="12" r="8"/><circle cx="12" cy="12" r="2"/><path d="M12 4v3"/>'},
    live=f"{_HERE}.web.pages:TOPICS",
    attention=f"{_HERE}.web.pages:waiting_tasks",
    owner=f"{_HERE}.system:owner_of",
    thing="execution",
    job_page="/executions/{id}",
    delete_command="executions delete {id}",
    commands={
        "executions": Command(f"{_HERE}.cli.executions", "Start, list, show, retry and delete album executions."),
        "tasks": Command(f"{_HERE}.cli.tasks", "List, show and complete the tasks of people."),
    },
    listings={
        "execution": Listing("executions list", "executions"),
        "task": Listing("tasks list", "tasks"),
        "validation task": Listing("tasks list", "tasks"),
    },
    demo=f"{_HERE}.demo:PART",
)


def owner_of(job: Job, parent: Job | None) -> Owner | None:
    """Return the execution whose steps a job runs."""
    task = job.definition.task
    if not (job.job_type == "album-execution" if task is None else current_path(task).startswith(f"{_HERE}.")):
        return None
    return Owner(SYSTEM.name, job.root_job_id or job.job_id, job.definition.params.get("execution_id") or "")
