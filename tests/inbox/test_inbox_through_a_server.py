"""The inbox of a server: its verbs over HTTP, the roles that may use them, and the proposals of workers elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.inbox.labels import HERE, renaming
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.errors import (
    DefinitionError,
    LeaseLostError,
    NotFoundError,
    StaleProposalError,
    TaskClosedError,
    TokenRefusedError,
    ValueRefusedError,
)
from jobtable.inbox import Inbox, Question
from jobtable.inbox.entities import TaskStatus
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.tasks import resolve
from jobtable.remote.work import ServerWork, open_work
from jobtable.settings import Settings

SHIP = Question("Ship it?", choices=["yes", "no"], answer_within=timedelta(hours=1), about="/jobs", system="shop")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    made = Served(require_token=True)
    yield made
    made.stop()


@pytest.fixture
def queue(served: Served, request: pytest.FixtureRequest) -> str:
    """A queue of this test, whose description is A."""
    name = f"q-{request.node.name}"[:80]
    served.services.engine.create_queue(name, description="A", priority=0)
    return name


@pytest.fixture
def inbox(served: Served) -> Iterator[Inbox]:
    with Services.from_settings(Settings(server=served.url, token=served.token(Role.FULL))) as services:
        yield services.inbox


@pytest.fixture
def work(served: Served) -> Iterator[ServerWork]:
    opened = open_work(served.url, served.token(Role.WORKER))
    yield opened
    opened.store.close()


def test_a_proposal_goes_through_a_server(served: Served, inbox: Inbox, queue: str) -> None:
    proposal = renaming(queue, reason="clearer", confidence=0.5, calls=("chat-1",), cost_nanodollars=5, key=queue)
    made = inbox.propose(proposal)
    assert made == served.services.inbox.get(made.task_id)
    assert (made.created_by, made.confidence, made.call_ids, made.payload) == (
        "full",
        0.5,
        ["chat-1"],
        {"queue": queue},
    )
    assert inbox.propose(proposal) == made
    accepted = inbox.accept(made.task_id)
    assert (accepted.status, accepted.closed_by) == (TaskStatus.ACCEPTED, "full")
    assert served.services.engine.queries.get_queue(queue).description == "B"
    with pytest.raises(TaskClosedError, match="already accepted by full"):
        inbox.reject(made.task_id)


def test_what_is_refused_is_refused_as_at_the_store(inbox: Inbox, queue: str) -> None:
    with pytest.raises(DefinitionError, match="not marked with @applies"):
        inbox.propose(renaming(queue, apply="os:system"))
    stale = inbox.propose(renaming(queue, before="Z"))
    with pytest.raises(StaleProposalError, match='description was "Z" when it was proposed and is "A" now'):
        inbox.accept(stale.task_id)
    with pytest.raises(NotFoundError):
        inbox.accept("nobody")
    closed = list(inbox.accept_many([stale.task_id, "nobody"]))
    assert [type(each.error) for each in closed] == [StaleProposalError, NotFoundError]
    (rejected,) = inbox.reject_many([stale.task_id], remark="too late")
    assert rejected.task is not None
    assert rejected.task.remark == "too late"
    assert inbox.withdraw(inbox.propose(renaming(queue)).task_id).status is TaskStatus.WITHDRAWN


def test_a_question_goes_through_a_server(inbox: Inbox) -> None:
    asked = inbox.ask(SHIP)
    assert asked.task.system == "shop"
    assert (asked.task.title, asked.task.about, asked.task.answer_schema) == (
        "Ship it?",
        "/jobs",
        {"enum": ["yes", "no"]},
    )
    with pytest.raises(ValueRefusedError, match="is invalid"):
        inbox.answer(asked.task.task_id, "perhaps")
    with pytest.raises(TokenRefusedError, match="does not belong"):
        inbox.answer(asked.task.task_id, "yes", token="wrong")
    token = inbox.renew_token(asked.task.task_id)
    assert inbox.answer(asked.task.task_id, "yes", token=token).answer == "yes"
    with pytest.raises(TokenRefusedError, match="no workflow of this store"):
        inbox.ask(SHIP, workflow_token="forged")


def test_rules_go_through_a_server(inbox: Inbox, queue: str) -> None:
    rule = inbox.add_rule(subject=queue, least_confidence=0.5, fields=["description"])
    assert rule in list(inbox.list_rules())
    made = inbox.propose(renaming(queue, subject=queue, confidence=0.5))
    assert (made.status, made.closed_by) == (TaskStatus.ACCEPTED, f"rule {rule.rule_id}")
    inbox.remove_rule(rule.rule_id)
    with pytest.raises(NotFoundError, match="inbox rule"):
        inbox.remove_rule(rule.rule_id)
    with pytest.raises(ValueRefusedError, match="at least one condition"):
        inbox.add_rule()


def test_a_worker_elsewhere_proposes_for_the_job_that_it_holds(served: Served, work: ServerWork, queue: str) -> None:
    job = served.services.engine.submit(
        NewJob(name="far", task=f"{HERE}:propose_twice", params={"queue": queue}, queue=queue, user="ada")
    )
    (lease,) = work.claim(queue, limit=1, instance_id="far", lease_seconds=60)
    with JobContext(work, lease) as context, pytest.raises(RuntimeError) as raised:
        run_task_of(context)
    first, again, other = raised.value.args[0]
    assert first == again != other
    made = served.services.inbox.get(first)
    assert (made.job_id, made.created_by, made.system) == (job.job_id, "ada", "jobs")
    work.release(lease, "taken away")
    with JobContext(work, lease) as context, pytest.raises(LeaseLostError):
        context.propose(renaming(queue, "D"))
    assert len([task for task in served.services.inbox.list() if task.job_id == job.job_id]) == 2


def run_task_of(context: JobContext) -> Any:
    return resolve(str(context.definition.task)).call(context, context.params)


def test_only_those_with_full_access_close_tasks(served: Served, queue: str) -> None:
    made = served.services.inbox.propose(renaming(queue))
    asked = served.services.inbox.ask(SHIP)
    reader, worker = served.client(Role.READ), served.client(Role.WORKER)
    path = f"/api/v1/inbox/{made.task_id}"
    shown = reader.get(path)
    assert shown.status_code == 200
    assert not {"token_sha256", "workflow", "due_at"} & shown.json().keys()
    assert worker.get(path).status_code == 403
    bodies: dict[str, Any] = {
        f"{path}/accept": None,
        f"{path}/reject": {},
        f"{path}/withdraw": None,
        f"/api/v1/inbox/{asked.task.task_id}/answer": {"answer": "yes", "token": asked.token},
        f"/api/v1/inbox/{asked.task.task_id}/token": None,
        "/api/v1/inbox-batches/accept": {"task_ids": [made.task_id]},
        "/api/v1/inbox-rules": {"subject": "label"},
        "/api/v1/inbox-questions": {"title": "?"},
    }
    for address, body in bodies.items():
        for client in (reader, worker, served.client()):
            assert client.post(address, json=body).status_code in (401, 403), address
    assert served.services.inbox.get(made.task_id) == made
    assert served.services.inbox.get(asked.task.task_id) == asked.task


def test_lists_have_filters_and_pages(served: Served, queue: str) -> None:
    for number in range(5):
        served.services.inbox.propose(renaming(queue, key=f"{queue}{number}", system=queue))
    client = served.client(Role.READ)
    found, cursor = [], None
    while True:
        query: dict[str, Any] = {"system": queue, "kind": "proposal", "limit": 2}
        query |= {"cursor": cursor} if cursor else {}
        page = client.get("/api/v1/inbox", params=query).json()
        found += [task["task_id"] for task in page["items"]]
        if (cursor := page["cursor"]) is None:
            break
    assert found == [task.task_id for task in served.services.inbox.list_of_system(queue)]
    assert len(found) == 5
    assert client.get("/api/v1/inbox", params={"system": queue, "kind": "question"}).json()["items"] == []
    assert client.get("/api/v1/inbox", params={"status": "unknown"}).status_code == 422
    waiting = client.get("/api/v1/inbox-waiting").json()
    assert {task["task_id"] for task in waiting} >= set(found)
