"""Proposals: put into the inbox, and applied in the transaction that accepts them."""

from __future__ import annotations

import json
import uuid
from contextlib import nullcontext
from typing import Any

from jobtable.clock import wall_time
from jobtable.errors import (
    ConflictError,
    JobtableError,
    LeaseLostError,
    NotFoundError,
    StaleProposalError,
    TransactionFailedError,
    ValueRefusedError,
    kind_and_text,
)
from jobtable.inbox.acceptance_rules import Rules
from jobtable.inbox.closing import BY_TIME, add_closing, close, refuse_closed
from jobtable.inbox.entities import InboxRule, InboxTask, TaskKind, TaskStatus
from jobtable.inbox.users_functions import load_marked
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, check_lease, lost_if_refused
from jobtable.jobs.lifecycle.owners import owner_of
from jobtable.jobs.report.proposing import FieldChange, Proposal
from jobtable.jobs.stored.entities import Job
from jobtable.store.transactions import Failure, Transaction

OWN_JOBS = "jobs"
"""The system of what users' own jobs propose."""
LONGEST_PROBLEM = 2000
_IDS = uuid.UUID("0f6c2f0e-0b0d-5d0a-8a3c-3a54c9a6c1d7")


class Proposals:
    """Proposals on one job engine. Safe to use from any thread and process."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._store = jobs.store
        self._rules = Rules(jobs.store)

    def propose(self, proposal: Proposal, *, by: str = "local", lease: Lease | None = None) -> InboxTask:
        """Store a proposal, or apply it at once if a rule accepts it; one that exists is returned as it is.

        With a lease, LeaseLostError if it is not held. DefinitionError if its function cannot be loaded.
        """
        load_marked(proposal.apply, "@applies")
        task = self._task_of(proposal, by, None if lease is None else lease.job)
        existing = self._store.find(InboxTask.key(task_id=task.task_id))
        if existing is not None:
            return existing
        rule, problem = self._rules.find_accepting(task)
        if rule is not None:
            try:
                return self._add(_accepted(task, rule), lease, rule)
            except JobtableError as error:
                if error.retryable or isinstance(error, LeaseLostError):
                    raise
                problem = f"rule {rule.rule_id} accepts it, but: {error}"
        return self._add(task.replace(problem=problem and problem[:LONGEST_PROBLEM]), lease)

    def _task_of(self, proposal: Proposal, by: str, job: Job | None) -> InboxTask:
        owner = None if job is None else owner_of(job)
        system = proposal.system or (OWN_JOBS if owner is None else owner.system)
        now = self._store.clock.now()
        if proposal.expires_in.total_seconds() <= 0:
            raise ValueRefusedError(f"expires_in must be positive, not {proposal.expires_in}")
        expires_at = wall_time(self._store.clock) + proposal.expires_in
        return InboxTask(
            task_id=_id_of(proposal, system, job),
            kind=TaskKind.PROPOSAL,
            system=system,
            title=proposal.title,
            text=proposal.text,
            about=proposal.about,
            created_at=now,
            created_by=by,
            expires_at=expires_at,
            due_at=expires_at,
            subject=proposal.subject,
            changes=list(proposal.changes),
            apply=proposal.apply,
            payload=proposal.payload,
            reason=proposal.reason,
            confidence=proposal.confidence,
            job_id=None if job is None else job.job_id,
            call_ids=list(proposal.calls),
            cost_nanodollars=proposal.cost_nanodollars,
        )

    def _add(self, task: InboxTask, lease: Lease | None, rule: InboxRule | None = None) -> InboxTask:
        """Store a task; if a rule has accepted it, with what it changes, as long as the rule exists."""
        tx = self._store.transaction()
        tx.add(task)
        if lease is not None:
            check_lease(tx, lease)
        if rule is not None:
            tx.check(InboxRule.key(rule_id=rule.rule_id), InboxRule.created_at.exists())
        own = len(tx)
        if rule is not None:
            self._add_change(tx, task)
        with nullcontext() if lease is None else lost_if_refused(lease):
            try:
                tx.commit()
            except TransactionFailedError as error:
                existing = self._store.find(InboxTask.key(task_id=task.task_id))
                if existing is not None:  # the same proposal was faster
                    return existing
                if changed := [failure for failure in error.failures if failure.index >= own]:
                    raise _stale(task, changed) from error
                raise
        return task

    # --- accepting --------------------------------------------------------------------------------------------------

    def accept(self, task_id: str, *, by: str = "local") -> InboxTask:
        """Apply a proposal in the transaction that accepts it. Of several who accept or reject it, one wins.

        TaskClosedError if it is closed. StaleProposalError if what it changes has changed: nothing was applied, the
        reason is recorded, and the proposal still waits.
        """
        task = self._store.get(InboxTask.key(task_id=task_id))
        refuse_closed(task, TaskKind.PROPOSAL)
        if wall_time(self._store.clock) >= task.expires_at:
            refuse_closed(close(self._store, task_id, TaskStatus.EXPIRED, BY_TIME))
        tx = self._store.transaction()
        add_closing(tx, task, TaskStatus.ACCEPTED, by, self._store.clock.now(), InboxTask.problem.set(None))
        try:
            self._add_change(tx, task)
            tx.commit()
        except TransactionFailedError as error:
            refuse_closed(self._store.get(InboxTask.key(task_id=task_id)))
            stale = _stale(task, [failure for failure in error.failures if failure.index > 0])
            self._record(task, stale)
            raise stale from error
        except JobtableError as error:
            if not error.retryable:
                self._record(task, error)
            raise
        return self._store.get(InboxTask.key(task_id=task_id))

    def _add_change(self, tx: Transaction, task: InboxTask) -> None:
        """Let the proposal's function add what it changes, and the conditions under which that is right."""
        apply = load_marked(str(task.apply), "@applies")
        try:
            apply(tx, task, self._jobs)
        except StaleProposalError:
            raise
        except (ConflictError, NotFoundError) as error:
            raise StaleProposalError(f"proposal {task.task_id} no longer fits: {error}") from error
        except Exception as error:  # whatever a user's function raises
            what = str(error) if isinstance(error, JobtableError) else kind_and_text(error)
            raise ConflictError(
                f"proposal {task.task_id} could not be applied: {task.apply} failed: {what}; nothing was changed"
            ) from error

    def _record(self, task: InboxTask, error: JobtableError) -> None:
        """Note in a proposal that still waits why it could not be applied, for the next one who looks at it."""
        problem = InboxTask.problem.set(str(error)[:LONGEST_PROBLEM])
        try:
            self._store.update(
                InboxTask.key(task_id=task.task_id), problem, when=InboxTask.status == TaskStatus.PENDING
            )
        except ConflictError:  # it was closed meanwhile, which says more
            return


def _accepted(task: InboxTask, rule: InboxRule) -> InboxTask:
    return task.replace(
        status=TaskStatus.ACCEPTED, closed_by=f"rule {rule.rule_id}", closed_at=task.created_at, due_at=None
    )


def _id_of(proposal: Proposal, system: str, job: Job | None) -> str:
    """Return the id of a proposal: the same one for the same proposal of the same job."""
    if job is None and proposal.key is None:
        return str(uuid.uuid4())
    owner = f"system {system}" if job is None else f"job {job.job_id} {job.created_at.isoformat()}"
    content = {
        "title": proposal.title,
        "subject": proposal.subject,
        "about": proposal.about,
        "changes": [change.model_dump(mode="json") for change in proposal.changes],
        "apply": proposal.apply,
        "payload": proposal.payload,
    }
    return str(uuid.uuid5(_IDS, f"{owner}\n{proposal.key or json.dumps(content, sort_keys=True)}"))


def _stale(task: InboxTask, failures: list[Failure]) -> StaleProposalError:
    """Return the error that says what has changed since a proposal was made, by its fields where they are known."""
    changed = [text for failure in failures for text in _differences(task.changes, failure)]
    what = "; ".join(dict.fromkeys(changed)) or "what it changes has changed"
    return StaleProposalError(
        f"proposal {task.task_id} no longer fits: {what}", hint="reject it, or accept it again when that is resolved"
    )


def _differences(changes: list[FieldChange], failure: Failure) -> list[str]:
    if failure.current is None:
        return [f"{failure.action}: it does not exist"]
    known = _values(failure.current)
    moved = [each for each in changes if each.field in known and known[each.field] != each.before]
    if not moved:
        return [f"{failure.action}: its condition is not met"]
    return [
        f"{each.field} was {_shown(each.before)} when it was proposed and is {_shown(known[each.field])} now"
        for each in moved
    ]


def _values(current: Any) -> dict[str, Any]:
    values: dict[str, Any] = current.model_dump(mode="json")
    return values


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:199]}…"
