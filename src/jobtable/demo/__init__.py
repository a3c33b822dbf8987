"""A small demonstration that really runs: a sweep, a journey, a conversation, an album execution, receipts."""

NEEDED_BY_ITS_JOBS = (
    "jobtable.systems.receipts.demo.reading",
    "jobtable.systems.sweeps.demo.training",
    "jobtable.systems.conversations.stages",
    "jobtable.systems.sweeps.ask_and_tell",
    "jobtable.systems.sweeps.planning",
    "jobtable.systems.sweeps.running",
    "jobtable.systems.journeys.runner",
    "jobtable.systems.albums.runner",
)
"""The modules of its tasks: a worker that imports them once starts each job fast."""
