"""What is stored of sweeps, beside their jobs."""

from __future__ import annotations

from typing import Literal

from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Count
from jobtable.model import Attr, Entity, Key, Timestamp


class SweepEntry(Entity, table=main, type="SWEEP"):
    """A sweep in the list of all sweeps. The parent job with the same id is the sweep itself."""

    key = Key("JOB#{job_id}", "SWEEP")
    by_creation = Key("SWEEP", "CREATED#{created_at}", index="GSI1")

    job_id: str
    name: str
    created_at: Timestamp
    created_by: str
    objective: str
    direction: Literal["minimize", "maximize"]
    trial_count: Attr[Count]
