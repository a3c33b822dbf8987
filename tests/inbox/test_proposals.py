"""Proposals: applied in the transaction that accepts them, once, or refused with what has changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.inbox.labels import HERE, renaming
from tests.running import run_jobs

from jobtable.errors import (
    ConflictError,
    DefinitionError,
    LeaseLostError,
    NotFoundError,
    RequestRefused,
    StaleProposalError,
    TaskClosedError,
    ValueRefusedError,
)
from jobtable.inbox import Inbox
from jobtable.inbox.entities import TaskStatus
from jobtable.inbox.inbox_watch import InboxWatch
from jobtable.inbox.proposal_desk import ProposalDesk
from jobtable.jobs.engine import Jobs
from jobtable.jobs.report.assistant import Assisted
from jobtable.jobs.submit.definition import NewJob
from jobtable.testing import FakeClock


def description(jobs: Jobs, queue: str = "q") -> tuple[str, int]:
    """The description of a queue, and how often a proposal has changed it."""
    found = jobs.queries.get_queue(queue)
    return found.description, found.priority


def test_a_proposal_waits_and_changes_nothing(jobs: Jobs, inbox: Inbox) -> None:
    made = inbox.propose(renaming("q", reason="B is clearer", subject="label"), by="ada")
    assert description(jobs) == ("A", 0)
    assert list(inbox.list()) == [made] == list(inbox.list_of_system("jobs"))
    assert (made.status, made.created_by, made.reason, made.system) == ("PENDING", "ada", "B is clearer", "jobs")
    assert inbox.count_pending(10) == 1


def test_an_accepted_proposal_is_applied_once(jobs: Jobs, inbox: Inbox) -> None:
    made = inbox.propose(renaming("q"))
    accepted = inbox.accept(made.task_id, by="bob")
    assert (accepted.status, accepted.closed_by) == (TaskStatus.ACCEPTED, "bob")
    assert accepted.closed_at is not None
    assert accepted.due_at is None
    assert description(jobs) == ("B", 1)
    with pytest.raises(TaskClosedError, match=f"task {made.task_id} was already accepted by bob"):
        inbox.accept(made.task_id)
    with pytest.raises(TaskClosedError, match="already accepted"):
        inbox.reject(made.task_id)
    assert description(jobs) == ("B", 1)
    assert list(inbox.list()) == []
    assert list(inbox.list(TaskStatus.ACCEPTED)) == [accepted]


def test_a_rejected_proposal_changes_nothing(jobs: Jobs, inbox: Inbox) -> None:
    made = inbox.propose(renaming("q"))
    rejected = inbox.reject(made.task_id, by="bob", remark="A is fine")
    assert (rejected.status, rejected.closed_by, rejected.remark) == (TaskStatus.REJECTED, "bob", "A is fine")
    with pytest.raises(TaskClosedError, match="already rejected by bob"):
        inbox.accept(made.task_id)
    assert description(jobs) == ("A", 0)


def test_a_stale_proposal_says_what_has_changed_and_still_waits(jobs: Jobs, inbox: Inbox) -> None:
    made = inbox.propose(renaming("q"))
    jobs.change_queue("q", description="Z")
    with pytest.raises(StaleProposalError, match='description was "A" when it was proposed and is "Z" now'):
        inbox.accept(made.task_id)
    waiting = inbox.get(made.task_id)
    assert waiting.status is TaskStatus.PENDING
    assert waiting.problem is not None
    assert '"Z" now' in waiting.problem
    assert description(jobs) == ("Z", 0)
    jobs.change_queue("q", description="A")
    assert inbox.accept(made.task_id).problem is None
    assert description(jobs) == ("B", 1)


def test_a_proposal_about_something_deleted_is_stale(jobs: Jobs, inbox: Inbox) -> None:
    made = inbox.propose(renaming("q"))
    jobs.delete_queue("q")
    with pytest.raises(StaleProposalError, match="no longer fits: there is no queue q"):
        inbox.accept(made.task_id)
    assert inbox.get(made.task_id).status is TaskStatus.PENDING


def test_a_function_that_fails_changes_nothing_and_is_noted(jobs: Jobs, inbox: Inbox) -> None:
    made = inbox.propose(renaming("q", apply=f"{HERE}:break_down"))
    with pytest.raises(ConflictError, match="break_down failed: KeyError: 'no such label'; nothing was changed"):
        inbox.accept(made.task_id)
    assert "KeyError" in str(inbox.get(made.task_id).problem)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (f"{HERE}:unmarked", "is not marked with @applies"),
        (f"{HERE}:is_polite", "is not marked with @applies"),
        ("os:system", "is not marked with @applies"),
        (f"{HERE}:missing", "cannot load"),
        ("no.such.module:apply", "cannot load"),
        ("", "cannot load"),
    ],
)
def test_only_marked_functions_are_called(inbox: Inbox, path: str, why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        inbox.propose(renaming("q", apply=path))
    assert list(inbox.list()) == []


def test_a_question_is_not_accepted_and_an_unknown_task_is_missing(inbox: Inbox) -> None:
    with pytest.raises(NotFoundError, match="inbox task"):
        inbox.accept("nobody")
    made = inbox.propose(renaming("q"))
    with pytest.raises(TaskClosedError, match="is a proposal; accept or reject it"):
        inbox.answer(made.task_id, "yes")


def test_a_proposal_that_nobody_accepts_expires(inbox: Inbox, watch: InboxWatch, clock: FakeClock) -> None:
    made = inbox.propose(renaming("q", expires_in=timedelta(days=2)))
    clock.advance(2 * 86400 - 1)
    assert watch.look() == {}
    assert inbox.get(made.task_id).status is TaskStatus.PENDING
    clock.advance(2)
    watch.look()
    assert inbox.get(made.task_id).status is TaskStatus.EXPIRED
    assert list(inbox.list_due()) == []
    with pytest.raises(TaskClosedError, match="expired at"):
        inbox.accept(made.task_id)


def test_a_proposal_is_not_accepted_after_its_time(jobs: Jobs, inbox: Inbox, clock: FakeClock) -> None:
    made = inbox.propose(renaming("q", expires_in=timedelta(days=2)))
    clock.advance(2 * 86400)
    with pytest.raises(TaskClosedError, match="expired at"):
        inbox.accept(made.task_id)
    assert (inbox.get(made.task_id).status, inbox.get(made.task_id).closed_by) == (TaskStatus.EXPIRED, "time")
    assert description(jobs) == ("A", 0)
    with pytest.raises(ValueRefusedError, match="must be positive"):
        inbox.propose(renaming("q", expires_in=timedelta(0)))


def test_what_no_transaction_can_do_is_noted(jobs: Jobs, inbox: Inbox) -> None:
    made = inbox.propose(renaming("q", apply=f"{HERE}:write_twice"))
    with pytest.raises(RequestRefused, match="cannot include multiple operations on one item"):
        inbox.accept(made.task_id)
    assert "multiple operations" in str(inbox.get(made.task_id).problem)
    inbox.add_rule(system="jobs")
    waiting = inbox.propose(renaming("q", apply=f"{HERE}:write_twice"))
    assert waiting.status is TaskStatus.PENDING
    assert "accepts it, but" in str(waiting.problem)
    assert description(jobs) == ("A", 0)


def test_many_are_accepted_each_by_itself(jobs: Jobs, inbox: Inbox) -> None:
    jobs.create_queue("p", description="A", priority=0)
    good, other = inbox.propose(renaming("q")), inbox.propose(renaming("p"))
    stale = inbox.propose(renaming("q", "C"))
    closed = list(inbox.accept_many([good.task_id, stale.task_id, "nobody", other.task_id], by="ada"))
    assert [type(each.error) for each in closed] == [type(None), StaleProposalError, NotFoundError, type(None)]
    assert description(jobs) == description(jobs, "p") == ("B", 1)
    rejected = list(inbox.reject_many([stale.task_id, good.task_id], remark="old"))
    assert [type(each.error) for each in rejected] == [type(None), TaskClosedError]


def test_a_withdrawn_proposal_is_closed(inbox: Inbox) -> None:
    made = inbox.propose(renaming("q"))
    assert inbox.withdraw(made.task_id, by="ada").status is TaskStatus.WITHDRAWN
    with pytest.raises(TaskClosedError, match="already withdrawn by ada"):
        inbox.accept(made.task_id)


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "accepted"),
    [
        ({"subject": "label"}, True),
        ({"subject": "rule"}, False),
        ({"system": "jobs"}, True),
        ({"system": "other"}, False),
        ({"fields": ["description", "name"]}, True),
        ({"fields": ["name"]}, False),
        ({"most_cost_nanodollars": 500}, True),
        ({"most_cost_nanodollars": 499}, False),
        ({"least_confidence": 0.8}, True),
        ({"least_confidence": 0.81}, False),
        ({"predicate": f"{HERE}:is_polite"}, True),
        ({"predicate": f"{HERE}:cannot_say"}, False),
        ({"subject": "label", "least_confidence": 0.9}, False),
    ],
)
def test_a_rule_accepts_what_meets_all_its_conditions(
    jobs: Jobs, inbox: Inbox, conditions: Any, accepted: bool
) -> None:
    rule = inbox.add_rule(by="ada", **conditions)
    made = inbox.propose(renaming("q", title="B, please", subject="label", confidence=0.8, cost_nanodollars=500))
    assert inbox.get(made.task_id) == made
    assert (made.status is TaskStatus.ACCEPTED) == accepted
    assert made.closed_by == (f"rule {rule.rule_id}" if accepted else None)
    assert description(jobs) == (("B", 1) if accepted else ("A", 0))


def test_a_predicate_that_fails_is_noted_and_accepts_nothing(inbox: Inbox) -> None:
    inbox.add_rule(predicate=f"{HERE}:cannot_say")
    assert "RuntimeError: what?" in str(inbox.propose(renaming("q")).problem)


def test_an_unknown_confidence_meets_no_least_one(inbox: Inbox) -> None:
    inbox.add_rule(least_confidence=0.0)
    assert inbox.propose(renaming("q")).status is TaskStatus.PENDING


def test_a_stale_proposal_that_a_rule_accepts_waits_for_a_person(jobs: Jobs, inbox: Inbox) -> None:
    rule = inbox.add_rule(system="jobs")
    made = inbox.propose(renaming("q", before="other"))
    assert made.status is TaskStatus.PENDING
    assert str(made.problem).startswith(f"rule {rule.rule_id} accepts it, but: proposal {made.task_id} no longer fits")
    assert description(jobs) == ("A", 0)


def test_rules_are_listed_and_removed(inbox: Inbox) -> None:
    rule = inbox.add_rule(subject="label", by="ada")
    assert list(inbox.list_rules()) == [rule]
    inbox.remove_rule(rule.rule_id)
    assert list(inbox.list_rules()) == []
    with pytest.raises(NotFoundError, match="inbox rule"):
        inbox.remove_rule(rule.rule_id)
    assert inbox.propose(renaming("q", subject="label")).status is TaskStatus.PENDING


def test_a_rule_needs_a_condition(inbox: Inbox) -> None:
    with pytest.raises(ValueRefusedError, match="at least one condition"):
        inbox.add_rule(fields=[], system=None)
    with pytest.raises(DefinitionError, match="not marked with @accepts"):
        inbox.add_rule(predicate="os:getenv")


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_a_retry_of_a_job_finds_its_proposals(jobs: Jobs, inbox: Inbox) -> None:
    job = jobs.submit(NewJob(name="n", task="tests.inbox.labels:propose_twice", params={"queue": "q"}, user="ada"))
    run_jobs(jobs, "default")
    assert "RuntimeError" in str(jobs.queries.get_job(job.job_id).message)
    before = list(inbox.list())
    jobs.retry(job.job_id)
    run_jobs(jobs, "default")
    first, again, other = jobs.queries.get_job(job.job_id).result
    assert first == again != other
    assert list(inbox.list()) == before
    assert sorted(each.task_id for each in before) == sorted([first, other])
    assert {(each.job_id, each.created_by) for each in before} == {(job.job_id, "ada")}


def test_a_lost_run_proposes_nothing(jobs: Jobs, inbox: Inbox) -> None:
    jobs.submit(NewJob(name="n", task="tests.inbox.labels:propose_twice", params={"queue": "q"}))
    (lease,) = jobs.claim("default", limit=1, instance_id="w", lease_seconds=60)
    jobs.release(lease, "taken away")
    inbox.add_rule(system="jobs")
    with pytest.raises(LeaseLostError):
        ProposalDesk(jobs, lease).propose(renaming("q"))
    assert list(inbox.list()) == list(inbox.list(TaskStatus.ACCEPTED)) == []
    assert description(jobs) == ("A", 0)


def test_a_proposal_names_the_calls_that_it_comes_from(inbox: Inbox) -> None:
    assisted = Assisted("B", was_asked=True, call_ids=("chat-1", "chat-2"), cost_nanodollars=7)
    made = inbox.propose(renaming("q").answered_by(assisted))
    assert (made.call_ids, made.cost_nanodollars) == (["chat-1", "chat-2"], 7)


def test_a_key_tells_proposals_of_a_system_apart(inbox: Inbox) -> None:
    first, again = inbox.propose(renaming("q", key="1")), inbox.propose(renaming("q", "C", key="1"))
    assert first == again
    assert inbox.propose(renaming("q", key="2")).task_id != first.task_id
    assert inbox.propose(renaming("q")).task_id != inbox.propose(renaming("q")).task_id
