"""What people do with jobs: cancel, stop, seal, retry, prioritise and delete them, alone or with all under them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from graphlib import TopologicalSorter
from itertools import islice
from typing import Literal

from jobtable.clock import Clock
from jobtable.errors import ConditionFailedError, ConflictError, JobStateError, TransactionFailedError
from jobtable.jobs.beginnings import Beginnings
from jobtable.jobs.definition import EdgeCondition
from jobtable.jobs.dependencies import Dependencies
from jobtable.jobs.edges import condition_of
from jobtable.jobs.endings import Endings
from jobtable.jobs.entities import Job, JobMetric, QueueJob, main
from jobtable.jobs.leases import has_lease
from jobtable.jobs.locations import job_prefix
from jobtable.jobs.owners import command_to_delete
from jobtable.jobs.queries import JobQueries
from jobtable.jobs.records import Status, rank_of
from jobtable.jobs.transitions import Refused, Transition
from jobtable.model import Entity, unchanged
from jobtable.objects import ObjectStore
from jobtable.store import Store, Undeclared
from jobtable.store.backend import Item
from jobtable.store.batches import Batches
from jobtable.store.transactions import MOST_ACTIONS

_MOST_TRIES = 20
_READ_TOGETHER = 100


class Control:
    """Acts on jobs from outside. Asking for what is already so changes nothing and is no error."""

    def __init__(
        self,
        store: Store,
        objects: ObjectStore,
        clock: Clock,
        queries: JobQueries,
        endings: Endings,
        dependencies: Dependencies,
        beginnings: Beginnings,
    ) -> None:
        self._store = store
        self._objects = objects
        self._clock = clock
        self._queries = queries
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
            if job.definition.is_group:  # else its children's end would end it otherwise
                self._end(job_id, status, message, by, is_asked_for=False)
            for child in self._below(job):
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
        chosen = [each for each in (job, *(self._below(job) if tree else ())) if _can_be_retried(each)]
        if not chosen and not (tree and job.status is Status.RUNNING):
            raise JobStateError(f"job {job_id} is {job.status}: only a job that ended otherwise can be retried")
        for each in self._in_order(chosen):
            fresh = self._queries.get_job(each.job_id)
            if _can_be_retried(fresh):  # a group has begun already, with the first of its jobs
                self._beginnings.begin(fresh, by)
        return self._queries.get_job(job_id)

    def begin_for_system(self, job_id: str, *, by: str = "local") -> Job:
        """Let a COMPLETED job begin anew, for the system whose job it is: what it does twice it must make once."""
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

    # --- deleting ---------------------------------------------------------------------------------------------------

    def delete(self, job_id: str, *, tree: bool = False) -> int:
        """Remove an ended job with every item and object under it; gives the number of items.

        With `tree` also the jobs under it; without, a job that has children is refused, and so is one that runs a
        journey, an analysis or an execution. If it is interrupted, the same call again finishes it: the job item goes
        last.
        """
        going = self._deletable(job_id, tree)
        for each in going:
            command = command_to_delete(each)
            if command is not None:
                raise JobStateError(f"job {each.job_id} is part of something larger: delete that, with `{command}`")
        return self._delete_all(going)

    def delete_for_system(self, job_id: str) -> int:
        """Remove an ended job and those under it, as `delete` does, for the system that has made them."""
        return self._delete_all(self._deletable(job_id, tree=True))

    def _deletable(self, job_id: str, tree: bool) -> list[Job]:
        """The jobs to delete with a job, children first: they are found by way of their parent."""
        job = self._queries.get_job(job_id)
        below = list(self._below(job))[::-1]
        if below and not tree:
            raise JobStateError(f"job {job_id} has {len(below)} jobs under it: delete them too (tree), or first")
        for each in (*below, job):
            if not each.is_final:
                raise JobStateError(f"job {each.job_id} is {each.status}: cancel it first")
        return [*below, job]

    def _delete_all(self, jobs: list[Job]) -> int:
        for first in range(0, len(jobs), MOST_ACTIONS):
            self._mark_as_going(jobs[first : first + MOST_ACTIONS])
        going = {each.job_id for each in jobs}
        return sum(self._delete_one(each, going) for each in jobs)

    def _mark_as_going(self, jobs: list[Job]) -> None:
        """Let nobody retry these jobs any more."""
        tx = self._store.transaction()
        for job in jobs:
            tx.update(job, Job.deleted_at.set(self._clock.now()), when=unchanged(job, Job.status, Job.changed_at))
        try:
            tx.commit()
        except TransactionFailedError as error:
            changed = ", ".join(jobs[failure.index].job_id for failure in error.failures)
            raise JobStateError(f"changed meanwhile, so look at it and delete again: {changed}") from error

    def _delete_one(self, job: Job, going: set[str]) -> int:
        if self._queries.find_place(job) is not None:
            self._tell_all(job)
        removed = self._dependencies.remove_all(job.job_id)
        removed += self._store.batch_delete(self._queries.find_instances_of_job(job.job_id))
        removed += self._store.batch_delete(self._reports_to_sweep(job, going))
        removed += self._delete_items_under(job.job_id)
        for found in self._objects.list(job_prefix(job.job_id)):
            self._objects.delete(found.key)
        return removed + self._store.delete(Job.key(job_id=job.job_id))

    def _tell_all(self, job: Job) -> None:
        """Tell all who wait for a job that is deleted, or raise ConflictError: they would wait for ever."""
        # Read again: some of those who waited may have been deleted before it.
        self._endings.settle(self._queries.get_job(job.job_id))
        if self._queries.find_place(job) is not None:
            raise ConflictError(
                f"job {job.job_id} cannot be deleted yet: the index does not show all who wait for it; "
                "delete it again in a moment"
            )

    def _delete_items_under(self, job_id: str) -> int:
        """Remove everything in a job's partition but the job, also items of kinds that this process does not know."""
        under = self._store.collection(Job.key(job_id=job_id))
        keys = (_key_of(entity) for entity in under if not isinstance(entity, Job))
        return Batches(self._store).delete_items(main, keys)

    def _reports_to_sweep(self, job: Job, going: set[str]) -> Iterator[JobMetric]:
        """The copies of a child's metrics that stand under its sweep, unless they go with the sweep itself."""
        sweep = (job.definition.model_extra or {}).get("sweep")
        sweep_id = sweep.get("sweep_id") if isinstance(sweep, dict) else None
        if sweep_id is not None and sweep_id not in going:
            yield from (each for each in self._queries.list_metrics(sweep_id) if each.child_job_id == job.job_id)

    def _below(self, job: Job) -> Iterator[Job]:
        """The jobs under a job, each before its own children, however deep the tree is."""
        levels = [self._children(job)]
        while levels:
            child = next(levels[-1], None)
            if child is None:
                levels.pop()
            else:
                yield child
                levels.append(self._children(child))

    def _children(self, job: Job) -> Iterator[Job]:
        """The children of a job, as they are now: the index may be behind.

        Those that it does not show yet are known by the edges of a job that waits for them.
        """
        ids = dict.fromkeys(child.job_id for child in self._queries.list_children(job))
        if job.is_gated:
            ids.update(dict.fromkeys(edge.dependency_job_id for edge in self._dependencies.edges_of(job.job_id)))
        left = iter(ids)
        while some := list(islice(left, _READ_TOGETHER)):
            found = self._store.batch_get([Job.key(job_id=each) for each in some])
            yield from (child for child in found if child is not None and child.parent_job_id == job.job_id)


def _can_be_retried(job: Job) -> bool:
    return job.is_final and job.status is not Status.COMPLETED


def _key_of(entity: Entity) -> Item:
    return entity.item if isinstance(entity, Undeclared) else type(entity).__schema__.codec.key_of(entity)
