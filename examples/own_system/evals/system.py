"""The declaration that Jobtable finds by the entry point."""

from jobtable.system import Command, NavigationEntry, System

SYSTEM = System(
    name="evals",
    title="Evaluations",
    entities=("evals.entities",),
    tables=("evals.entities:evals",),
    queues=("evals",),
    tasks=("evals.tasks",),
    pages=("evals.web.pages",),
    web="evals.web",
    navigation=(NavigationEntry("/evals", "Evaluations", "evals"),),
    icons={"evals": '<path d="M4 12l5 5L20 6"/>'},
    commands={"evals": Command("evals.cli", "Evaluations: score prompts, and compare them.")},
)
