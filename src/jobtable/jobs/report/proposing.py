"""What a task proposes to people, as the context offers it. `jobtable.inbox` implements it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from jobtable.jobs.report.assistant import Assisted
from jobtable.model import Json, Part

if TYPE_CHECKING:
    from jobtable.jobs.report.context import JobContext

IMPLEMENTATION = "jobtable.inbox.proposal_desk:ProposalDesk"
"""Loaded when a task first proposes something, because jobs know nothing of the inbox."""


class FieldChange(Part):
    """One field as it is and as it should be."""

    field: str
    before: Json = None
    after: Json = None


@dataclass(frozen=True)
class Proposal:
    """A change that a person, or a rule of the user, accepts or rejects."""

    title: str
    changes: Sequence[FieldChange]
    apply: str
    """`module:function`, marked with @applies: called as `apply(tx, proposal, jobs)`, it adds the change."""
    payload: Json = None
    """What the function needs to know."""
    reason: str = ""
    text: str = ""
    subject: str = ""
    """What is changed, in a word or two: `rule`, `label`, `topic name`."""
    system: str | None = None
    """The system to which it belongs; by default that of the job."""
    about: str | None = None
    """The path of the page of what is changed."""
    confidence: float | None = None
    """From 0 to 1."""
    calls: tuple[str, ...] = ()
    """The ids of the assistant's calls that it comes from, under the job."""
    cost_nanodollars: int = 0
    expires_in: timedelta = timedelta(days=30)
    key: str | None = None
    """Tells proposals of one job, or of one system, apart; by default its content does. A second one is the first."""

    def answered_by(self, assisted: Assisted[Any]) -> Proposal:
        """Return the proposal with the calls and the cost of the answer from which it was made."""
        return replace(self, calls=assisted.call_ids, cost_nanodollars=assisted.cost_nanodollars)


@dataclass(frozen=True)
class Proposed:
    """A proposal in the inbox: its id, and its status, which is ACCEPTED if a rule accepted it at once."""

    task_id: str
    status: str


class Proposing(Protocol):
    """Proposes changes on behalf of one run of a job."""

    def propose(self, proposal: Proposal) -> Proposed:
        """Put a proposal into the inbox. A retry of the job finds its first one. LeaseLostError if the run was lost."""
        ...


def proposal_desk(job: JobContext) -> Proposing:
    """Return what takes the proposals of a run."""
    import pkgutil  # noqa: PLC0415 - few tasks propose

    made: Proposing = job.work.desk(pkgutil.resolve_name(IMPLEMENTATION), job.lease)
    return made
