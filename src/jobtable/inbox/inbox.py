"""The inbox of people: what waits for them, and what they do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Unpack

from jobtable.errors import JobtableError
from jobtable.inbox.acceptance_rules import Conditions, Rules
from jobtable.inbox.entities import InboxRule, InboxTask
from jobtable.inbox.inbox_reads import InboxReads
from jobtable.inbox.proposals import Proposals
from jobtable.inbox.questions import Asked, Question, Questions
from jobtable.jobs.engine import Jobs
from jobtable.jobs.report.proposing import Proposal
from jobtable.model import Json


@dataclass(frozen=True)
class Closed:
    """What became of one of many tasks: the task as it is now, or why the act failed."""

    task_id: str
    task: InboxTask | None = None
    error: JobtableError | None = None


class Inbox(InboxReads):
    """The inbox on one job engine. Any thread and process may use it; a refused act changes nothing."""

    def __init__(self, jobs: Jobs) -> None:
        super().__init__(jobs.store)
        self._proposals = Proposals(jobs)
        self._questions = Questions(jobs)
        self._rules = Rules(jobs.store)

    def propose(self, proposal: Proposal, *, by: str = "local") -> InboxTask:
        """Put a proposal into the inbox; a rule may accept it at once. One with the same key is returned as it is."""
        return self._proposals.propose(proposal, by=by)

    def ask(self, question: Question, *, by: str = "local", workflow_token: str | None = None) -> Asked:
        """Put a question into the inbox; the workflow with that task token or callback id gets the answer."""
        return self._questions.ask(question, by=by, workflow_token=workflow_token)

    def accept(self, task_id: str, *, by: str = "local") -> InboxTask:
        """Apply a proposal in the transaction that accepts it. Of several who accept or reject it, one wins.

        TaskClosedError if it is closed. StaleProposalError if what it changes has changed: nothing was applied, the
        reason is recorded, and the proposal still waits.
        """
        return self._proposals.accept(task_id, by=by)

    def reject(
        self, task_id: str, *, by: str = "local", remark: str | None = None, token: str | None = None
    ) -> InboxTask:
        """Reject a proposal, or refuse to answer a question: its workflow gets the error that the question names."""
        return self._questions.reject(task_id, by=by, remark=remark, token=token)

    def answer(self, task_id: str, answer: Json, *, by: str = "local", token: str | None = None) -> InboxTask:
        """Answer a question; the workflow that waits for it goes on. Of several answers one wins.

        ValueRefusedError if the answer does not meet the schema, TaskClosedError if the question is closed,
        TokenRefusedError for a token of another question. Without a token, the caller's own rights count.
        """
        return self._questions.answer(task_id, answer, by=by, token=token)

    def withdraw(self, task_id: str, *, by: str = "local") -> InboxTask:
        """Withdraw a task that nobody needs any more; TaskClosedError if a workflow waits for it."""
        return self._questions.withdraw(task_id, by=by)

    def renew_token(self, task_id: str) -> str:
        """Return a new token for a pending question; the previous one becomes invalid."""
        return self._questions.renew_token(task_id)

    def accept_many(self, task_ids: Iterable[str], *, by: str = "local") -> Iterator[Closed]:
        """Accept proposals in their order, each by itself: an error of one does not stop the others."""
        return _each(task_ids, lambda task_id: self.accept(task_id, by=by))

    def reject_many(self, task_ids: Iterable[str], *, by: str = "local", remark: str | None = None) -> Iterator[Closed]:
        """Reject tasks in their order, each by itself."""
        return _each(task_ids, lambda task_id: self.reject(task_id, by=by, remark=remark))

    def add_rule(self, *, by: str = "local", **conditions: Unpack[Conditions]) -> InboxRule:
        """Add a rule for what is proposed from now on; ValueRefusedError if it has no condition."""
        return self._rules.add(by=by, **conditions)

    def remove_rule(self, rule_id: str) -> None:
        """Delete a rule, or raise NotFoundError. What it has accepted stays accepted."""
        self._rules.remove(rule_id)


def _each(task_ids: Iterable[str], act: Callable[[str], InboxTask]) -> Iterator[Closed]:
    for task_id in task_ids:
        try:
            yield Closed(task_id, act(task_id))
        except JobtableError as error:
            yield Closed(task_id, error=error)
