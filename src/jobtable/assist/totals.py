"""What calls add to the totals of their job, of the trees that it is in, and of their day and system.

Every write of a call adds the difference between what its record counted and what it counts now, in the same
transaction, so the totals always equal a recount of the records.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import zip_longest

from jobtable.assist.budgets import Budget, Counted
from jobtable.assist.entities import OWN_JOBS, AssistCall, AssistCost, AssistTotal
from jobtable.errors import TransactionFailedError
from jobtable.jobs.lifecycle.owners import owner_of
from jobtable.jobs.stored.entities import Job
from jobtable.model.selection import Selection
from jobtable.store import Store, Transaction

_COSTS = AssistCost.model_fields.keys()


class Totals:
    """The totals that the calls of one job change, and the budgets that they keep."""

    def __init__(self, store: Store, job: Job) -> None:
        self._store = store
        self._job = job

    @cached_property
    def system(self) -> str:
        """The system to which the job belongs, or else the nearest job above it."""
        owners = (owner_of(job, parent) for job, parent in zip_longest(self._line, self._line[1:]))
        owner = next(filter(None, owners), None)
        return OWN_JOBS if owner is None else owner.system

    @cached_property
    def _line(self) -> list[Job]:
        """The job and those above it, up to the root of its tree."""
        return list(self._upwards())

    def _upwards(self) -> Iterator[Job]:
        job: Job | None = self._job
        while job is not None:
            yield job
            parent_id = job.parent_job_id
            job = None if parent_id is None else self._store.find(Job.key(job_id=parent_id))

    @cached_property
    def budgets(self) -> tuple[Budget, ...]:
        """The budgets of the job and of those above it; the root has one also if it limits nothing."""
        *below, root = self._line
        of_line = [Budget.of(job) for job in below]
        return (*(each for each in of_line if each.is_limited), Budget.of(root))

    def add_change(self, tx: Transaction, change: Counted, call: AssistCall, *, reserves: bool = False) -> None:
        """Add what changes with the record of a call to a transaction.

        With `reserves`, the transaction fails if that would exceed a budget. An answer that was paid for is always
        counted.
        """
        amounts = {name: amount for name, amount in change if amount}
        if not amounts:
            return
        updates = [getattr(AssistTotal, name).increment(amount) for name, amount in amounts.items()]
        tx.upsert(AssistTotal.key(job_id=self._job.job_id, scope="job"), *updates)
        for budget in self.budgets:
            tx.upsert(budget.total, *updates, when=budget.room_for(change) if reserves else None)
        costs = [getattr(AssistCost, name).increment(amount) for name, amount in amounts.items() if name in _COSTS]
        if costs:
            tx.upsert(_cost_key(call), *costs)

    def find_exceeded(self, error: TransactionFailedError) -> tuple[Budget, AssistTotal | None] | None:
        """Return the budget for which a transaction failed, with its total; None if it failed for other reasons."""
        of = {budget.job_id: budget for budget in self.budgets}
        for failure in error.failures:
            total = failure.current
            if isinstance(total, AssistTotal) and failure.code == "ConditionalCheckFailed":
                return of[total.job_id], total
        return None


def _cost_key(call: AssistCall) -> Selection[AssistCost]:
    return AssistCost.key(
        date=call.date, system=call.system, purpose=call.purpose, provider=call.provider, model=call.model
    )
