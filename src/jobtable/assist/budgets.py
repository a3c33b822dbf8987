"""What calls count in the totals, and the budgets that limit it: those of a job cover it and all below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobtable.assist.costs import Used, used_by
from jobtable.assist.entities import AssistCall, AssistTotal, CallStatus
from jobtable.assist.prices import NANODOLLARS, dollars
from jobtable.errors import BudgetExceededError
from jobtable.jobs.stored.entities import Job
from jobtable.model import Condition
from jobtable.model.conditions import all_of
from jobtable.model.expressions import Attribute, attribute_of
from jobtable.model.selection import Selection


class Counted(Used):
    """What a record counts in the totals, or what a change of it adds to them."""

    held_tokens: int = 0
    held_nanodollars: int = 0

    def __sub__(self, other: Counted) -> Counted:
        its = dict(other)
        return Counted(**{name: own - its[name] for name, own in self})


def counted(call: AssistCall | None) -> Counted:
    """Return what the record of a call counts, with what it reserves while it is open."""
    if call is None:
        return Counted()
    used = used_by(call)
    is_open = call.status is CallStatus.STARTED
    return Counted(
        **dict(used),
        held_tokens=used.tokens_in + used.tokens_out + is_open * call.reserved_tokens,
        held_nanodollars=used.cost_nanodollars + is_open * call.reserved_nanodollars,
    )


@dataclass(frozen=True)
class Budget:
    """The most that a job and all below it may use; None for what is not limited."""

    job_id: str
    nanodollars: int | None
    tokens: int | None

    @staticmethod
    def of(job: Job) -> Budget:
        limits = job.definition
        cost = None if limits.max_cost is None else round(limits.max_cost * NANODOLLARS)
        return Budget(job.job_id, cost, limits.max_tokens)

    @property
    def is_limited(self) -> bool:
        return self.nanodollars is not None or self.tokens is not None

    @property
    def total(self) -> Selection[AssistTotal]:
        """The total that it limits."""
        return AssistTotal.key(job_id=self.job_id, scope="tree")

    def _left_by(self, change: Counted) -> Iterator[tuple[Attribute[int], int]]:
        """Yield each amount that is limited and grows, with the most that it may be before the change."""
        if self.nanodollars is not None and change.held_nanodollars > 0:
            yield attribute_of(AssistTotal.held_nanodollars), self.nanodollars - change.held_nanodollars
        if self.tokens is not None and change.held_tokens > 0:
            yield attribute_of(AssistTotal.held_tokens), self.tokens - change.held_tokens

    def is_too_small(self, change: Counted) -> bool:
        """Return whether a change does not fit even if nothing was used before."""
        return any(left < 0 for _, left in self._left_by(change))

    def room_for(self, change: Counted) -> Condition | None:
        """Return the condition of the total under which a change fits; None if it always does."""
        # A total that does not exist yet fails every comparison.
        return all_of(*(held.missing() | (held <= left) for held, left in self._left_by(change)))

    def exceeded(self, change: Counted, total: AssistTotal | None) -> BudgetExceededError:
        """Return the error that a request does not fit into the budget, with what is used and reserved of it."""
        total = total or AssistTotal(job_id=self.job_id, scope="tree")
        told = []
        if self.nanodollars is not None and total.held_nanodollars + change.held_nanodollars > self.nanodollars:
            told.append(
                f"max_cost is {dollars(self.nanodollars)}: {dollars(total.cost_nanodollars)} are used, "
                f"{dollars(total.reserved_nanodollars)} reserved, and this request may cost "
                f"{dollars(change.held_nanodollars)}"
            )
        if self.tokens is not None and total.held_tokens + change.held_tokens > self.tokens:
            told.append(
                f"max_tokens is {self.tokens:,}: {total.tokens_in + total.tokens_out:,} are used, "
                f"{total.reserved_tokens:,} reserved, and this request may use {change.held_tokens:,}"
            )
        return BudgetExceededError(
            f"the budget of job {self.job_id} would be exceeded: {'; '.join(told)}",
            hint="nothing was sent; submit the job with a larger budget, or ask for shorter answers",
        )

    def is_used_up(self, change: Counted, total: AssistTotal | None) -> bool:
        """Return whether a change would not fit even if nothing were reserved."""
        if total is None:
            return True
        cost, tokens = total.cost_nanodollars, total.tokens_in + total.tokens_out
        return (self.nanodollars is not None and cost + change.held_nanodollars > self.nanodollars) or (
            self.tokens is not None and tokens + change.held_tokens > self.tokens
        )
