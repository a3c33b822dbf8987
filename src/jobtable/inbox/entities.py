"""What is stored of the inbox: the tasks of people, and the rules that accept proposals in their place."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from jobtable.jobs.report.proposing import FieldChange
from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Count
from jobtable.model import Attr, Entity, Json, Key, Stored, Timestamp, default


class TaskKind(StrEnum):
    """What a person is to do."""

    QUESTION = "question"
    """Answer it."""
    PROPOSAL = "proposal"
    """Accept or reject it."""


class TaskStatus(StrEnum):
    """How far a task is."""

    PENDING = "PENDING"
    ANSWERED = "ANSWERED"
    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"
    """Nobody did it in time."""
    WITHDRAWN = "WITHDRAWN"
    """Nobody needs it any more."""


class InboxTask(Entity, table=main, type="INBOX_TASK"):
    """A question or a proposal to a person. It is closed once."""

    key = Key("INBOX#{task_id}", "TASK")
    by_status = Key("INBOX#{status}", "{created_at}#{task_id}", index="GSI1")
    of_system = Key("INBOX#{system}#{status}", "{expires_at}#{task_id}", index="GSI2")
    due = Key("INBOX_DUE", "{due_at}#{task_id}", index="GSI3")

    task_id: str
    kind: TaskKind
    system: str
    """To which it belongs; `workflows` for a question of a workflow, `jobs` for a user's own job."""
    title: Annotated[str, Field(min_length=1, max_length=200)]
    text: str = ""
    about: str | None = None
    """The path of the page of what it is about."""
    status: Attr[TaskStatus] = default(TaskStatus.PENDING)
    created_at: Attr[Timestamp]
    created_by: str
    expires_at: Attr[Timestamp]
    due_at: Attr[Timestamp | None] = default(None)
    """When the watch looks at it again; None if nothing is left to do."""
    closed_by: Attr[str | None] = default(None)
    """The user, or `rule ID`."""
    closed_at: Attr[Timestamp | None] = default(None)
    remark: Attr[str | None] = default(None)
    """What the person said about a rejection."""
    problem: Attr[str | None] = default(None)
    """Why it could not be applied, or why its answer did not arrive."""

    # --- proposals
    subject: str = ""
    changes: list[FieldChange] = []
    apply: str | None = None
    payload: Json = None
    reason: str = ""
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    job_id: str | None = None
    call_ids: list[str] = []
    cost_nanodollars: Count = 0

    # --- questions
    answer_schema: Json = None
    """The JSON schema of the answer."""
    answer: Attr[Json] = default(None)
    token_sha256: Attr[str | None] = default(None)
    """The SHA-256 of the token that answers it without other rights."""
    deliver: str | None = None
    """The function `module:NAME` that sends it with its token."""
    delivery_problem: Attr[str | None] = default(None)
    workflow: Json = None
    """What waits for the answer: `{sha256}` of a task token, or the parts of a callback id; never the token."""
    rejected_error: str | None = None
    """The error name by which the workflow learns of a rejection."""
    expired_error: str | None = None


class InboxRule(Entity, table=main, type="INBOX_RULE"):
    """Accepts proposals in place of a person: those that meet all its conditions."""

    key = Key("INBOX_RULES", "RULE#{rule_id}")

    rule_id: Stored[str]
    created_at: Attr[Timestamp]
    created_by: str
    system: str | None = None
    subject: str | None = None
    fields: list[str] = []
    """The only fields that a proposal may change."""
    most_cost_nanodollars: Count | None = None
    least_confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    predicate: str | None = None
    """`module:function`, marked with @accepts, which must return true for the proposal."""
