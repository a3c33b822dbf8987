"""What people do with jobs: cancel, stop, seal, retry and prioritise them, alone or with their trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import chain
from typing import Literal, NamedTuple

from jobtable.errors import ErrorReason, JobStateError, NotFoundError
from jobtable.jobs.dependencies.edges import condition_of
from jobtable.jobs.lifecycle.beginnings import Beginnings
from jobtable.jobs.lifecycle.leases import has_lease
from jobtable.jobs.lifecycle.transitions import Transition, length_of
from jobtable.jobs.stored.entities import Job, JobDependency, QueueJob
from jobtable.jobs.stored.field_types import Status, rank_of
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition
from jobtable.model import Condition, Update, unchanged
from jobtable.store import TryAgain
from jobtable.store.transactions import MOST_ACTIONS, grouped


@dataclass(frozen=True)
class _Ending:
    """How jobs are to end."""

    status: Status
    message: str
    by: str
    tree: bool

    def closing(self, job: Job) -> list[Update]:
        """Return what closes the tree of a job to more jobs, if it is to end and is not closed already."""
        if not self.tree or job.tree_status in (self.status, Status.CANCELLED):
            return []
        return [Job.tree_status.set(self.status)]


class _Ended(NamedTuple):
    """A job that has ended or was asked to."""

    job: Job
    is_unnotified: bool = False
    """Whether some of its dependents are not notified yet."""
    is_leaf: bool = False
    """Whether it has no children and can get none."""


class Control(Beginnings):
    """The verbs of people on jobs; see `JobVerbs`."""

    # --- ending -----------------------------------------------------------------------------------------------------
    #
    # A tree is ended from its root. Each job is closed before its children are listed: from then on it gets no more, so
    # all are found, and the tree stays ended until jobs of it are restarted. An ended job takes children only while its
    # parent does, so it is closed only if it has children.

    def cancel(self, job_id: str, *, by: str = "local", message: str | None = None, tree: bool = True) -> Job:
        return self._end_asked(job_id, _Ending(Status.CANCELLED, message or f"cancelled by {by}", by, tree))

    def stop(self, job_id: str, *, by: str = "local", message: str | None = None, tree: bool = True) -> Job:
        return self._end_asked(job_id, _Ending(Status.STOPPED, message or f"stopped by {by}", by, tree))

    def _end_asked(self, job_id: str, ending: _Ending) -> Job:
        """End a job, and its tree if that is asked for, before its dependents are notified."""
        ended = self._end(self.queries.get_job(job_id), ending, is_asked_for=True)
        if ended is None:
            raise NotFoundError(f"job {job_id} was deleted meanwhile")
        levels = [(ended, self._end_children(ended, ending))]
        while levels:
            above, children = levels[-1]
            below = next(children, None)
            if below is not None:
                levels.append((below, self._end_children(below, ending)))
                continue
            # Its children first: those that wait for it would be CANCELLED because of it.
            if above.is_unnotified:
                self._endings.settle(above.job)
            levels.pop()
        return ended.job

    def _end_children(self, above: _Ended, ending: _Ending) -> Iterator[_Ended]:
        """End the children of a job, up to a hundred before any is notified, as they may wait for each other."""
        if above.is_leaf or not ending.tree:
            return
        for some in grouped(self.list_children_now(above.job), MOST_ACTIONS, length_of):
            yield from filter(None, [self._end(child, ending) for child in some])

    def _end(self, job: Job, ending: _Ending, *, is_asked_for: bool = False) -> _Ended | None:
        """End a job at once or by its worker, and close it; None if it was deleted."""

        def end(found: Job | None) -> _Ended | None:
            if found is None:
                return None
            if is_asked_for:
                self._refuse_ended_otherwise(found, ending)
            if found.is_final:
                if not is_asked_for and next(self.list_children_now(found), None) is None:
                    return _Ended(found, is_leaf=True)
                return _Ended(self._close(found, ending))
            if has_lease(found):
                return _Ended(self._ask(found, ending))
            closing = ending.closing(found)
            ended = self._endings.end_waiting(found, ending.status, ending.message, *closing, by=ending.by)
            return None if ended is None else _Ended(ended, is_unnotified=ended.dependents > 0)

        verb = "cancel" if ending.status is Status.CANCELLED else "stop"
        return self.store.retrying(self._finder(job.job_id), end, f"{verb} job {job.job_id}", first=job)

    def _finder(self, job_id: str) -> Callable[[], Job | None]:
        return lambda: self.store.find(Job.key(job_id=job_id))

    def _refuse_ended_otherwise(self, job: Job, ending: _Ending) -> None:
        is_so = job.status is ending.status or (ending.tree and job.tree_status is ending.status)
        if not job.is_final or is_so:
            return
        if not ending.tree or all(each.is_final for each in self.list_below(job)):
            raise JobStateError(
                f"job {job.job_id} is already {job.status} and cannot be {ending.status}", reason=ErrorReason.JOB_ENDED
            )

    def _ask(self, job: Job, ending: _Ending) -> Job:
        """Leave a request that the worker reads with its next heartbeat."""
        is_cancelled = ending.status is Status.CANCELLED or job.requested == "cancel"
        requested: Literal["cancel", "stop"] = "cancel" if is_cancelled else "stop"
        same_run = (Job.lease_epoch == job.lease_epoch) & (Job.status == Status.RUNNING) & Job.lease_seconds.exists()
        return self._update(job, Job.requested.set(requested), *ending.closing(job), when=same_run)

    def _close(self, job: Job, ending: _Ending) -> Job:
        """Close an ended job to more children."""
        closing = ending.closing(job)
        return self._update(job, *closing, when=unchanged(job, Job.status, Job.changed_at)) if closing else job

    def _update(self, job: Job, *updates: Update, when: Condition) -> Job:
        try:
            return self.store.update(job, *updates, when=when)
        except NotFoundError as error:
            raise TryAgain from error

    def seal(self, job_id: str) -> Job:

        def seal(job: Job) -> None:
            if job.is_awaiting or job.is_final:
                return
            if not job.definition.is_group or job.status is not Status.RUNNING:
                raise JobStateError(f"job {job_id} is not an open group and cannot be sealed")
            transition = Transition(self.store, self.clock)
            at = transition.time_for(job)
            transition.change(job, Status.RUNNING, at, Job.is_awaiting.set(True), message="waits for its children")
            transition.commit()

        self.store.retrying(lambda: self.queries.get_job(job_id), seal, f"seal group {job_id}")
        return self._endings.go_on(job_id) or self.queries.get_job(job_id)

    # --- restarting -------------------------------------------------------------------------------------------------

    def retry(self, job_id: str, *, by: str = "local", tree: bool = False) -> Job:
        job = self.queries.get_job(job_id)
        chosen: dict[str, bool] = {}
        closed: list[str] = []
        for each in chain([job], self.list_below(job) if tree else ()):  # only ids are kept: there may be many
            if _can_be_retried(each):
                chosen[each.job_id] = each.is_gated
            elif tree and each.status is Status.COMPLETED and each.tree_status is not None:
                closed.append(each.job_id)
        if not chosen and not closed and not (tree and job.status is Status.RUNNING):
            raise JobStateError(
                f"job {job_id} is {job.status} and cannot be retried",
                reason=ErrorReason.JOB_ENDED if job.is_final else ErrorReason.JOB_ACTIVE,
            )
        for each_id in closed:  # it stays COMPLETED, but restarted jobs may add children to it
            self.open_for_system(each_id)
        for each_id in self._in_order(chosen):
            fresh = self.queries.get_job(each_id)
            if _can_be_retried(fresh):  # a group has already restarted with the first of its jobs
                self._restart(fresh, by)
        return self.queries.get_job(job_id)

    def begin_for_system(self, job_id: str, *, by: str = "local") -> Job:
        """Restart a COMPLETED job for its system; run twice, it must create nothing twice."""
        job = self.queries.get_job(job_id)
        if job.status is not Status.COMPLETED:
            raise JobStateError(f"job {job_id} is {job.status}, not COMPLETED; read it again")
        self._restart(job, by)
        return self.queries.get_job(job_id)

    def open_for_system(self, job_id: str) -> Job:
        """Reopen an ended tree to more jobs, for the system that continues it."""
        return self.store.update(Job.key(job_id=job_id), Job.tree_status.set(None))

    def _in_order(self, jobs: Mapping[str, bool]) -> Iterable[str]:
        """Yield jobs after those whose end they wait for, because broken gates would refuse them.

        The jobs are given by their ids, with whether they wait for others at all.
        """
        sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(jobs, ()))
        for job_id, is_gated in jobs.items():
            for edge in self._dependencies.edges_of(job_id) if is_gated and len(jobs) > 1 else ():
                if edge.dependency_job_id in jobs and condition_of(edge) is not EdgeCondition.STARTED:
                    sorter.add(job_id, edge.dependency_job_id)
        return sorter.static_order()

    # --- order ------------------------------------------------------------------------------------------------------

    def add_dependency(self, job_id: str, on: DependsOn) -> JobDependency:
        return self._dependencies.add(job_id, on)

    def prioritise(self, job_id: str, priority: int) -> Job:

        def prioritise(job: Job) -> None:
            entry = self.queries.find_entry(job)
            with self.store.transaction() as tx:
                tx.update(Job.key(job_id=job_id), Job.priority.set(priority))
                if entry is not None and entry.rank is not None:
                    updates = (QueueJob.priority.set(priority), QueueJob.rank.set(rank_of(priority)))
                    tx.update(entry, *updates, when=QueueJob.rank == entry.rank)
                elif entry is not None:
                    tx.update(entry, QueueJob.priority.set(priority), when=QueueJob.rank.missing())
                elif job.queue_name is not None:  # a retry adds an entry, with the priority that it finds
                    tx.check(QueueJob.key(queue_name=job.queue_name, job_id=job_id), QueueJob.priority.missing())

        self.store.retrying(lambda: self.queries.get_job(job_id), prioritise, f"prioritise job {job_id}")
        return self.queries.get_job(job_id)


def _can_be_retried(job: Job) -> bool:
    return job.is_final and job.status is not Status.COMPLETED
