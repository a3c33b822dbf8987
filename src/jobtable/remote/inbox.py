"""The inbox of a server: read through its store, changed by its REST API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import islice
from typing import Any, Unpack

from pydantic_core import to_jsonable_python

from jobtable.errors import RequestError
from jobtable.inbox.acceptance_rules import Conditions
from jobtable.inbox.entities import InboxRule, InboxTask
from jobtable.inbox.inbox import Closed, Inbox
from jobtable.inbox.inbox_reads import InboxReads
from jobtable.inbox.questions import Asked, Question
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.proposing import Proposal, Proposed, Proposing
from jobtable.jobs.verbs import WorkVerbs
from jobtable.model import Json
from jobtable.remote.recording import lease_of
from jobtable.remote.server_requests import Server, error_of, path_of
from jobtable.store import Store

_MOST_AT_ONCE = 100


class ServerInbox(Inbox):
    """The verbs of people on a server, where the caller's token says who they are."""

    def __init__(self, server: Server, store: Store) -> None:
        InboxReads.__init__(self, store)
        self._server = server

    def propose(self, proposal: Proposal, *, by: str = "local") -> InboxTask:
        return self.get(self._server.create("/inbox-proposals", _body(proposal))["task_id"])

    def ask(self, question: Question, *, by: str = "local", workflow_token: str | None = None) -> Asked:
        body = {each.name: to_jsonable_python(getattr(question, each.name)) for each in fields(Question)}
        body["answer_within_seconds"] = question.answer_within.total_seconds()
        del body["answer_within"]
        asked = self._server.write("POST", "/inbox-questions", {**body, "token": workflow_token})
        return Asked(self.get(asked["task_id"]), asked["token"])

    def accept(self, task_id: str, *, by: str = "local") -> InboxTask:
        return self._act(task_id, "accept")

    def reject(
        self, task_id: str, *, by: str = "local", remark: str | None = None, token: str | None = None
    ) -> InboxTask:
        return self._act(task_id, "reject", {"remark": remark, "token": token})

    def answer(self, task_id: str, answer: Json, *, by: str = "local", token: str | None = None) -> InboxTask:
        return self._act(task_id, "answer", {"answer": answer, "token": token})

    def withdraw(self, task_id: str, *, by: str = "local") -> InboxTask:
        return self._act(task_id, "withdraw")

    def renew_token(self, task_id: str) -> str:
        return str(self._server.write("POST", path_of("inbox", task_id, "token"))["token"])

    def accept_many(self, task_ids: Iterable[str], *, by: str = "local") -> Iterator[Closed]:
        return self._act_on_many("accept", task_ids)

    def reject_many(self, task_ids: Iterable[str], *, by: str = "local", remark: str | None = None) -> Iterator[Closed]:
        return self._act_on_many("reject", task_ids, remark=remark)

    def add_rule(self, *, by: str = "local", **conditions: Unpack[Conditions]) -> InboxRule:
        return InboxRule.model_validate(self._server.create("/inbox-rules", conditions))

    def remove_rule(self, rule_id: str) -> None:
        self._server.write("DELETE", path_of("inbox-rules", rule_id))

    def _act(self, task_id: str, verb: str, body: Any = None) -> InboxTask:
        self._server.write("POST", path_of("inbox", task_id, verb), body)
        return self.get(task_id)

    def _act_on_many(self, verb: str, task_ids: Iterable[str], **more: Any) -> Iterator[Closed]:
        waiting = iter(task_ids)
        while some := list(islice(waiting, _MOST_AT_ONCE)):
            try:
                answer = self._server.write("POST", f"/inbox-batches/{verb}", {"task_ids": some, **more})
            except RequestError as error:  # the requests after it are not sent
                yield from (Closed(task_id, error=error) for task_id in (*some, *waiting))
                return
            for outcome in answer["outcomes"]:
                if outcome["problem"] is None:
                    yield Closed(outcome["task_id"], self.get(outcome["task_id"]))
                else:
                    yield Closed(outcome["task_id"], error=error_of(outcome["problem"], self._server.url))


class ServerProposalDesk(Proposing):
    """The proposals of a run of a worker that has only a server."""

    def __init__(self, server: Server, work: WorkVerbs, lease: Lease) -> None:
        self._server = server
        self._lease = lease

    def propose(self, proposal: Proposal) -> Proposed:
        path = path_of("jobs", self._lease.job.job_id, "proposals")
        made = self._server.create(path, {**lease_of(self._lease), **_body(proposal)})
        return Proposed(made["task_id"], made["status"])


def _body(proposal: Proposal) -> dict[str, Any]:
    given = {each.name: to_jsonable_python(getattr(proposal, each.name)) for each in fields(Proposal)}
    del given["expires_in"]
    return {**given, "expires_in_seconds": proposal.expires_in.total_seconds()}
