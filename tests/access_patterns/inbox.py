"""A question and three proposals of two systems, one of them accepted, and a rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobtable.inbox.entities import InboxRule, InboxTask, TaskKind, TaskStatus
from jobtable.inbox.inbox_reads import InboxReads
from jobtable.jobs.stored.entities import main
from jobtable.model import Entity
from tests.access_patterns import Question, World
from tests.access_patterns.jobs import at


def task(number: int, **changes: Any) -> InboxTask:
    """A proposal that was made so many seconds after the start: the later, the sooner it expires."""
    values: dict[str, Any] = {
        "task_id": f"task-{number}",
        "kind": TaskKind.PROPOSAL,
        "system": "jobs",
        "title": "Call it B",
        "created_at": at(number),
        "created_by": "ada",
        "expires_at": at(100 - number),
        "due_at": at(100 - number),
    }
    return InboxTask(**{**values, **changes})


def items() -> Iterator[Entity]:
    """The world."""
    yield task(1)
    yield task(2, kind=TaskKind.QUESTION, system="workflows")
    yield task(3)
    yield task(4, status=TaskStatus.ACCEPTED, due_at=None)
    yield InboxRule(rule_id="rule-1", created_at=at(0), created_by="ada", subject="label")


WORLD = World(
    name="inbox",
    tables=(main,),
    items=items,
    questions={
        ("inbox", "Get a task of the inbox"): Question(lambda s: [InboxReads(s).get("task-2").kind], ["question"]),
        ("inbox", "Tasks of the inbox by status"): Question(
            lambda s: [each.task_id for each in InboxReads(s).list()], ["task-1", "task-2", "task-3"]
        ),
        ("inbox", "Tasks of one system by due time"): Question(
            lambda s: [each.task_id for each in InboxReads(s).list_of_system("jobs")], ["task-3", "task-1"]
        ),
        ("inbox", "Tasks that are due"): Question(
            lambda s: [each.task_id for each in InboxReads(s).list_due()], ["task-3", "task-2", "task-1"]
        ),
        ("inbox", "Rules of the inbox"): Question(
            lambda s: [each.rule_id for each in InboxReads(s).list_rules()], ["rule-1"]
        ),
    },
)
