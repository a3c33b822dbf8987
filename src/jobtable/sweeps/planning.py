"""The task of planning jobs."""

from __future__ import annotations

from jobtable.jobs.context import JobContext
from jobtable.jobs.tasks import resolve, task
from jobtable.sweeps.desk import SweepDesk


@task(inline=True)
def plan_generation(job: JobContext, sweep_id: str, generation: int) -> dict[str, int]:
    """Make the trials of a generation, and the job that plans the next. Which one, the desk reads of the job itself."""
    desk = job.jobs.desk(SweepDesk, job.lease)
    return {"trials": desk.plan(is_inline=resolve(desk.get_definition().task).is_inline)}
