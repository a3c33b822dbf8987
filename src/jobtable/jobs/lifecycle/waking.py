"""Suspended jobs are woken, in the transaction that records what they are woken for."""

from __future__ import annotations

from jobtable.jobs.stored.entities import Job, QueueJob
from jobtable.jobs.stored.field_types import CLAIMABLE, rank_of
from jobtable.model import unchanged
from jobtable.store import Store
from jobtable.store.transactions import Transaction


def add_wake(store: Store, tx: Transaction, job: Job | None) -> None:
    """Wake a job, as it was just read, with the rest of a transaction, which fails if the job has changed.

    What the job is woken for must be written in the same transaction, so that a crash cannot part them. A job that runs
    starts again when it suspends itself; an ended one stays as it is.
    """
    if job is None or job.is_final:
        return
    has_entry = job.status in CLAIMABLE and job.queue_name is not None
    entry = store.find(QueueJob.key(queue_name=str(job.queue_name), job_id=job.job_id)) if has_entry else None
    if entry is None:
        tx.update(job, Job.woken.set(True), when=unchanged(job, Job.status, Job.lease_epoch))
    elif entry.rank is None:
        tx.check(job, unchanged(job, Job.status, Job.lease_epoch))
        ready = QueueJob.rank.set(rank_of(entry.priority)), QueueJob.not_before.set(None)
        tx.update(entry, *ready, when=unchanged(entry, QueueJob.rank, QueueJob.not_before, QueueJob.priority))
    else:
        tx.check(entry, unchanged(entry, QueueJob.rank))
