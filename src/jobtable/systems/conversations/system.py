"""Conversations as a system: what the product finds by its entry point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobtable.system import Command, Listing, NavigationEntry, Owner, Service, System, current_path

if TYPE_CHECKING:
    from jobtable.jobs.stored.entities import Job

_HERE = "jobtable.systems.conversations"

SYSTEM = System(
    name="conversations",
    title="Conversations",
    order=30,
    extra="conversations",
    needs=("numpy", "sklearn", "threadpoolctl"),
    tables=(f"{_HERE}.entities:TABLES",),
    entities=(f"{_HERE}.entities",),
    patterns=(f"{_HERE}.service", f"{_HERE}.conversation_runs"),
    objects={"conversations": f"{_HERE}.conversation_runs:ConversationRuns"},
    services=(
        Service(f"{_HERE}.service:Conversations", f"{_HERE}.service:Conversations.of"),
        Service(f"{_HERE}.conversation_runs:ConversationRuns", remote=f"{_HERE}.remote:ServerRuns"),
    ),
    queues=("conversations",),
    tasks=(f"{_HERE}.stages",),
    moved={"jobtable.conversations.": f"{_HERE}."},
    api=(f"{_HERE}.web.api", f"{_HERE}.web.run_api"),
    pages=(f"{_HERE}.web.pages",),
    web=f"{_HERE}.web",
    navigation=(NavigationEntry("/conversations", "Conversations", "conversations"),),
    icons={"conversations": '<path d="M4 5h12v9H9l-4 3v-3H4z"/><path d="M19 9h1.5v8.5H19v3l-3.5-3H11"/>'},
    owner=f"{_HERE}.system:owner_of",
    thing="conversation",
    job_page="/conversations/{id}",
    delete_command="conversations delete {id}",
    commands={"conversations": Command(f"{_HERE}.cli", "Analyse Polis exports, and compare the runs.")},
    listings={
        "conversation": Listing("conversations runs CONVERSATION"),
        "run": Listing("conversations runs CONVERSATION"),
    },
    demo=f"{_HERE}.demo:PART",
)


def owner_of(job: Job, parent: Job | None) -> Owner | None:
    """Return the run of an analysis to which a job belongs."""
    task = job.definition.task
    if not (job.job_type == "conversation" if task is None else current_path(task).startswith(f"{_HERE}.")):
        return None
    conversation_id = (parent or job).job_config.get("conversation_id")
    return Owner(SYSTEM.name, job.root_job_id or job.job_id, conversation_id or "")
