"""Tasks of every kind in the inbox of the tests of pages, with markup in every text."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.web import assist_world

from jobtable.app import Services
from jobtable.inbox import FieldChange
from jobtable.inbox.entities import InboxTask, TaskKind, TaskStatus

PROPOSAL, QUESTION, REJECTED = "world-proposal", "world-question", "world-rejected"


def fill_inbox(services: Services, markup: str) -> None:
    """A proposal of an assistant that is stale, a question of a workflow, and a proposal that was rejected."""
    now = services.store.clock.now()
    common: dict[str, Any] = {
        "title": f"Task {markup}",
        "text": markup,
        "about": "/jobs",
        "created_at": now,
        "created_by": "ada",
        "expires_at": now + timedelta(days=300),
        "due_at": now + timedelta(days=300),
    }
    proposal = InboxTask(
        **common,
        task_id=PROPOSAL,
        kind=TaskKind.PROPOSAL,
        system="jobs",
        subject=markup,
        changes=[
            FieldChange(field=markup, before=f"the old {markup}", after=f"the new {markup}"),
            FieldChange(field="tags", before=None, after=["a", markup]),
        ],
        apply="tests.inbox.labels:rename",
        payload={"queue": markup},
        reason=markup,
        confidence=0.9,
        job_id=assist_world.JOB,
        call_ids=[assist_world.ANSWERED],
        cost_nanodollars=1_200_000,
        problem=f"it no longer fits: {markup}",
    )
    schema = {"type": "object", "properties": {markup: {"enum": [markup]}}, "title": markup, "description": markup}
    services.store.batch_put(
        [
            proposal,
            proposal.replace(
                task_id=REJECTED, status=TaskStatus.REJECTED, closed_by=markup, closed_at=now, remark=markup
            ),
            InboxTask(
                **common,
                task_id=QUESTION,
                kind=TaskKind.QUESTION,
                system="workflows",
                answer_schema=schema,
                deliver="mail:send",
                delivery_problem=markup,
            ),
        ]
    )
    services.inbox.add_rule(subject=markup, least_confidence=0.95)


def paths() -> list[str]:
    """The pages of the inbox."""
    return ["/inbox", "/inbox?status=REJECTED", *(f"/inbox/{each}" for each in (PROPOSAL, QUESTION, REJECTED))]
