"""What people do with jobs: cancel, stop, seal, retry and prioritise them, alone or with everything under them."""

from __future__ import annotations

from contextlib import suppress
from graphlib import TopologicalSorter
from typing import Literal

from jobtable.clock import Clock
from jobtable.errors import ConditionFailedError, ConflictError, JobStateError, TransactionFailedError
from jobtable.jobs.beginnings import Beginnings
from jobtable.jobs.definition import EdgeCondition
from jobtable.jobs.dependencies import Dependencies
from jobtable.jobs.edges import condition_of
from jobtable.jobs.endings import Endings
from jobtable.jobs.entities import Job, QueueJob
from jobtable.jobs.leases import has_lease
from jobtable.jobs.queries import JobQueries
from jobtable.jobs.records import Status, rank_of
from jobtable.jobs.transitions import Refused, Transition
from jobtable.jobs.trees import Trees
from jobtable.store import Store

_MOST_TRIES = 20


class Control:
    """Acts on jobs from outside. Asking for what is already so changes nothing and is no error."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        queries: JobQueries,
        trees: Trees,
        endings: Endings,
        dependencies: Dependencies,
        beginnings: Beginnings,
    ) -> None:
        self._store = store
        self._clock = clock
        self._queries = queries
        self._trees = trees
        self._endings = endings
        self._dependencies = dependencies
        self._beginnings = beginnings

    # --- ending -----------------------------------------------------------------------------------------------------

    def cancel(self, job_id: str, *, by: str = "local", message: str | None = None, tree: bool = True) -> Job:
        """End a job whose result nobody wants, and those under it: at once if it waits, by its worker if it runs."""
        return self._end_tree(job_id, Status.CANCELLED, message or f"cancelled by {by}", by, tree)

    def stop(self, job_id: str, *, by: str = "local", message: str | None = None, tree: bool = True) -> Job:
        """Let a job end early but in order: at once if it waits; if it runs, it is asked to and keeps what it has."""
        return self._end_tree(job_id, Status.STOPPED, message or f"stopped by {by}", by, tree)

    def _end_tree(self, job_id: str, status: Status, message: str, by: str, tree: bool) -> Job:
        job = self._queries.get_job(job_id)
        has_ended_others = False
        if tree:
            if job.definition.is_group:  # first, or the end of its children would give it another status
                self._end(job_id, status, message, by, is_asked_for=False)
            for child in self._trees.below(job):
                if not child.is_final:
                    self._end(child.job_id, status, message, by, is_asked_for=False)
                    has_ended_others = True
        return self._end(job_id, status, message, by, is_asked_for=not has_ended_others)

    def _end(self, job_id: str, status: Status, message: str, by: str, *, is_asked_for: bool) -> Job:
        for _ in range(_MOST_TRIES):
            job = self._queries.get_job(job_id)
            if job.is_final:
                if is_asked_for and job.status is not status:
                    raise JobStateError(f"job {job_id} is {job.status} already, and cannot be {status} any more")
                return job
            done = self._ask(job, status) if has_lease(job) else self._endings.end_waiting(job, status, message, by=by)
            if done is not None:
                return done
        raise ConflictError(f"job {job_id} could not be {status}: its status changes all the time")

    def _ask(self, job: Job, status: Status) -> Job | None:
        """Leave a request for the worker, which reads it with its next heartbeat; None if the job has changed."""
        requested: Literal["cancel", "stop"] = (
            "cancel" if status is Status.CANCELLED or job.requested == "cancel" else "stop"
        )
        same_run = (Job.lease_epoch == job.lease_epoch) & (Job.status == Status.RUNNING) & Job.lease_seconds.exists()
        try:
            return self._store.update(Job.key(job_id=job.job_id), Job.requested.set(requested), when=same_run)
        except ConditionFailedError:
            return None

    def seal(self, job_id: str) -> Job:
        """Say that a group gets no more children: it ends when those that it has have ended."""
        for _ in range(_MOST_TRIES):
            job = self._queries.get_job(job_id)
            if job.is_awaiting or job.is_final:
                return self._endings.go_on(job_id) or self._queries.get_job(job_id)
            if not job.definition.is_group or job.status is not Status.RUNNING:
                raise JobStateError(f"job {job_id} is not an open group: only that can be sealed")
            transition = Transition(self._store, self._clock)
            at = transition.time_for(job)
            transition.change(job, Status.RUNNING, at, Job.is_awaiting.set(True), message="waits for its children")
            with suppress(Refused):  # it has changed meanwhile, or the next look finds it sealed
                transition.commit()
        raise ConflictError(f"group {job_id} could not be sealed: its status changes all the time")

    # --- beginning anew ---------------------------------------------------------------------------------------------

    def retry(self, job_id: str, *, by: str = "local", tree: bool = False) -> Job:
        """Let an ended job begin anew, with all its attempts; with `tree` everything under it that is not COMPLETED.

        Jobs that wait for it wait again, and a group that had ended because of it goes on.
        """
        job = self._queries.get_job(job_id)
        chosen = [each for each in (job, *(self._trees.below(job) if tree else ())) if _can_be_retried(each)]
        if not chosen and not (tree and job.status is Status.RUNNING):
            raise JobStateError(f"job {job_id} is {job.status}: only a job that ended otherwise can be retried")
        for each in self._in_order(chosen):
            fresh = self._queries.get_job(each.job_id)
            if _can_be_retried(fresh):  # a group has begun already, with the first of its jobs
                self._beginnings.begin(fresh, by)
        return self._queries.get_job(job_id)

    def begin_for_system(self, job_id: str, *, by: str = "local") -> Job:
        """Let a COMPLETED job begin anew, for the system whose job it is: run twice, it must make nothing twice."""
        job = self._queries.get_job(job_id)
        if job.status is not Status.COMPLETED:
            raise JobStateError(f"job {job_id} is {job.status} and not COMPLETED: look at it again")
        self._beginnings.begin(job, by)
        return self._queries.get_job(job_id)

    def _in_order(self, jobs: list[Job]) -> list[Job]:
        """The jobs, each after those whose end it waits for: otherwise it would find its gates still broken."""
        by_id = {job.job_id: job for job in jobs}
        sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(by_id, ()))
        for job in jobs:
            for edge in self._dependencies.edges_of(job.job_id) if job.is_gated and len(jobs) > 1 else ():
                if edge.dependency_job_id in by_id and condition_of(edge) is not EdgeCondition.STARTED:
                    sorter.add(job.job_id, edge.dependency_job_id)
        return [by_id[job_id] for job_id in sorter.static_order()]

    # --- order ------------------------------------------------------------------------------------------------------

    def prioritise(self, job_id: str, priority: int) -> Job:
        """Change a job's priority, and with it its place in the queue if it waits there."""
        for _ in range(_MOST_TRIES):
            job = self._queries.get_job(job_id)
            tx = self._store.transaction()
            tx.update(Job.key(job_id=job_id), Job.priority.set(priority))
            place = self._queries.find_place(job)
            if place is not None and place.rank is not None:
                updates = (QueueJob.priority.set(priority), QueueJob.rank.set(rank_of(priority)))
                tx.update(place, *updates, when=QueueJob.rank == place.rank)
            elif place is not None:
                tx.update(place, QueueJob.priority.set(priority), when=QueueJob.rank.missing())
            try:
                tx.commit()
            except TransactionFailedError:
                continue
            return self._queries.get_job(job_id)
        raise ConflictError(f"job {job_id} could not be prioritised: its place in the queue changes all the time")


def _can_be_retried(job: Job) -> bool:
    return job.is_final and job.status is not Status.COMPLETED
