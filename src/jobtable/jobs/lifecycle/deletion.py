"""Deleting ended jobs, with every item and object under them."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import chain

from jobtable.errors import ConflictError, ErrorReason, JobStateError, TransactionFailedError
from jobtable.jobs.core import EngineCore
from jobtable.jobs.lifecycle.owners import command_to_delete
from jobtable.jobs.lifecycle.transitions import length_of
from jobtable.jobs.report.recording import find_roll_up
from jobtable.jobs.stored.entities import Job, JobChild, JobMetric, main
from jobtable.jobs.stored.locations import job_prefix
from jobtable.model import Entity, unchanged
from jobtable.store import Undeclared
from jobtable.store.backend import Item
from jobtable.store.batches import Batches
from jobtable.store.transactions import MOST_ACTIONS, grouped

BEFORE_LEAVING = "jobtable.assist.reservations:release_of_job"
"""Called before a job leaves a tree that stays, to return what it holds of the tree's budget. Loaded then, because jobs
know nothing of models."""


class Deletion(EngineCore):
    """Deletes jobs: it marks them first, so that nobody retries them, and removes the job items last."""

    def delete(self, job_id: str, *, tree: bool = False) -> int:
        return self._delete_all(job_id, tree, _not_of_a_system)

    def delete_for_system(self, job_id: str) -> int:
        """Delete an ended job and its tree, as `delete` does, for the system that made them."""
        return self._delete_all(job_id, tree=True, allowed=_ended)

    def mark_as_going(self, jobs: Sequence[Job]) -> None:
        """Prevent retries of these jobs, before their system removes what they made.

        JobStateError if one of them has not ended or changes meanwhile: then none is marked.
        """
        tx = self.store.transaction()
        for job in map(_ended, jobs):
            tx.update(job, Job.deleted_at.set(self.clock.now()), when=unchanged(job, Job.status, Job.changed_at))
        try:
            tx.commit()
        except TransactionFailedError as error:
            changed = ", ".join(jobs[failure.index].job_id for failure in error.failures)
            raise JobStateError(
                f"changed meanwhile: {changed}", hint="read it again before you delete", reason=ErrorReason.JOB_CHANGED
            ) from error

    def _deletable(self, job: Job, tree: bool) -> Iterator[Job]:
        """Yield a job and those to delete with it, each before its children."""
        below = self.list_below(job)
        if not tree and next(below, None) is not None:
            raise JobStateError(
                f"job {job.job_id} has children",
                hint="delete its whole tree, or them first",
                reason=ErrorReason.JOB_HAS_CHILDREN,
            )
        return map(_ended, chain([job], below))

    def _delete_all(self, job_id: str, tree: bool, allowed: Callable[[Job], Job]) -> int:
        """Delete a job and its tree, the last first, because children are found through their parents.

        Only ids are kept: a job may have 400 KB, and there may be many.
        """
        going: dict[str, None] = {}
        top: Job | None = self.queries.get_job(job_id)
        while top is not None:
            unmarked = [job.job_id for job in map(allowed, self._deletable(top, tree)) if job.job_id not in going]
            if not unmarked:
                break
            for some in grouped(self._existing(reversed(unmarked)), MOST_ACTIONS, length_of):
                self.mark_as_going(some)
            going.update(dict.fromkeys(unmarked))
            # A marked job gets no more children. Earlier ones are found by another look.
            top = self.store.find(Job.key(job_id=job_id))
        # One without a mark is a new job that has the id of a deleted one.
        marked = (job for job in self._existing(reversed(going)) if job.deleted_at is not None)
        return sum(self._delete_one(each, going.keys()) for each in marked)

    def _existing(self, job_ids: Iterable[str]) -> Iterator[Job]:
        return (job for job in self.queries.read_jobs(job_ids) if job is not None)

    def _delete_one(self, job: Job, going: Set[str]) -> int:
        if self.queries.find_entry(job) is not None:
            self._notify_all(job)
        if job.root_job_id is not None and job.root_job_id not in going:
            pkgutil.resolve_name(BEFORE_LEAVING)(self.store, job)
        removed = self._dependencies.remove_all(job.job_id)
        removed += self.store.batch_delete(self.queries.find_instances_of_job(job.job_id))
        removed += self.store.batch_delete(self._rolled_up_metrics(job, going))
        removed += self._delete_items_under(job.job_id)
        for found in self.objects.list(job_prefix(job.job_id)):
            self.objects.delete(found.key)
        return removed + self._delete_item(job, going)

    def _delete_item(self, job: Job, going: Set[str]) -> int:
        """Remove the item of a job, together with the one under its parent unless that is deleted as well."""
        parent = job.parent_job_id
        is_left = parent is not None and parent not in going
        known = self.store.find(JobChild.key(job_id=parent, child_job_id=job.job_id)) if is_left else None
        if known is None:
            return int(self.store.delete(Job.key(job_id=job.job_id)))
        with self.store.transaction() as tx:
            tx.delete(Job.key(job_id=job.job_id))
            tx.delete(known)
        return 2

    def _notify_all(self, job: Job) -> None:
        """Notify all dependents of a job, or raise ConflictError: they would wait forever."""
        # Read again: some dependents may have been deleted before it.
        self._endings.settle(self.queries.get_job(job.job_id))
        if self.queries.find_entry(job) is not None:
            raise ConflictError(
                f"job {job.job_id} cannot be deleted yet: the index does not show all its dependents; "
                "delete it again in a moment"
            )

    def _delete_items_under(self, job_id: str) -> int:
        """Remove everything in a job's partition but the job, also items of kinds unknown to this process."""
        under = self.store.collection(Job.key(job_id=job_id))
        keys = (_key_of(entity) for entity in under if not isinstance(entity, Job))
        return Batches(self.store).delete_items(main, keys)

    def _rolled_up_metrics(self, job: Job, going: Set[str]) -> Iterator[JobMetric]:
        """Yield the copies of a job's metrics under another job, unless they go with that one."""
        rule = find_roll_up(job)
        if rule is not None and rule.job_id not in going:
            yield from (each for each in self.queries.list_metrics(rule.job_id) if each.child_job_id == job.job_id)


def _ended(job: Job) -> Job:
    """Return the job, or raise JobStateError if it has not ended."""
    if not job.is_final:
        raise JobStateError(
            f"job {job.job_id} is {job.status}", hint="cancel it before you delete it", reason=ErrorReason.JOB_ACTIVE
        )
    return job


def _not_of_a_system(job: Job) -> Job:
    """The job, or JobStateError if it belongs to something of a system."""
    command = command_to_delete(job)
    if command is not None:
        raise JobStateError(
            f"job {job.job_id} is part of something larger",
            hint=f"delete that with `{command}`",
            reason=ErrorReason.JOB_HAS_OWNER,
        )
    return job


def _key_of(entity: Entity) -> Item:
    return entity.item if isinstance(entity, Undeclared) else type(entity).__schema__.codec.key_of(entity)
