"""Sweeps as a system: what the product finds by its entry point."""

from jobtable.system import Command, Listing, NavigationEntry, Service, System

_HERE = "jobtable.systems.sweeps"

SYSTEM = System(
    name="sweeps",
    title="Sweeps",
    order=10,
    extra="sweeps",
    needs=("optuna", "cmaes", "scipy", "yaml"),
    entities=(f"{_HERE}.entities",),
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
    job_page="/sweeps/{id}",
    commands={
        "sweeps": Command(
            f"{_HERE}.cli.commands", "Sweeps: try many parameters, and find the best ones.", alias="sweep"
        )
    },
    listings={"sweep": Listing("sweeps list", "sweeps")},
    demo=f"{_HERE}.demo.part:PART",
)
