"""Reservations that nobody will use: those of calls whose run was lost and whose job has ended since."""

from __future__ import annotations

from collections.abc import Iterator

from jobtable.assist.budgets import counted
from jobtable.assist.entities import AssistCall, AssistTotal, CallStatus
from jobtable.assist.totals import Totals
from jobtable.errors import TransactionFailedError
from jobtable.jobs.read.job_reads import JobReads
from jobtable.jobs.stored.entities import Job
from jobtable.model import unchanged
from jobtable.store import Store

LOST = "the run was lost before the answer was recorded, and the job has ended"


def release_of_ended_jobs(jobs: JobReads, job_id: str) -> int:
    """Fail the open calls of ended jobs in the tree below a job, and return their number.

    A call of a job that has not ended stays open, because a retry of the job takes it over.
    """
    return sum(release_of_job(jobs.store, job) for job in jobs.list_tree(job_id) if job.is_final)


def release_of_job(store: Store, job: Job) -> int:
    """Fail the open calls of an ended job, and return their number."""
    total = store.find(AssistTotal.key(job_id=job.job_id, scope="job"))
    if total is None or not (total.reserved_tokens or total.reserved_nanodollars):
        return 0
    totals = Totals(store, job)
    return sum(_fail(store, totals, job, call) for call in _open_calls(store, job))


def _open_calls(store: Store, job: Job) -> Iterator[AssistCall]:
    is_open = AssistCall.status == CallStatus.STARTED
    yield from store.query(AssistCall.key(job_id=job.job_id), where=is_open)


def _fail(store: Store, totals: Totals, job: Job, call: AssistCall) -> bool:
    """Fail a call unless it or its job has changed since."""
    changes = {"status": CallStatus.FAILED, "error": LOST, "ended_at": store.clock.now()}
    after = call.replace(**changes, reserved_tokens=0, reserved_nanodollars=0, tries=call.tries + 1)
    try:
        with store.transaction() as tx:
            tx.check(job, unchanged(job, Job.status, Job.lease_epoch))
            tx.put(after, when=unchanged(call, AssistCall.status, AssistCall.lease_epoch, AssistCall.tries))
            totals.add_change(tx, counted(after) - counted(call), after)
    except TransactionFailedError:
        return False
    return True
