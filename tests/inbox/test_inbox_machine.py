"""Random races of people, rules and retries over proposals: an accepted one is applied once, another one never."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.inbox.labels import HERE, renaming
from tests.running import jobs_in_memory

from jobtable.errors import ConflictError, NotFoundError, TransactionConflict
from jobtable.inbox import Inbox, Proposal
from jobtable.inbox.entities import InboxTask, TaskStatus
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Queue, main
from jobtable.store import Store
from jobtable.workflows.table_and_queues import workflows

PEOPLE = ("ada", "bob", "eve")
Act = Callable[[], object]


class ProposalsMachine(RuleBasedStateMachine):
    """Each proposal describes a queue of its own, whose priority counts how often that was done."""

    def __init__(self, jobs: Jobs) -> None:
        super().__init__()
        self.jobs = jobs
        self.inbox = Inbox(jobs)
        self.world = uuid.uuid4().hex[:8]
        self.queues: list[str] = []
        self.tasks: dict[str, str] = {}
        self.added: list[str] = []

    @initialize()
    def begin(self) -> None:
        self.pool = ThreadPoolExecutor(max_workers=6)

    def teardown(self) -> None:
        for rule_id in self.added:
            self.inbox.remove_rule(rule_id)
        self.pool.shutdown()

    @rule()
    def add_rule(self) -> None:
        self.added.append(self.inbox.add_rule(subject=self.world).rule_id)

    @precondition(lambda self: self.added)
    @rule()
    def remove_rule(self) -> None:
        self.inbox.remove_rule(self.added.pop())

    @rule(times=st.integers(1, 4), changes=st.booleans(), rule_goes=st.booleans())
    def propose_at_once(self, times: int, changes: bool, rule_goes: bool) -> None:
        """Several runs of one job propose the same; meanwhile what it is about changes, and a rule is removed."""
        queue = f"{self.world}-{len(self.queues)}"
        self.queues.append(queue)
        self.jobs.create_queue(queue, description="A", priority=0)
        proposal = self.counting(queue)
        acts: list[Act] = [partial(self.inbox.propose, proposal)] * times
        if changes:
            acts.append(partial(self.jobs.change_queue, queue, description="Z"))
        if rule_goes and self.added:
            acts.append(partial(self.inbox.remove_rule, self.added.pop()))
        made = {each.task_id for each in self.race(acts) if isinstance(each, InboxTask)}
        assert len(made) <= 1
        self.tasks[self.inbox.propose(proposal).task_id] = queue

    @precondition(lambda self: self.tasks)
    @rule(
        data=st.data(),
        acts=st.lists(
            st.sampled_from(["accept", "reject", "withdraw", "many", "change", "propose"]), min_size=1, max_size=6
        ),
    )
    def close_at_once(self, data: st.DataObject, acts: list[str]) -> None:
        """Several people do something with one proposal at the same time."""
        task_id = data.draw(st.sampled_from(sorted(self.tasks)))
        queue = self.tasks[task_id]
        verbs: dict[str, Callable[[str], object]] = {
            "accept": lambda by: self.inbox.accept(task_id, by=by),
            "reject": lambda by: self.inbox.reject(task_id, by=by),
            "withdraw": lambda by: self.inbox.withdraw(task_id, by=by),
            "many": lambda by: list(self.inbox.accept_many([task_id, task_id], by=by)),
            "change": lambda by: self.jobs.change_queue(queue, description="Z"),
            "propose": lambda by: self.inbox.propose(self.counting(queue)),
        }
        before = self.inbox.get(task_id).status
        done = self.race([partial(verbs[name], PEOPLE[number % 3]) for number, name in enumerate(acts)])
        closed = [
            each for name, each in zip(acts, done, strict=True) if name in ("accept", "reject", "withdraw") and each
        ]
        assert len(closed) <= (before is TaskStatus.PENDING)

    def counting(self, queue: str) -> Proposal:
        return renaming(queue, apply=f"{HERE}:count", key=queue, subject=self.world)

    def race(self, acts: list[Act]) -> list[Any]:
        """Do all at the same time; gives what each returned, None for one that was refused."""
        start = Barrier(len(acts))
        return list(self.pool.map(partial(_refusable, start), acts))

    @invariant()
    def an_accepted_proposal_was_applied_once_and_another_never(self) -> None:
        for task_id, name in self.tasks.items():
            task, queue = self.inbox.get(task_id), self.jobs.store.get(Queue.key(queue_name=name))
            assert queue.priority == (task.status is TaskStatus.ACCEPTED), (task, queue)
            assert (task.closed_by is None) == (task.status is TaskStatus.PENDING)
            assert (task.due_at is None) == (task.status is not TaskStatus.PENDING)


def _refusable(start: Barrier, act: Act) -> Any:
    start.wait()
    try:
        return act()
    except (ConflictError, NotFoundError, TransactionConflict):
        return None


def test_each_proposal_is_applied_exactly_once_or_never(each_store: Store) -> None:
    each_store.tables.create(main, workflows)
    jobs = jobs_in_memory(each_store)
    is_embedded = not each_store.prefix
    rounds = settings(max_examples=40 if is_embedded else 8, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(cast("Any", lambda: ProposalsMachine(jobs)), settings=rounds)
