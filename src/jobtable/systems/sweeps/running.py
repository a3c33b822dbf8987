"""The tasks of a sweep: a trial runs the sweep's task, and stops it if it is not worth its time; planning makes trials.

Stored jobs name the tasks here by their path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from jobtable.errors import JobStateError, JobtableError, TaskError
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.report.recording import stored_number
from jobtable.jobs.tasks import FailTask, StopTask, resolve, task
from jobtable.jobs.verbs import WorkVerbs
from jobtable.systems.sweeps.desk import EarlierRuns, SweepDesk
from jobtable.systems.sweeps.stoppers import Asha, Median, is_worse
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.trials import TrialConfig, config_of

T = TypeVar("T")

_DEFINITIONS: WeakKeyDictionary[WorkVerbs, dict[tuple[str, datetime], Sweep]] = WeakKeyDictionary()
"""The definitions of sweeps whose trials this process ran; what a trial needs of one never changes.

The key has the creation time, because a later sweep may have the id of a deleted one.
"""
_MOST_KEPT = 100
"""A worker with more definitions than these forgets them all."""
_NOTHING = EarlierRuns(at_rungs={}, stopped_at=None, last_report=None)


def _definition(jobs: WorkVerbs, config: TrialConfig, desk: SweepDesk) -> Sweep:
    known = _DEFINITIONS.setdefault(jobs, {})
    sweep = (config.sweep_id, config.sweep_created_at)
    definition = known.get(sweep)
    if definition is None:
        definition = jobs.recording.insist(desk.get_definition, "read its sweep")
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[sweep] = definition
    return definition


@task
def run_trial(job: JobContext, **params: Any) -> dict[str, Any]:
    """Run a trial in a process of its own."""
    return Trial(job).run(params)


@task(inline=True)
def run_inline_trial(job: JobContext, **params: Any) -> dict[str, Any]:
    """Run a trial in the worker's own process."""
    return Trial(job).run(params)


class Trial:
    """One run of one trial; it sees every metric that the task reports, and may stop the task there."""

    def __init__(self, job: JobContext) -> None:
        self._job = job
        self._config = config_of(job.lease.job)
        self._desk = job.work.desk(SweepDesk, job.lease)
        self._sweep = _definition(job.work, self._config, self._desk)
        self._earlier = _NOTHING if job.epoch == 1 else self._insist(self._desk.find_earlier_runs)
        self._at_rungs = dict(self._earlier.at_rungs)
        self._last_value = self._earlier.last_report
        self._last_epoch: int | None = None
        self._is_stopped = False

    def run(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Run the task; return its result with the objective. StopTask if a stopper ends it."""
        if (epoch := self._earlier.stopped_at) is not None:  # a stopper had ended it, and then its worker died
            raise StopTask(f"stopped at epoch {epoch}, before its worker died", {"epoch": epoch})
        self._job.on_metric = self._take
        own = self._sweep.space.restored(params)
        try:
            returned = resolve(self._sweep.task).call(self._job, {**self._sweep.params, **own})
        except StopTask:
            self._keep_stop()
            raise
        result = dict(returned) if isinstance(returned, Mapping) else {}
        if self._job.knows_of_stop:
            return result  # it ended on request, so this is not its final value
        value = self._objective(returned)
        self._adapt()
        return {**result, self._sweep.objective: value}

    def _insist(self, call: Callable[[], T]) -> T:
        """Ask the desk until it answers; every call may be repeated."""
        return self._job.work.recording.insist(call, "ask its sweep")

    def _take(self, name: str, value: float, step: int | None, epoch: int | None) -> None:
        """Take a report of the objective; at a rung, compare it."""
        if name != self._sweep.objective:
            return
        at = step if epoch is None else epoch
        self._last_value, self._last_epoch = value, at
        stopper = self._sweep.stopper
        if stopper is None or at is None:
            return
        rung = stopper.rung_at(at)
        if rung is not None and rung not in self._at_rungs:
            self._judge(stopper, rung, value, at)

    def _judge(self, stopper: Asha | Median, rung: int, reported: float, epoch: int) -> None:
        objective, direction = self._sweep.objective, self._sweep.direction
        value = stored_number(reported)
        if value is None:
            raise FailTask(f"{objective} is {reported} at epoch {epoch}, which cannot be compared")
        cutoff = self._cutoff(stopper, rung)
        self._at_rungs[rung] = value
        judged = stopper.judged([self._at_rungs[each] for each in sorted(self._at_rungs)], direction)
        self._is_stopped = cutoff is not None and is_worse(judged, cutoff, direction)
        self._insist(lambda: self._desk.keep_rung(rung, value, epoch=epoch, is_stopped=self._is_stopped))
        if self._is_stopped:
            message = f"{objective} is {judged:g} at epoch {epoch}; {cutoff:g} is needed to continue"
            raise StopTask(message, {objective: value, "epoch": epoch})

    def _keep_stop(self) -> None:
        """Record that the task stopped itself, rather than a stopper or a person, so that it is not resumed."""
        value = None if self._last_value is None else stored_number(self._last_value)
        if value is not None and not self._is_stopped and not self._job.knows_of_stop:
            self._insist(lambda: self._desk.keep_stop(value, epoch=self._last_epoch))

    def _cutoff(self, stopper: Asha | Median, rung: int) -> float | None:
        if stopper.peers == "earlier":
            return self._config.cutoffs.get(rung)
        return stopper.cutoff(self._insist(lambda: self._desk.list_others_at(rung)), self._sweep.direction)

    def _objective(self, returned: Any) -> float:
        """Return the objective that the task returned, or else reported last."""
        given = returned.get(self._sweep.objective) if isinstance(returned, Mapping) else returned
        if given is None:
            given = self._last_value
        if given is None:
            raise TaskError(
                f"{self._sweep.task} neither returned nor reported {self._sweep.objective}",
                hint=f"return the number or a dict with it, or call job.metric({self._sweep.objective!r}, ...)",
            )
        try:
            value = stored_number(float(given))
        except (TypeError, ValueError, OverflowError) as error:
            message = f"{self._sweep.task} returned {given!r:.100} as {self._sweep.objective}, which is not a number"
            raise TaskError(message) from error
        if value is None:
            raise TaskError(f"{self._sweep.objective} is {given}, which cannot be compared")
        return value

    def _adapt(self) -> None:
        every = self._sweep.adapt_every
        if every is None or (self._config.number + 1) % every != 0:
            return
        try:
            self._desk.adapt()
        except JobtableError as error:  # it concerns only the order of others: this trial has its value
            self._job.warning(f"could not reorder the waiting trials: {error}")


@task(inline=True)
def plan_generation(job: JobContext, sweep_id: str, generation: int) -> dict[str, int]:
    """Make the trials of a generation and the next planning job.

    The result has the total number of trials that it knew of: if there are more by then, the job restarts. For an ended
    sweep it stops, and is resumed with it.
    """
    desk = job.work.desk(SweepDesk, job.lease)
    insist = job.work.recording.insist
    sweep = insist(desk.get_definition, "read its sweep")
    swept = resolve(sweep.task)
    swept.check_names((*sweep.params, *sweep.space.root))  # otherwise every single trial would fail
    try:
        trials = insist(lambda: desk.plan(is_inline=swept.is_inline), "plan the trials of its sweep")
    except JobStateError as error:
        raise StopTask(str(error)) from error
    return {"trials": trials, "total": sweep.trial_count()}
