"""The system of album workflows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobtable.system import Command, Listing, NavigationEntry, Owner, Service, System

if TYPE_CHECKING:
    from jobtable.jobs.stored.entities import Job

_HERE = "jobtable.systems.albums"
_FORMER_TASK = "albums.runner:run_steps"
_ATTEMPT = re.compile(r"(?<=[0-9a-f]{12})-\d{1,4}$")
"""After the id of an execution, the number of a retry."""
_EXECUTION_ID = re.compile(r'"execution_id": ?"([^"]+)"')

SYSTEM = System(
    name="albums",
    title="Executions",
    order=40,
    tables=(f"{_HERE}.entities:workflows",),
    entities=(f"{_HERE}.entities",),
    patterns=(f"{_HERE}.service",),
    objects={"uploads": f"{_HERE}.album_executions:Executions"},
    services=(
        Service(f"{_HERE}.service:AlbumWorkflows", f"{_HERE}.service:AlbumWorkflows.of"),
        Service(f"{_HERE}.album_executions:Executions", remote=f"{_HERE}.remote:ServerExecutions"),
        Service(f"{_HERE}.answers:Answers", remote=f"{_HERE}.remote:ServerAnswers"),
        Service(f"{_HERE}.style_comparison:Comparisons", remote=f"{_HERE}.remote:ServerComparisons"),
        Service(f"{_HERE}.watch:Watch", remote=f"{_HERE}.remote:ServerWatch"),
    ),
    extra="workflows",
    needs=("aws_durable_execution_sdk_python", "jsonata"),
    queues=("functions",),
    tasks=(f"{_HERE}.album_functions", f"{_HERE}.albums_durable"),
    upkeep=f"{_HERE}.watch:Watch",
    api=(f"{_HERE}.web.api", f"{_HERE}.web.run_api"),
    pages=(f"{_HERE}.web.pages",),
    web=f"{_HERE}.web",
    navigation=(NavigationEntry("/executions", "Executions", "executions"),),
    icons={"executions": '<circle cx="12" cy="12" r="8"/><circle cx="12" cy="12" r="2"/><path d="M12 4v3"/>'},
    live=f"{_HERE}.web.pages:TOPICS",
    inbox=f"{_HERE}.inbox_source:waiting_tasks",
    owner=f"{_HERE}.system:owner_of",
    thing="execution",
    job_page="/executions/{id}",
    delete_command="executions delete {id}",
    commands={
        "executions": Command(
            f"{_HERE}.cli.album_executions", "Start, compare, list, show, retry and delete executions."
        ),
        "tasks": Command(f"{_HERE}.cli.human_tasks", "List, show and complete the tasks of people."),
    },
    listings={
        "execution": Listing("executions list", "executions"),
        "task": Listing("tasks list", "tasks"),
        "validation task": Listing("tasks list", "tasks"),
    },
    demo=f"{_HERE}.demo:PART",
)


def owner_of(job: Job, parent: Job | None) -> Owner | None:
    """Return the execution whose workflow a job runs; earlier versions ran it by a task of their own."""
    params = job.definition.params
    if (job.definition.task or "").endswith(_FORMER_TASK):
        return Owner(SYSTEM.name, job.root_job_id or job.job_id, str(params.get("execution_id") or ""))
    if params.get("machine") == "albums" or params.get("function") == "albums-durable":
        run = str(params.get("name") or "")
        execution_id = run if "machine" in params else _ATTEMPT.sub("", run)
        return Owner(SYSTEM.name, execution_id, execution_id)
    if str(params.get("function") or "").startswith("albums-"):
        found = _EXECUTION_ID.search(str(params.get("payload") or ""))
        return Owner(SYSTEM.name, found[1], found[1]) if found else None
    return None
