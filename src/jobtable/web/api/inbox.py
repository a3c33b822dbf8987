"""The inbox of people: questions and proposals, and the rules that accept proposals."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from jobtable.inbox.closing import LONGEST_REMARK
from jobtable.inbox.entities import InboxRule, InboxTask, TaskKind, TaskStatus
from jobtable.inbox.inbox import Closed, Inbox
from jobtable.inbox.proposal_desk import ProposalDesk
from jobtable.inbox.question_messages import QuestionMessage
from jobtable.inbox.waiting_tasks import Waiting, list_waiting
from jobtable.jobs.report.proposing import FieldChange, Proposal
from jobtable.web.api.route_parts import Body, Name, api_router
from jobtable.web.api.work import LeaseBody, held_lease
from jobtable.web.guard import READ, WORK, WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import (
    AllServices,
    CallerName,
    Instant,
    JobId,
    PageOf,
    Paging,
    TheInbox,
    TheJobs,
    path_id,
)
from jobtable.web.problems import Problem, problem_of

router = api_router("inbox")
creation = api_router("inbox", CreationRoute)

TaskId = Annotated[str, path_id("5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")]
RuleId = Annotated[str, path_id("3f6c1a2b4d5e")]

_Path = Annotated[str, Field(pattern=r"^[\w.]+:[\w.]+$", max_length=500)]
_Confidence = Annotated[float, Field(ge=0, le=1)]
_Nanodollars = Annotated[int, Field(ge=0, le=10**18)]
_Remark = Annotated[str | None, Field(max_length=LONGEST_REMARK)]
_MOST_AT_ONCE = 100
_LONGEST = timedelta(days=366).total_seconds()


class ProposalBody(Body):
    """A change to propose."""

    title: Name = Field(examples=["Call topic 3 `Parking`"])
    changes: list[FieldChange] = Field(max_length=1000)
    apply: _Path = Field(description="Function of the server, marked with @applies.")
    payload: Any = None
    reason: str = Field("", max_length=10_000)
    text: str = Field("", max_length=100_000)
    subject: str = Field("", max_length=200, description="What is changed, in a word or two.")
    system: Name | None = None
    about: str | None = Field(None, max_length=2000, description="Path of the page of what is changed.")
    confidence: _Confidence | None = None
    calls: list[str] = Field([], max_length=1000, description="Ids of the assistant's calls under the job.")
    cost_nanodollars: _Nanodollars = 0
    expires_in_seconds: float = Field(30 * 86400.0, gt=0, le=_LONGEST)
    key: str | None = Field(None, min_length=1, max_length=1000, description="A second one with it is the first.")

    def proposal(self) -> Proposal:
        """Return the proposal."""
        given = {name: getattr(self, name) for name in ProposalBody.model_fields if name in Proposal.__annotations__}
        given |= {"calls": tuple(self.calls), "expires_in": timedelta(seconds=self.expires_in_seconds)}
        return Proposal(**given)


class JobProposalBody(LeaseBody, ProposalBody):
    """A change that a job proposes."""


class InboxTaskView(BaseModel):
    """A task of the inbox, without the digest of its token."""

    model_config = ConfigDict(from_attributes=True)

    task_id: str
    kind: TaskKind
    system: str
    title: str
    text: str
    about: str | None
    status: TaskStatus
    created_at: Instant
    created_by: str
    expires_at: Instant
    closed_by: str | None
    closed_at: Instant | None
    remark: str | None
    problem: str | None
    subject: str
    changes: list[FieldChange]
    apply: str | None
    payload: Any
    reason: str
    confidence: float | None
    job_id: str | None
    call_ids: list[str]
    cost_nanodollars: int
    answer_schema: Any
    answer: Any
    deliver: str | None
    delivery_problem: str | None


class AskedTask(InboxTaskView):
    """A new question, and the token that answers it, which is shown only this once."""

    token: str


class InboxAnswerBody(Body):
    """An answer. Without a token, the caller's own access counts."""

    answer: Any = Field(examples=["yes"])
    token: str | None = Field(None, min_length=1, max_length=500)


class RejectionBody(Body):
    """What to say about a rejection."""

    remark: _Remark = None
    token: str | None = Field(None, min_length=1, max_length=500)


class ManyTasksBody(Body):
    """The tasks to act on. An invalid id counts as a missing task and does not stop the others."""

    task_ids: list[str] = Field(min_length=1, max_length=_MOST_AT_ONCE)


class RejectManyBody(ManyTasksBody):
    """The tasks to reject, and what to say about it."""

    remark: _Remark = None


class TaskOutcome(BaseModel):
    """The outcome for one task: the task as it is now, or the problem that a single request would return."""

    task_id: str
    task: InboxTaskView | None = None
    problem: Problem | None = None


class TaskOutcomes(BaseModel):
    """The outcomes in the order of the request, and how many succeeded and were refused."""

    done: int
    refused: int
    outcomes: list[TaskOutcome]


class RuleBody(Body):
    """The conditions of a rule, all of which a proposal must meet. At least one is needed."""

    system: Name | None = None
    subject: Name | None = None
    fields: list[Name] = Field([], max_length=100, description="The only fields that a proposal may change.")
    most_cost_nanodollars: _Nanodollars | None = None
    least_confidence: _Confidence | None = None
    predicate: _Path | None = Field(None, description="Function of the server, marked with @accepts.")


class NewAnswerToken(BaseModel):
    """The token that answers a question. It is shown only this once."""

    token: str


def _view(task: InboxTask) -> InboxTaskView:
    return InboxTaskView.model_validate(task)


@router.get("/inbox")
@allow(READ)
def list_inbox(
    inbox: TheInbox,
    paging: Paging,
    status: TaskStatus = TaskStatus.PENDING,
    system: Name | None = None,
    kind: TaskKind | None = None,
) -> PageOf[InboxTaskView]:
    """List tasks with a status: all of them by creation, or those of one system by their due time."""
    found = inbox.list(status, kind=kind) if system is None else inbox.list_of_system(system, status, kind=kind)
    page = paging.page(found)
    return PageOf(items=[_view(task) for task in page.items], cursor=page.cursor)


@router.get("/inbox-waiting")
@allow(READ)
def list_everything_waiting(services: AllServices) -> list[Waiting]:
    """List the oldest tasks that wait for a person, also those that systems keep themselves."""
    return list_waiting(services.jobs, 100)


@router.get("/inbox/{task_id}")
@allow(READ)
def get_inbox_task(task_id: TaskId, inbox: TheInbox) -> InboxTaskView:
    """Return a task."""
    return _view(inbox.get(task_id))


@creation.post("/inbox-proposals", status_code=201)
@allow(WRITE)
def propose_change(body: ProposalBody, inbox: TheInbox, caller: CallerName) -> InboxTaskView:
    """Propose a change. A rule may accept it at once; one with the same key is returned as it is."""
    return _view(inbox.propose(body.proposal(), by=caller))


@router.post("/inbox-questions", status_code=201)
@allow(WRITE)
def ask_question(body: QuestionMessage, inbox: TheInbox, caller: CallerName) -> AskedTask:
    """Ask a person. `token` is the task token or callback id of the workflow that waits for the answer."""
    asked = inbox.ask(body.question(), by=caller, workflow_token=body.token)
    return AskedTask(token=asked.token, **_view(asked.task).model_dump())


@creation.post("/jobs/{job_id}/proposals", status_code=201)
@allow(WORK)
def propose_for_job(job_id: JobId, body: JobProposalBody, jobs: TheJobs) -> InboxTaskView:
    """Propose a change on behalf of a job that the worker holds. A retry of the job finds its first proposal."""
    proposed = ProposalDesk(jobs, held_lease(jobs, job_id, body)).propose(body.proposal())
    return _view(Inbox(jobs).get(proposed.task_id))


@router.post("/inbox/{task_id}/accept")
@allow(WRITE)
def accept_proposal(task_id: TaskId, inbox: TheInbox, caller: CallerName) -> InboxTaskView:
    """Apply a proposal in the transaction that accepts it; 409 with what has changed if it is stale."""
    return _view(inbox.accept(task_id, by=caller))


@router.post("/inbox/{task_id}/reject")
@allow(WRITE)
def reject_task(task_id: TaskId, body: RejectionBody, inbox: TheInbox, caller: CallerName) -> InboxTaskView:
    """Reject a proposal, or refuse to answer a question: its workflow gets the error that the question names."""
    return _view(inbox.reject(task_id, by=caller, remark=body.remark, token=body.token))


@router.post("/inbox/{task_id}/answer")
@allow(WRITE)
def answer_question(task_id: TaskId, body: InboxAnswerBody, inbox: TheInbox, caller: CallerName) -> InboxTaskView:
    """Answer a question as its schema says. Of several answers one wins."""
    return _view(inbox.answer(task_id, body.answer, by=caller, token=body.token))


@router.post("/inbox/{task_id}/withdraw")
@allow(WRITE)
def withdraw_task(task_id: TaskId, inbox: TheInbox, caller: CallerName) -> InboxTaskView:
    """Withdraw a task that nobody needs any more; 409 if a workflow waits for it."""
    return _view(inbox.withdraw(task_id, by=caller))


@router.post("/inbox/{task_id}/token")
@allow(WRITE)
def renew_answer_token(task_id: TaskId, inbox: TheInbox) -> NewAnswerToken:
    """Return a new token for a pending question; the previous one becomes invalid."""
    return NewAnswerToken(token=inbox.renew_token(task_id))


@router.post("/inbox-batches/accept")
@allow(WRITE)
def accept_proposals(body: ManyTasksBody, inbox: TheInbox, caller: CallerName) -> TaskOutcomes:
    """Accept up to 100 proposals. One that cannot be accepted does not stop the others."""
    return _outcomes(inbox.accept_many(body.task_ids, by=caller))


@router.post("/inbox-batches/reject")
@allow(WRITE)
def reject_tasks(body: RejectManyBody, inbox: TheInbox, caller: CallerName) -> TaskOutcomes:
    """Reject up to 100 tasks. One that cannot be rejected does not stop the others."""
    return _outcomes(inbox.reject_many(body.task_ids, by=caller, remark=body.remark))


def _outcomes(closed: Iterable[Closed]) -> TaskOutcomes:
    outcomes = [
        TaskOutcome(
            task_id=each.task_id,
            task=None if each.task is None else _view(each.task),
            problem=None if each.error is None else problem_of(each.error),
        )
        for each in closed
    ]
    refused = sum(each.problem is not None for each in outcomes)
    return TaskOutcomes(done=len(outcomes) - refused, refused=refused, outcomes=outcomes)


# --- rules ------------------------------------------------------------------------------------------------------------


@router.get("/inbox-rules")
@allow(READ)
def list_inbox_rules(inbox: TheInbox, paging: Paging) -> PageOf[InboxRule]:
    """List the rules that accept proposals, in no particular order."""
    return paging.page(inbox.list_rules())


@creation.post("/inbox-rules", status_code=201)
@allow(WRITE)
def add_inbox_rule(body: RuleBody, inbox: TheInbox, caller: CallerName) -> InboxRule:
    """Add a rule for what is proposed from now on."""
    return inbox.add_rule(by=caller, **body.model_dump())


@router.delete("/inbox-rules/{rule_id}", status_code=204)
@allow(WRITE)
def remove_inbox_rule(rule_id: RuleId, inbox: TheInbox) -> Response:
    """Delete a rule. What it has accepted stays accepted."""
    inbox.remove_rule(rule_id)
    return Response(status_code=204)
