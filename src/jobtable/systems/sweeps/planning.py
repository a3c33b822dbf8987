"""The task of planning jobs."""

from __future__ import annotations

from jobtable.errors import JobStateError
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import StopTask, resolve, task
from jobtable.systems.sweeps.desk import SweepDesk


@task(inline=True)
def plan_generation(job: JobContext, sweep_id: str, generation: int) -> dict[str, int]:
    """Make the trials of a generation, and the job that plans the next. Which one, the desk reads of the job itself.

    Its result says of how many trials in all it knew at least: if there are more by now, it is to begin anew. For a
    sweep that has ended it stops, and is resumed with that.
    """
    desk = job.jobs.desk(SweepDesk, job.lease)
    insist = job.jobs.recording.insist
    sweep = insist(desk.get_definition, "its sweep")
    swept = resolve(sweep.task)
    swept.check_names((*sweep.params, *sweep.space.root))  # else every single trial would fail of it
    try:
        trials = insist(lambda: desk.plan(is_inline=swept.is_inline), "the trials of its sweep")
    except JobStateError as error:
        raise StopTask(str(error)) from error
    return {"trials": trials, "total": sweep.trial_count()}
