"""The inbox of people: questions of workflows, proposals of assistants and tasks, and rules that accept them."""

from typing import TYPE_CHECKING

from jobtable.lazy_exports import offer

if TYPE_CHECKING:
    from jobtable.inbox.durable_questions import asking
    from jobtable.inbox.entities import InboxRule, InboxTask
    from jobtable.inbox.inbox import Inbox
    from jobtable.inbox.questions import Question
    from jobtable.inbox.users_functions import accepts, applies
    from jobtable.jobs.report.proposing import FieldChange, Proposal, Proposed

__all__ = [
    "FieldChange",
    "Inbox",
    "InboxRule",
    "InboxTask",
    "Proposal",
    "Proposed",
    "Question",
    "accepts",
    "applies",
    "asking",
]

if not TYPE_CHECKING:  # a module of tasks needs no workflows
    __getattr__, __dir__ = offer(
        __name__, __all__, ["users_functions", "entities", "questions", "durable_questions", "proposal_desk", "inbox"]
    )
