"""Random sequences of everything that can happen to jobs, with what must hold after each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.jobs.engines import LEASE_SECONDS, DisturbedBackend, check_records, engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConflictError, DependencyCycleError, JobStateError, LeaseLostError, NotFoundError
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.lifecycle.transitions import ensure_queue
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import FINAL
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob, ParentWaits, RetryPolicy
from jobtable.store import Store
from jobtable.testing import FakeClock

QUEUES = ("default", "gpu")
CONDITIONS = st.sampled_from(list(EdgeCondition))
GATES: st.SearchStrategy[Literal["start", "completion"]] = st.sampled_from(["start", "completion"])
ACTS = st.sampled_from(["cancel", "stop", "retry", "retry tree", "prioritise"])
OTHER_ACTS = st.sampled_from(
    ["claim", "finish", "finish all", "act", "delete", "add edge", "submit child", "delete queue", "time"]
)
OUTCOMES = st.sampled_from(
    [
        Outcome.completed({"x": 1}),
        Outcome.failed("boom"),
        Outcome.failed("boom", retryable=False),
        Outcome.stopped(),
        Outcome.cancelled(),
    ]
)
PICK = st.integers(0, 1000)


class Died(BaseException):
    """A process that ended between two of its transactions."""


class JobsMachine(RuleBasedStateMachine):
    """Workers, submitters, people and crashes in any order, and between each other's reads and writes."""

    def ensure_queue(self, name: str) -> None:
        ensure_queue(self.jobs.store, self.jobs.clock, name)

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.backend = DisturbedBackend(EmbeddedBackend(None, durability="normal"))
        self.store = Store(self.backend, clock=self.clock)
        self.jobs = engine(self.store, self.clock)
        self.records = self.jobs
        """Where what has become of the jobs is looked up."""
        self.observer = self.jobs.observer()
        self.submitted = 0
        self.ids: list[str] = []
        self.leases: list[Lease] = []
        self.runs: set[tuple[str, int]] = set()

    def teardown(self) -> None:
        with self.store:
            self.drain()

    def pick(self, number: int) -> str:
        return self.ids[number % len(self.ids)]

    def next_key(self) -> str:
        """A key that no job was submitted with: who repeats a submission finds the job of the first."""
        self.submitted += 1
        return str(self.submitted)

    def attempt(self, act: Callable[[], object]) -> None:
        """What may be refused, because of the state that the job is in."""
        try:
            act()
        except (JobStateError, DependencyCycleError, ConflictError, NotFoundError):
            return

    # --- what happens -----------------------------------------------------------------------------------------------

    @rule(
        queue=st.sampled_from(QUEUES),
        priority=st.integers(0, 999),
        attempts=st.integers(1, 3),
        on=st.lists(st.tuples(PICK, CONDITIONS, GATES), max_size=2),
    )
    def submit(
        self,
        queue: str,
        priority: int,
        attempts: int,
        on: list[tuple[int, EdgeCondition, Literal["start", "completion"]]],
    ) -> None:
        edges = {}
        for number, condition, gate in on:
            if self.ids and not (gate == "completion" and condition is EdgeCondition.STARTED):
                job_id = self.pick(number)
                edges[job_id] = DependsOn(job_id, condition=condition, gate=gate)
        policy = RetryPolicy(first_delay_seconds=1)
        new = NewJob(
            name="job",
            key=self.next_key(),
            task="x:y",
            queue=queue,
            priority=priority,
            max_attempts=attempts,
            retry=policy,
            most_interruptions=1,
            depends_on=tuple(edges.values()),
        )
        self.attempt(lambda: self.ids.append(self.jobs.submit(new).job_id))

    @rule(children=st.integers(0, 4), condition=st.sampled_from([EdgeCondition.COMPLETED, EdgeCondition.FINISHED]))
    def submit_group(self, children: int, condition: EdgeCondition) -> None:
        group = self.jobs.open_group(NewJob(name="group", key=self.next_key()))
        made = self.jobs.submit_many(
            [
                NewJob(
                    name=f"child {number}",
                    key=self.next_key(),
                    task="x:y",
                    parent_job_id=group.job_id,
                    parent_waits=ParentWaits(condition=condition),
                    depends_on=(DependsOn(group.job_id, condition=EdgeCondition.STARTED),),
                )
                for number in range(children)
            ]
        )
        self.jobs.seal(group.job_id)
        self.ids += [group.job_id, *(job.job_id for job in made)]

    @rule(queue=st.sampled_from(QUEUES), limit=st.integers(1, 4))
    def claim(self, queue: str, limit: int) -> None:
        name = f"worker-{len(self.leases)}"
        claimed = self.jobs.claim(queue, limit=limit, instance_id=name, lease_seconds=LEASE_SECONDS)
        begun = {(lease.job.job_id, lease.epoch) for lease in claimed}
        assert not self.runs & begun
        self.runs |= begun
        self.leases += claimed

    @precondition(lambda self: self.leases)
    @rule(
        number=PICK,
        outcome=OUTCOMES,
        dies=st.booleans(),
    )
    def finish(self, number: int, outcome: Outcome, dies: bool) -> None:
        lease = self.leases.pop(number % len(self.leases))
        settle = self.jobs._endings.settle
        if dies:
            self.jobs._endings.settle = self._die  # type: ignore[method-assign]  # the process ends here
        try:
            self.end(lease, outcome)
        except Died:
            pass
        finally:
            self.jobs._endings.settle = settle  # type: ignore[method-assign]

    def end(self, lease: Lease, outcome: Outcome) -> None:
        with suppress(LeaseLostError):
            self.jobs.finish(lease, outcome)

    def _die(self, job: Job, *, waits: Sequence[float] = ()) -> None:
        raise Died

    @precondition(lambda self: self.leases)
    @rule(together=st.booleans())
    def finish_all(self, together: bool) -> None:
        ended = [(lease, Outcome.completed()) for lease in self.leases]
        self.leases = []
        if together:
            self.jobs.finish_many(ended)
            return
        for lease, _ in ended:
            self.attempt(lambda lease=lease: self.jobs.release(lease, "drained"))  # type: ignore[misc]

    @rule(number=PICK, silent=st.booleans())
    def time_passes(self, number: int, silent: bool) -> None:
        self.observer.recover()
        if not silent:
            self.leases = [lease for lease in self.leases if self._beat(lease)]
        self.clock.advance(LEASE_SECONDS + 1 if silent else 2)
        self.observer.recover()
        for queue in QUEUES:
            self.jobs.promote_due(queue)

    def _beat(self, lease: Lease) -> bool:
        try:
            self.jobs.heartbeat(lease)
        except LeaseLostError:
            return False
        return True

    @precondition(lambda self: self.ids)
    @rule(number=PICK, act=ACTS)
    def act(self, number: int, act: str) -> None:
        job_id = self.pick(number)
        acts: dict[str, Callable[[], object]] = {
            "cancel": lambda: self.jobs.cancel(job_id),
            "stop": lambda: self.jobs.stop(job_id),
            "retry": lambda: self.jobs.retry(job_id),
            "retry tree": lambda: self.jobs.retry(job_id, tree=True),
            "prioritise": lambda: self.jobs.prioritise(job_id, number % 1000),
        }
        self.attempt(acts[act])

    @precondition(lambda self: self.ids)
    @rule(number=PICK, tree=st.booleans())
    def delete(self, number: int, tree: bool) -> None:
        self.attempt(lambda: self.jobs.delete(self.pick(number), tree=tree))
        left = {job.job_id for job in self.records.queries.list_jobs()}
        self.ids = [job_id for job_id in self.ids if job_id in left]

    @precondition(lambda self: len(self.ids) > 1)
    @rule(one=PICK, other=PICK, condition=CONDITIONS, gate=GATES)
    def add_edge(self, one: int, other: int, condition: EdgeCondition, gate: Literal["start", "completion"]) -> None:
        if gate == "start" or condition is not EdgeCondition.STARTED:
            on = DependsOn(self.pick(other), condition=condition, gate=gate)
            self.attempt(lambda: self.jobs.add_dependency(self.pick(one), on))

    @rule(queue=st.sampled_from(QUEUES), is_paused=st.booleans())
    def pause(self, queue: str, is_paused: bool) -> None:
        self.ensure_queue(queue)
        if is_paused:
            self.jobs.pause_queue(queue)
        else:
            self.jobs.resume_queue(queue)

    @rule(queue=st.sampled_from(QUEUES), limit=st.integers(1, 3))
    def limit_queue(self, queue: str, limit: int) -> None:
        self.ensure_queue(queue)
        self.jobs.change_queue(queue, max_concurrent_jobs=limit)

    @precondition(lambda self: self.ids)
    @rule(number=PICK)
    def submit_child(self, number: int) -> None:
        parent = self.pick(number)
        waits = ParentWaits()
        new = NewJob(name="late", key=self.next_key(), task="x:y", parent_job_id=parent, parent_waits=waits)
        self.attempt(lambda: self.ids.append(self.jobs.submit(new).job_id))

    @rule(
        writes=st.integers(0, 3), one=PICK, other=PICK, choices=st.tuples(OTHER_ACTS, CONDITIONS, GATES, ACTS, OUTCOMES)
    )
    def disturb_the_next(
        self,
        writes: int,
        one: int,
        other: int,
        choices: tuple[str, EdgeCondition, Literal["start", "completion"], str, Outcome],
    ) -> None:
        """Let one of these things happen between what the next rule reads and what it writes."""
        what, condition, gate, act, outcome = choices

        def disturb() -> None:
            match what:
                case "claim":
                    self.claim(QUEUES[one % 2], 1 + other % 4)
                case "finish" if self.leases:
                    self.finish(one, outcome, False)
                case "finish all" if self.leases:
                    self.finish_all(other % 2 == 0)
                case "act" if self.ids:
                    self.act(one, act)
                case "delete" if self.ids:
                    self.delete(one, other % 2 == 0)
                case "add edge" if len(self.ids) > 1:
                    self.add_edge(one, other, condition, gate)
                case "submit child" if self.ids:
                    self.submit_child(one)
                case "delete queue":
                    self.delete_queue(QUEUES[one % 2])
                case "time":
                    self.time_passes(one, other % 2 == 0)

        self.backend.disturb(disturb, writes=writes)

    @rule(queue=st.sampled_from(QUEUES))
    def delete_queue(self, queue: str) -> None:
        self.ensure_queue(queue)
        self.attempt(lambda: self.jobs.delete_queue(queue))

    # --- what holds -------------------------------------------------------------------------------------------------

    @invariant()
    def records_are_right(self) -> None:
        check_records(self.records)

    def drain(self) -> None:
        """When workers go on, every job comes to an end, and every queue is empty."""
        self.backend.disturb(None)
        self.finish_all(together=True) if self.leases else None
        for queue in QUEUES:
            self.ensure_queue(queue)
            self.jobs.resume_queue(queue)
            self.jobs.change_queue(queue, max_concurrent_jobs=100)
        for _ in range(4 * len(self.ids) + 10):
            self.clock.advance(LEASE_SECONDS + 1)
            self.observer.recover()
            for queue in QUEUES:
                self.jobs.promote_due(queue)
                for lease in self.jobs.claim(queue, limit=50, instance_id="last", lease_seconds=LEASE_SECONDS):
                    self.jobs.finish(lease, Outcome.completed())
            if all(job.status in FINAL for job in self.jobs.queries.list_jobs()):
                break
        self.clock.advance(10)
        for queue in QUEUES:
            self.jobs.promote_due(queue)
            assert self.jobs.queries.get_queue(queue).job_count == 0
        left = [(job.name, job.status) for job in self.jobs.queries.list_jobs() if job.status not in FINAL]
        assert left == []
        check_records(self.jobs)


TestJobsMachine = JobsMachine.TestCase
TestJobsMachine.settings = settings(
    max_examples=25, stateful_step_count=20, suppress_health_check=[HealthCheck.too_slow]
)
