"""Questions: stored with a digest of their token, delivered, answered as their schema says, once, in time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.inbox import labels
from tests.inbox.labels import HERE

from jobtable.errors import DefinitionError, TaskClosedError, TokenRefusedError, ValueRefusedError
from jobtable.inbox import Inbox, Question
from jobtable.inbox.answer_tokens import token_digest
from jobtable.inbox.entities import InboxTask, TaskKind, TaskStatus
from jobtable.inbox.inbox_watch import InboxWatch
from jobtable.jobs.engine import Jobs
from jobtable.testing import FakeClock

SHIP = Question("Ship it?", text="Order 7", choices=["yes", "no"], answer_within=timedelta(hours=1))
ADDRESS = {
    "type": "object",
    "properties": {"street": {"type": "string", "pattern": "^[A-Z]"}, "number": {"type": "integer", "minimum": 1}},
    "required": ["street", "number"],
    "additionalProperties": False,
}


def test_only_a_digest_of_the_token_is_stored(jobs: Jobs, inbox: Inbox) -> None:
    asked = inbox.ask(SHIP, by="ada")
    stored = jobs.store.backend.execute("Scan", {"TableName": "jobtable"})["Items"]
    assert asked.token not in str(stored)
    assert token_digest(asked.token) in str(stored)
    assert (asked.task.kind, asked.task.system, asked.task.created_by) == (TaskKind.QUESTION, "workflows", "ada")


def test_an_answer_closes_a_question(inbox: Inbox) -> None:
    asked = inbox.ask(SHIP)
    answered = inbox.answer(asked.task.task_id, "yes", by="ada")
    assert (answered.status, answered.answer, answered.closed_by) == (TaskStatus.ANSWERED, "yes", "ada")
    for act in (inbox.answer, lambda task_id, _: inbox.reject(task_id)):
        with pytest.raises(TaskClosedError, match="already answered by ada"):
            act(asked.task.task_id, "no")
    with pytest.raises(TaskClosedError, match="is a question; answer or reject it"):
        inbox.accept(asked.task.task_id)


@pytest.mark.parametrize(
    ("schema", "answer", "why"),
    [
        (ADDRESS, {"street": "Elm"}, '"number" is a required property'),
        (ADDRESS, {"street": "elm", "number": 1}, "street: "),
        (ADDRESS, {"street": "Elm", "number": 0}, "number: 0 is less than the minimum of 1"),
        (ADDRESS, {"street": "Elm", "number": 1, "more": 2}, "more"),
        (ADDRESS, "Elm 1", 'is not of type "object"'),
        (None, "", "answer: "),
        (None, 5, 'answer: 5 is not of type "string"'),
    ],
)
def test_an_answer_must_meet_the_schema(inbox: Inbox, schema: Any, answer: Any, why: str) -> None:
    asked = inbox.ask(Question("Where to?", schema=schema))
    with pytest.raises(ValueRefusedError, match=why):
        inbox.answer(asked.task.task_id, answer)
    assert inbox.get(asked.task.task_id) == asked.task
    good = "Elm 1" if schema is None else {"street": "Elm", "number": 1}
    assert inbox.answer(asked.task.task_id, good).answer == good


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"pattern": "("},
        ["a"],
        5,
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused(inbox: Inbox, schema: Any) -> None:
    with pytest.raises(ValueRefusedError, match="the schema of the answer is invalid"):
        inbox.ask(Question("Where to?", schema=schema))
    assert list(inbox.list()) == []


@pytest.mark.parametrize(
    ("question", "error", "why"),
    [
        (Question("", choices=["a"]), ValueError, "title"),
        (Question("?", choices=["a"], schema={}), ValueRefusedError, "not both"),
        (Question("?", choices=["a"], schema={"type": "string"}), ValueRefusedError, "not both"),
        (Question("?", answer_within=timedelta(0)), ValueRefusedError, "from a second to 366 days"),
        (Question("?", answer_within=timedelta(days=367)), ValueRefusedError, "from a second to 366 days"),
        (Question("?", deliver="no.such:sender"), DefinitionError, "cannot load the function that sends tokens"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(
    inbox: Inbox, question: Question, error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        inbox.ask(question)
    assert list(inbox.list()) == []


def test_a_token_answers_its_question_alone(inbox: Inbox) -> None:
    asked, other = inbox.ask(SHIP), inbox.ask(SHIP)
    for wrong in (other.token, "", "\udcff", token_digest(asked.token)):
        with pytest.raises(TokenRefusedError, match="does not belong to task"):
            inbox.answer(asked.task.task_id, "yes", token=wrong)
        with pytest.raises(TokenRefusedError):
            inbox.reject(asked.task.task_id, token=wrong)
    assert inbox.answer(asked.task.task_id, "yes", token=asked.token).status is TaskStatus.ANSWERED


def test_a_renewed_token_replaces_the_first(inbox: Inbox) -> None:
    asked = inbox.ask(SHIP)
    token = inbox.renew_token(asked.task.task_id)
    with pytest.raises(TokenRefusedError):
        inbox.answer(asked.task.task_id, "yes", token=asked.token)
    inbox.answer(asked.task.task_id, "yes", token=token)
    with pytest.raises(TaskClosedError):
        inbox.renew_token(asked.task.task_id)


def test_a_question_is_delivered_with_its_token(inbox: Inbox) -> None:
    asked = inbox.ask(Question("?", deliver=f"{HERE}:deliver"))
    assert [(asked.task, asked.token)] == labels.DELIVERED


def test_a_question_that_cannot_be_delivered_waits(inbox: Inbox) -> None:
    asked = inbox.ask(Question("?", deliver=f"{HERE}:fail_to_deliver"))
    assert asked.task.delivery_problem == f"{HERE}:fail_to_deliver failed: RuntimeError: the mail server is down"
    assert inbox.get(asked.task.task_id) == asked.task
    assert inbox.answer(asked.task.task_id, "here").status is TaskStatus.ANSWERED


def test_a_question_expires(inbox: Inbox, watch: InboxWatch, clock: FakeClock) -> None:
    asked = inbox.ask(SHIP)
    clock.advance(3601)
    with pytest.raises(TaskClosedError, match="expired at"):
        inbox.answer(asked.task.task_id, "yes")
    assert inbox.get(asked.task.task_id).status is TaskStatus.EXPIRED
    assert watch.look() == {}


def test_a_forged_workflow_token_asks_nobody(inbox: Inbox) -> None:
    for token in ("AQCE", "x" * 500, ""):
        with pytest.raises(TokenRefusedError, match="no workflow of this store waits with this token"):
            inbox.ask(SHIP, workflow_token=token)
    assert list(inbox.list()) == []


def test_questions_and_proposals_are_told_apart(inbox: Inbox) -> None:
    asked, made = inbox.ask(SHIP).task, inbox.propose(labels.renaming("q"))
    assert list(inbox.list(kind=TaskKind.QUESTION)) == [asked]
    assert list(inbox.list(kind=TaskKind.PROPOSAL)) == [made]
    assert list(inbox.list_of_system("workflows")) == [asked]
    assert list(inbox.list_of_system("jobs", kind=TaskKind.QUESTION)) == []
    assert list(inbox.list_due()) == sorted([asked, made], key=lambda task: task.expires_at)


def test_a_task_of_another_program_is_read(jobs: Jobs, inbox: Inbox) -> None:
    """Only what the keys need must be there."""
    now = jobs.clock.now()
    given: dict[str, Any] = {"task_id": "t", "kind": TaskKind.QUESTION, "system": "x", "title": "?", "created_by": "y"}
    task = InboxTask(**given, created_at=now, expires_at=now)
    jobs.store.add(task)
    assert inbox.get("t") == task
