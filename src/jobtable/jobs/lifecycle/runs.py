"""What workers do with the jobs that they hold: keep the leases alive, report, and end or release the jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from jobtable.clock import wall_time
from jobtable.errors import (
    ConditionFailedError,
    LeaseLostError,
    NotFoundError,
    RequestRefused,
    TransactionFailedError,
    ValueRefusedError,
)
from jobtable.jobs.core import EngineCore
from jobtable.jobs.dependencies.edges import same_gates
from jobtable.jobs.lifecycle.endings import Parents, add_ending
from jobtable.jobs.lifecycle.leases import Lease, Outcome, has_lease, holds
from jobtable.jobs.lifecycle.recovery import LeaseObserver
from jobtable.jobs.lifecycle.transitions import Refused, Transition, later, length_of
from jobtable.jobs.lifecycle.waking import add_wake
from jobtable.jobs.report.recording import final_metrics, find_roll_up
from jobtable.jobs.stored.entities import InstanceJob, Job, JobGates, JobResource, JobStatus, QueueJob
from jobtable.jobs.stored.field_types import Status, rank_of
from jobtable.model import Condition, Update, unchanged
from jobtable.store import TryAgain
from jobtable.store.transactions import MOST_ACTIONS, Transaction, grouped

_NOT_ASKED_TO_END = Job.requested.missing()
"""The condition that nobody asked for the end of the run since the worker's last heartbeat."""
_HAS_NO_GATES = Job.is_gated != True  # noqa: E712 - a condition, no comparison
"""The condition that the job still waits for no other one."""
MOST_UNOPENED = 30
"""How many runs in a row may fail to start because their process cannot open its store. Each waits for a minute, so a
long outage of the store or an upgrade of all workers costs no job."""
_REFUSED = "ValidationError"
"""The code of a write that can never succeed: its item would be too large."""


class Runs(EngineCore):
    """The verbs of workers on the jobs that they have claimed; see `WorkVerbs`."""

    # --- while a job runs -------------------------------------------------------------------------------------------

    def heartbeat(self, lease: Lease) -> Lease:
        try:
            job = self.store.update(Job.key(job_id=lease.job.job_id), Job.heartbeat.increment(1), when=holds(lease))
        except (ConditionFailedError, NotFoundError) as error:
            raise lease.lost() from error
        if job.dependents > lease.job.dependents:  # a job may have started to wait for its start during the claim
            self._starts.notify_later([job])
        return replace(lease, job=job)

    def report(self, lease: Lease, *, progress: float | None = None, message: str | None = None) -> None:

        def write(held: Lease) -> None:
            job = held.job
            at = later(self.clock.now(), job.changed_at)
            updates = [Job.changed_at.set(at), Job.message.set(message)]
            if progress is not None:
                updates.append(Job.progress.set(progress))
            tx = self.store.transaction()
            tx.update(job, *updates, when=holds(lease) & (Job.changed_at == job.changed_at))
            line = JobStatus(
                job_id=job.job_id, status=Status.RUNNING, updated_at=at, progress=progress, message=message
            )
            tx.add(line.model_copy(update={"instance_id": lease.instance_id}))
            try:
                tx.commit()
            except TransactionFailedError as error:
                _refuse_unstorable(f"the progress of job {job.job_id}", error)
                raise

        self.store.retrying(lambda: self.refresh(lease), write, f"store the progress of job {lease.job.job_id}")

    def refresh(self, lease: Lease) -> Lease:
        job = self.store.find(Job.key(job_id=lease.job.job_id))
        if job is None or not lease.is_held_in(job):
            raise lease.lost()
        return replace(lease, job=job)

    def look_at(self, leases: Sequence[Lease]) -> list[Job | None]:
        return self.store.batch_get([Job.key(job_id=lease.job.job_id) for lease in leases])

    # --- the end of a run -------------------------------------------------------------------------------------------

    def finish(self, lease: Lease, outcome: Outcome) -> Job:

        def write(held: Lease) -> list[str]:
            transition = Transition(self.store, self.clock)
            parents = self._endings.find_parents([held.job])
            self._add_finish(transition, held, outcome, parents, self._find_gates([held.job]))
            notified = parents.count(transition)
            try:
                transition.commit()
            except Refused as refused:
                _refuse_unstorable(f"the end of job {held.job.job_id}", refused.error)
                raise
            return notified

        job_id = lease.job.job_id
        notified = self.store.retrying(lambda: self.refresh(lease), write, f"finish job {job_id}", first=lease)
        self._advance(notified)
        job = self.queries.get_job(job_id)
        if job.is_awaiting:  # its children may be waiting for its start and not know of it yet
            self._starts.notify([job])
        if job.dependents and job.is_final and not notified:
            self._endings.settle(job)
        return job

    def finish_many(self, ended: Sequence[tuple[Lease, Outcome]]) -> list[Lease]:
        lost: list[Lease] = []
        parents = self._endings.find_parents([lease.job for lease, _ in ended])
        together: dict[str, tuple[Lease, Outcome]] = {}
        alone: list[tuple[Lease, Outcome]] = []
        for pair in ended:
            job = pair[0].job
            # Of two leases on one job, one is lost and must not fail the transaction of the others. The gates of a
            # parent change when its child ends, and a transaction changes an item once.
            is_tied = job.job_id in parents.ids or (job.dependents and parents.edge_to(job) is None)
            if job.job_id in together or is_tied or job.on_end is not None:
                alone.append(pair)
            else:
                together[job.job_id] = pair
        notified: dict[str, None] = {}
        try:
            for group in _groups(together.values()):
                transition = Transition(self.store, self.clock)
                gates = self._find_gates([lease.job for lease, _ in group])
                for lease, outcome in group:
                    self._add_finish(transition, lease, outcome, parents, gates)
                counted = parents.count(transition)
                try:
                    transition.commit()
                except (Refused, RequestRefused):  # or their results are too large for one transaction
                    alone += group
                else:
                    notified.update(dict.fromkeys(counted))
        finally:
            self._advance(notified)
        for lease, outcome in alone:
            try:
                self.finish(lease, outcome)
            except LeaseLostError:
                lost.append(lease)
            except NotFoundError:
                continue  # it has ended and was deleted at once
        return lost

    def _advance(self, job_ids: Iterable[str]) -> None:
        for job_id in job_ids:
            self._endings.go_on(job_id)

    def _find_gates(self, jobs: Iterable[Job]) -> dict[str, JobGates]:
        """Return the gates of those jobs that have some, by job."""
        keys = [JobGates.key(job_id=job.job_id) for job in jobs if job.is_gated]
        return {gates.job_id: gates for gates in self.store.batch_get(keys) if gates is not None} if keys else {}

    def _add_finish(
        self,
        transition: Transition,
        lease: Lease,
        outcome: Outcome,
        parents: Parents,
        known_gates: Mapping[str, JobGates],
    ) -> None:
        job = lease.job
        gates = known_gates.get(job.job_id)
        if job.requested == "cancel" or outcome.kind == "cancelled":
            self._end_run(transition, lease, Status.CANCELLED, outcome, parents)
        elif job.requested == "stop" or outcome.kind == "stopped":
            self._end_run(transition, lease, Status.STOPPED, outcome, parents)
        elif outcome.kind == "suspended":
            self._suspend(transition, lease, outcome)
        elif outcome.kind == "failed" and outcome.retryable and job.attempts < job.max_attempts:
            self._retry_later(transition, lease, outcome)
        elif outcome.kind == "failed":
            self._end_run(transition, lease, Status.FAILED, outcome, parents)
        elif gates is None:
            when = None if job.is_gated else _HAS_NO_GATES
            self._end_run(transition, lease, Status.COMPLETED, outcome, parents, when)
        elif gates.open_completions:
            transition.tx.check(gates, JobGates.open_completions > 0)
            self._await_children(transition, lease, outcome, gates)
        else:
            transition.tx.check(gates, same_gates(gates))
            if gates.broken_by is None:
                self._end_run(transition, lease, Status.COMPLETED, outcome, parents)
            else:
                broken = replace(outcome, message=self._endings.reason_of(gates.broken_by))
                self._end_run(transition, lease, Status.FAILED, broken, parents)

    def _end_run(
        self,
        transition: Transition,
        lease: Lease,
        status: Status,
        outcome: Outcome,
        parents: Parents | None,
        when: Condition | None = None,
    ) -> None:
        add_ending(
            transition,
            lease.job,
            status,
            outcome.message,
            result=outcome.result,
            instance_id=lease.instance_id,
            when=when,
            parents=parents,
        )
        if status is Status.COMPLETED:
            for metric in final_metrics(lease.job, outcome.result, self.clock.now()):
                transition.tx.put(metric)
        self._close_records(transition, lease, status)

    def _retry_later(self, transition: Transition, lease: Lease, outcome: Outcome) -> None:
        job = lease.job
        delay = job.definition.retry.delay_seconds(job.attempts) * self._random.uniform(0.8, 1.2)
        message = f"attempt {job.attempts} of {job.max_attempts} failed: {outcome.message}"
        if job.queue_name is not None:
            entry = QueueJob.key(queue_name=job.queue_name, job_id=job.job_id)
            due = wall_time(self.clock) + timedelta(seconds=delay)
            transition.tx.update(entry, QueueJob.not_before.set(due))
        updates = [Job.unopened.set(None)]
        self._give_up(transition, lease, Status.PENDING, updates, message, when=_NOT_ASKED_TO_END, run=Status.FAILED)

    def _suspend(self, transition: Transition, lease: Lease, outcome: Outcome) -> None:
        """Give up the lease until the job is due or woken; a job that was woken since its claim is ready at once."""
        job = lease.job
        if (entry := self.queries.find_entry(job)) is not None:
            due = QueueJob.rank.set(rank_of(entry.priority)) if job.woken else QueueJob.not_before.set(outcome.until)
            transition.tx.update(entry, due, when=unchanged(entry, QueueJob.priority))
        updates = Job.attempts.set(job.attempts - 1), Job.interruptions.set(0), Job.unopened.set(None)
        when = _NOT_ASKED_TO_END & (Job.woken == True if job.woken else Job.woken.missing())  # noqa: E712
        self._give_up(transition, lease, Status.PENDING, updates, outcome.message, when=when, run=Status.COMPLETED)

    # --- waking -----------------------------------------------------------------------------------------------------

    def wake(self, job_id: str) -> None:
        """Start a suspended job; one that runs starts again when it suspends itself. An ended one stays as it is."""

        def wake(job: Job | None) -> None:
            with self.store.transaction() as tx:
                self.add_wake(tx, job)

        self.store.retrying(lambda: self.store.find(Job.key(job_id=job_id)), wake, f"wake job {job_id}")

    def add_wake(self, tx: Transaction, job: Job | None) -> None:
        """Wake a job, as it was just read, with the rest of a transaction, which fails if the job has changed.

        What the job is woken for must be written in the same transaction, so that a crash cannot part them.
        """
        add_wake(self.store, tx, job)

    def _await_children(self, transition: Transition, lease: Lease, outcome: Outcome, gates: JobGates) -> None:
        updates = Job.is_awaiting.set(True), Job.result.set(outcome.result)
        message = f"waits for {gates.open_completions} jobs"
        when = _NOT_ASKED_TO_END & (Job.dependents == lease.job.dependents)
        self._give_up(transition, lease, Status.RUNNING, updates, message, when=when, run=Status.COMPLETED)

    def _give_up(
        self,
        transition: Transition,
        lease: Lease,
        status: Status,
        updates: Iterable[Update],
        message: str | None,
        *,
        when: Condition,
        run: Status,
    ) -> None:
        """Release the lease of a job that has not ended, whose run ended in the status `run`."""
        job = lease.job
        transition.change(
            job,
            status,
            transition.time_for(job),
            *updates,
            Job.lease_seconds.set(None),
            Job.instance_id.set(None),
            message=message,
            instance_id=lease.instance_id,
            when=when,
        )
        if job.queue_name is not None:
            transition.count(job.queue_name, running=-1)
        self._close_records(transition, lease, run)

    # --- without an end ---------------------------------------------------------------------------------------------

    def release(self, lease: Lease, reason: str, *, is_unopened: bool = False) -> Job:

        def interrupt(held: Lease) -> Job:
            unopened = (held.job.unopened or 0) + 1 if is_unopened else None
            job = self._interrupt(held, reason, is_lost=False, unopened=unopened)
            if job is None:
                raise TryAgain
            return job

        return self.store.retrying(lambda: self.refresh(lease), interrupt, f"release job {lease.job.job_id}")

    def observer(self) -> LeaseObserver:
        return LeaseObserver(self.store, self.clock, self.queries, self.interrupt_lost, self._endings.go_on)

    def interrupt_lost(self, job: Job) -> Job | None:
        """Take a job from a dead worker; return None if the job has changed or its worker lives after all.

        It is ready again, unless it has lost too many workers or was to end anyway.
        """
        if not has_lease(job) or job.instance_id is None:
            return None
        is_recorded = self.store.find(InstanceJob.key(instance_id=job.instance_id, job_id=job.job_id)) is not None
        lease = Lease(job, job.instance_id, is_recorded)
        return self._interrupt(lease, f"its worker {job.instance_id} was lost", is_lost=True)

    def _interrupt(self, lease: Lease, reason: str, *, is_lost: bool, unopened: int | None = None) -> Job | None:
        job = lease.job
        losses = job.interruptions + is_lost
        transition = Transition(self.store, self.clock)
        still_silent = Job.heartbeat == job.heartbeat if is_lost else None
        if job.requested is not None:
            status = Status.CANCELLED if job.requested == "cancel" else Status.STOPPED
            self._end_run(transition, lease, status, Outcome.failed(reason), None, still_silent)
        elif (why_not := _why_no_other_worker(job, losses, unopened)) is not None:
            failed = Outcome.failed(f"{reason}; {why_not}")
            self._end_run(transition, lease, Status.FAILED, failed, None, still_silent)
        else:
            entry = self.queries.find_entry(job)
            if entry is not None:
                rank = QueueJob.rank.set(rank_of(entry.priority))
                transition.tx.update(entry, rank, when=unchanged(entry, QueueJob.priority))
            elif job.queue_name is not None:
                return None  # it has ended meanwhile
            attempts, interruptions = Job.attempts.set(job.attempts - 1), Job.interruptions.set(losses)
            updates = attempts, interruptions, Job.unopened.set(unopened)
            when = _NOT_ASKED_TO_END if still_silent is None else _NOT_ASKED_TO_END & still_silent
            self._give_up(transition, lease, Status.INTERRUPTED, updates, reason, when=when, run=Status.INTERRUPTED)
        try:
            transition.commit()
        except Refused:
            return None
        fresh = self.store.find(Job.key(job_id=job.job_id))
        if fresh is not None and fresh.is_final and fresh.dependents:
            self._endings.settle(fresh)
        return fresh

    def _close_records(self, transition: Transition, lease: Lease, status: Status) -> None:
        """Record that the instance no longer has the job, and how its run ended."""
        if not lease.is_recorded:
            return
        job_id, instance_id = lease.job.job_id, lease.instance_id
        transition.tx.update(InstanceJob.key(instance_id=instance_id, job_id=job_id), InstanceJob.status.set(status))
        transition.tx.update(
            JobResource.key(job_id=job_id, resource_id=instance_id),
            JobResource.status.set("RELEASED"),
            JobResource.released_at.set(self.clock.now()),
        )


def _refuse_unstorable(what: str, error: TransactionFailedError) -> None:
    """Raise ValueRefusedError if the same write would always be rejected."""
    if why := [failure.message for failure in error.failures if failure.code == _REFUSED]:
        raise ValueRefusedError(f"{what} cannot be stored: {why[0]}") from error


def _why_no_other_worker(job: Job, losses: int, unopened: int | None) -> str | None:
    """Return why a lost or released job gets no other worker, or None if it does."""
    definition = job.definition
    if definition.problem is not None:
        return f"it cannot run: {definition.problem}"
    if losses > definition.most_interruptions:
        return f"it has lost {losses} workers, more than allowed"
    if unopened is not None and unopened >= MOST_UNOPENED:
        return (
            f"this happened {unopened} times in a row; make sure that the processes of jobs can open the store on the "
            "machines of their workers (its address, the settings, the version of Jobtable), then retry the job"
        )
    return None


def _groups(ended: Iterable[tuple[Lease, Outcome]]) -> Iterator[list[tuple[Lease, Outcome]]]:
    """Yield the runs in groups that end in one transaction each: as many of one queue as fit."""
    by_kind: dict[tuple[str | None, int], list[tuple[Lease, Outcome]]] = {}
    for pair in ended:
        by_kind.setdefault((pair[0].job.queue_name, _most_actions(pair[0])), []).append(pair)
    for (_, actions), pairs in by_kind.items():
        yield from grouped(pairs, (MOST_ACTIONS - 1) // actions, lambda pair: length_of(pair[0].job, pair[1].result))


def _most_actions(lease: Lease) -> int:
    """Return how many actions of a transaction the end of a run takes at most, without that of the queue."""
    actions = 3 + lease.job.is_gated + 2 * lease.is_recorded
    rule = find_roll_up(lease.job)
    results = 0 if rule is None else 2 * len(rule.results)
    return actions + results + (2 if lease.job.dependents else 0)  # the edge of the parent, and its gates
