"""A small demonstration that really runs: a sweep, a journey, a conversation, an album execution, receipts."""

NEEDED_BY_ITS_JOBS = (
    "jobtable.demo.receipts",
    "jobtable.demo.training",
    "jobtable.conversations.stages",
    "jobtable.sweeps.ask_and_tell",
    "jobtable.sweeps.planning",
    "jobtable.sweeps.running",
    "jobtable.journeys.runner",
    "jobtable.albums.runner",
)
"""The modules of its tasks: a worker that imports them once starts each job fast."""
