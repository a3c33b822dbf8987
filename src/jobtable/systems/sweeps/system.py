"""Sweeps as a system: what the product finds by its entry point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobtable.system import Command, Listing, NavigationEntry, Owner, Service, System, current_path

if TYPE_CHECKING:
    from jobtable.jobs.stored.entities import Job

_HERE = "jobtable.systems.sweeps"

SYSTEM = System(
    name="sweeps",
    title="Sweeps",
    order=10,
    extra="sweeps",
    needs=("optuna", "cmaes", "scipy", "yaml"),
    entities=(f"{_HERE}.entities",),
    patterns=(f"{_HERE}.sweep_patterns",),
    services=(Service(f"{_HERE}.service:Sweeps", remote=f"{_HERE}.remote:ServerSweeps"),),
    tasks=(f"{_HERE}.running",),
    desks={f"{_HERE}.desk:SweepDesk": f"{_HERE}.remote:ServerSweepDesk"},
    moved={
        "jobtable.sweeps.planning:": f"{_HERE}.running:",
        f"{_HERE}.planning:": f"{_HERE}.running:",
        "jobtable.sweeps.": f"{_HERE}.",
    },
    group_progress=f"{_HERE}.service:count_trials",
    api=(f"{_HERE}.web.api", f"{_HERE}.web.trial_api"),
    pages=(f"{_HERE}.web.pages",),
    web=f"{_HERE}.web",
    navigation=(NavigationEntry("/sweeps", "Sweeps", "sweeps"),),
    icons={
        "sweeps": '<path d="M4 19V5M4 19h16"/><circle cx="9" cy="14" r="1.4"/><circle cx="13" cy="8" r="1.4"/>'
        '<circle cx="18" cy="11" r="1.4"/>'
    },
    owner=f"{_HERE}.system:owner_of",
    roll_ups={"sweep": f"{_HERE}.trials:roll_up_of"},
    thing="sweep",
    job_page="/sweeps/{id}",
    commands={"sweeps": Command(f"{_HERE}.cli.commands", "Run, resume, extend, show and stop sweeps.", alias="sweep")},
    listings={"sweep": Listing("sweeps list", "sweeps")},
    demo=f"{_HERE}.demo.part:PART",
)


def owner_of(job: Job, parent: Job | None) -> Owner | None:
    """Return the sweep of a job that groups, plans or runs its trials."""
    task = job.definition.task
    if not (job.job_type in {"sweep", "planning"} if task is None else current_path(task).startswith(f"{_HERE}.")):
        return None
    is_part = job.definition.is_group or job.root_job_id is not None
    return Owner(SYSTEM.name, job.root_job_id or job.job_id, None if is_part else "")
