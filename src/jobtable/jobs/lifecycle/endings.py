"""Jobs end, and their dependents are notified: they start, groups complete, edges break.

Notifying is not part of the transaction in which a job ends, because any number of jobs may wait for it. Until all are
notified, the job keeps its queue entry with a due time: if the process that ended the job dies, any worker of the
queue finds the due entry and notifies them. Notifying twice is harmless.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress

from jobtable.clock import Clock, wall_time
from jobtable.errors import ConditionFailedError, JobtableError, NotFoundError, TransactionFailedError
from jobtable.jobs.dependencies.edges import condition_of, is_broken_by, is_met_by, same_gates
from jobtable.jobs.lifecycle.leases import has_lease
from jobtable.jobs.lifecycle.transitions import SETTLING_TIME, Transition
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.stored.entities import Job, JobDependency, JobGates, Queue, QueueJob
from jobtable.jobs.stored.field_types import CLAIMABLE, Status, rank_of
from jobtable.model import Attribute, Condition, Json, Update, unchanged
from jobtable.store import Store
from jobtable.store.retries import is_passing

_LOG = logging.getLogger("jobtable.worker")
INDEX_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""How long to wait for edges that the index does not show yet; later ones are notified when the entry is due."""
COUNT_OF: dict[Status, Attribute[int]] = {
    Status.COMPLETED: JobGates.completed,
    Status.FAILED: JobGates.failed,
    Status.STOPPED: JobGates.stopped,
    Status.CANCELLED: JobGates.cancelled,
}
"""The counter of each status that closes a gate of a job's completion."""


class Parents:
    """The parents of jobs that nobody else waits for, notified in the transaction in which their children end.

    Each parent's gates are updated once per transaction, however many of its children end in it.
    """

    def __init__(self, edges: Iterable[JobDependency]) -> None:
        self._edges = {edge.dependency_job_id: edge for edge in edges}
        self.ids = {edge.job_id for edge in self._edges.values()}
        self._updates: dict[str, Counter[Status]] = {}
        self._broken: dict[str, str] = {}

    def edge_to(self, job: Job) -> JobDependency | None:
        """Return the edge by which a job's parent waits for it, if it can be closed with the job."""
        return self._edges.get(job.job_id)

    def notify(self, transition: Transition, job: Job, status: Status) -> bool:
        """Notify the parent within the transition; return whether that was possible."""
        edge = self.edge_to(job)
        if edge is None:
            return False
        transition.close(edge, status)
        self._updates.setdefault(edge.job_id, Counter())[status] += 1
        if is_broken_by(condition_of(edge), job.model_copy(update={"status": status})):
            self._broken[edge.job_id] = job.job_id
        return True

    def count(self, transition: Transition) -> list[str]:
        """Change the counts of all parents notified since the last call; return their ids."""
        notified = list(self._updates)
        for parent, ends in self._updates.items():
            updates: list[Update] = [JobGates.open_completions.increment(-ends.total())]
            updates += [COUNT_OF[status].increment(number) for status, number in ends.items()]
            if parent in self._broken:
                updates.append(JobGates.broken_by.set(self._broken[parent]))
            transition.tx.update(JobGates.key(job_id=parent), *updates)
        self._updates, self._broken = {}, {}
        return notified


class Endings:
    """Ends jobs and notifies their dependents."""

    def __init__(self, store: Store, clock: Clock, queries: JobQueries) -> None:
        self._store = store
        self._clock = clock
        self._queries = queries

    def end_waiting(
        self,
        job: Job,
        status: Status,
        message: str | None,
        *updates: Update,
        by: str | None = None,
        gates: JobGates | None = None,
    ) -> Job | None:
        """End a job that no worker holds, or raise Refused if it or these gates have changed; None if it is deleted.

        Nobody is notified yet: `settle` does that.
        """
        transition = Transition(self._store, self._clock)
        add_ending(transition, job, status, message, *updates, by=by)
        if gates is not None:
            transition.tx.check(gates, same_gates(gates))
        transition.commit()
        return self._store.find(Job.key(job_id=job.job_id))

    def find_parents(self, jobs: Iterable[Job]) -> Parents:
        """Return the parents of those jobs that nobody else waits for."""
        edges = self._edges_of_parents(jobs)
        return Parents(edge for edge in edges if edge.gate == "completion" and edge.outcome is None)

    def _edges_of_parents(self, jobs: Iterable[Job]) -> list[JobDependency]:
        """Return the edges to those jobs that only their parents wait for."""
        keys = [
            JobDependency.key(job_id=job.parent_job_id, dependency_job_id=job.job_id)
            for job in jobs
            if job.dependents == 1 and job.parent_job_id is not None
        ]
        return [edge for edge in self._store.batch_get(keys) if edge is not None] if keys else []

    # --- notifying --------------------------------------------------------------------------------------------------

    def settle(self, job: Job, *, waits: Sequence[float] = INDEX_WAITS) -> None:
        """Notify the dependents of an ended job, and those of the jobs that end because of it, however long the chain.

        It `waits` for an index that does not show them all.
        """
        waiting = deque([job])
        while waiting:
            ended = waiting.popleft()
            if not ended.is_final:
                continue  # it has restarted, so its dependents wait again
            notified = [edge for edge in self.edges_to(ended, waits) if self._close(edge, ended)]
            for edge in notified:
                also_ended = self._go_on(edge.job_id)
                if also_ended is not None and also_ended.dependents:
                    waiting.append(also_ended)
            if len(notified) >= ended.dependents:
                self._leave_settled(ended)

    def _settled(self, ended: Job | None) -> Job | None:
        """Return the same job, after notifying its dependents if it has ended."""
        if ended is not None and ended.dependents:
            self.settle(ended)
        return ended

    def notify_of_start(self, jobs: Sequence[Job]) -> list[Job]:
        """Notify dependents of the start of jobs; return the jobs whose dependents the index does not all show."""
        only = {edge.dependency_job_id: edge for edge in self._edges_of_parents(jobs)}
        unnotified = []
        for job in jobs:
            if not job.dependents:
                continue
            edges = [only[job.job_id]] if job.job_id in only else self.edges_to(job)
            notified = 0
            for edge in edges:
                if not is_met_by(condition_of(edge), job):
                    notified += 1  # it waits for something else
                elif self._close(edge, job):
                    notified += 1
                    self.go_on(edge.job_id)
            if notified < job.dependents:
                unnotified.append(job)
        return unnotified

    def edges_to(self, job: Job, waits: Sequence[float] = INDEX_WAITS) -> list[JobDependency]:
        """Return the counted edges to a job; some are missing if the index lags for more than a moment."""
        edges = self._counted_edges_to(job)
        for seconds in waits:
            if len(edges) >= job.dependents:
                break
            self._clock.sleep(seconds)
            edges = self._counted_edges_to(job)
        return edges

    def _counted_edges_to(self, job: Job) -> list[JobDependency]:
        """Return the edges to a job that the index shows. Those shown as closed are read: they may be open again.

        One shown as open may be closed or deleted, which is noticed when it is closed.
        """
        shown = [edge for edge in self._queries.list_dependents(job.job_id) if not edge.met_at_once]
        edges = [edge for edge in shown if edge.outcome is None]
        closed = [edge for edge in shown if edge.outcome is not None]
        if closed:
            keys = [JobDependency.key(job_id=e.job_id, dependency_job_id=e.dependency_job_id) for e in closed]
            edges += [edge for edge in self._store.batch_get(keys) if edge is not None and not edge.met_at_once]
        return edges

    def _close(self, edge: JobDependency, dependency: Job) -> bool:
        """Close a gate unless it is already closed; False if it was deleted or the dependency has restarted."""

        def close(found: JobDependency | None) -> bool:
            if found is None or found.outcome is not None:
                return found is not None
            try:
                self._close_open(found, dependency)
            except TransactionFailedError:
                fresh = self._store.find(Job.key(job_id=dependency.job_id))
                if fresh is not None and (fresh.status, fresh.lease_epoch) == (
                    dependency.status,
                    dependency.lease_epoch,
                ):
                    raise
                return False
            return True

        key = JobDependency.key(job_id=edge.job_id, dependency_job_id=edge.dependency_job_id)
        what = f"notify job {edge.job_id} that {edge.dependency_job_id} is {dependency.status}"
        return self._store.retrying(lambda: self._store.find(key), close, what, first=edge)

    def _close_open(self, edge: JobDependency, dependency: Job) -> None:
        updates: list[Update] = []
        if edge.gate == "start":
            updates.append(JobGates.open_starts.increment(-1))
        else:
            updates.append(JobGates.open_completions.increment(-1))
            if dependency.is_final:
                updates.append(COUNT_OF[dependency.status].increment(1))
        if is_broken_by(condition_of(edge), dependency):
            updates.append(JobGates.broken_by.set(dependency.job_id))
        with self._store.transaction() as tx:
            tx.check(dependency, unchanged(dependency, Job.status, Job.lease_epoch))
            tx.update(edge, JobDependency.outcome.set(dependency.status), when=JobDependency.outcome.missing())
            tx.update(JobGates.key(job_id=edge.job_id), *updates)

    def _leave_settled(self, job: Job) -> None:
        """Remove an ended job with notified dependents from its queue, unless a retry has just added some."""
        if job.queue_name is None:
            return
        entry = QueueJob.key(queue_name=job.queue_name, job_id=job.job_id)
        tx = self._store.transaction()
        tx.check(Job.key(job_id=job.job_id), (Job.changed_at == job.changed_at) & (Job.dependents <= job.dependents))
        tx.delete(entry, when=QueueJob.priority.exists() & QueueJob.rank.missing())
        tx.update(Queue.key(queue_name=job.queue_name), Queue.job_count.increment(-1))
        try:
            tx.commit()
        except TransactionFailedError:
            fresh = self._store.find(Job.key(job_id=job.job_id))
            is_same = fresh is not None and fresh.changed_at == job.changed_at and fresh.dependents <= job.dependents
            if is_same and self._store.find(entry) is not None:
                raise

    def settle_due(self, job: Job, entry: QueueJob) -> None:
        """Notify the dependents of an ended job whose queue entry is due; those that the index does not show, later.

        This does not wait for the index: there may be many such jobs, and other due entries come after them.
        """
        self.settle(job, waits=())
        if self._queries.find_entry(job) is not None:
            due = wall_time(self._clock) + SETTLING_TIME
            with suppress(ConditionFailedError, NotFoundError):  # it was deleted just now, or is held for longer
                self._store.update(entry, QueueJob.not_before.set(due), when=unchanged(entry, QueueJob.not_before))

    # --- going on ---------------------------------------------------------------------------------------------------

    def go_on(self, job_id: str) -> Job | None:
        """Advance a job as far as its gates allow: it starts, completes, or ends because a gate broke.

        Returns the job if it ended, after notifying its dependents.
        """
        return self._settled(self._go_on(job_id))

    def _go_on(self, job_id: str) -> Job | None:
        """The same, but the dependents of a job that ended are not notified yet."""

        def go_on(read: tuple[Job | None, JobGates | None]) -> Job | None:
            job, gates = read
            if job is None or gates is None or job.is_final:
                return None
            if job.status in CLAIMABLE and gates.broken_by is not None:
                return self.end_waiting(job, Status.CANCELLED, self.reason_of(gates.broken_by), gates=gates)
            if job.status in CLAIMABLE:
                entry = self._queries.find_entry(job)
                if not (gates.open_starts or entry is None or entry.rank is not None or entry.not_before is not None):
                    self._make_ready(job, gates, entry)
                return None
            return self._conclude(job, gates) if job.is_awaiting and gates.open_completions == 0 else None

        keys = Job.key(job_id=job_id), JobGates.key(job_id=job_id)
        what = f"notify job {job_id} that its dependencies have ended"
        return self._store.retrying(lambda: self._store.get_together(*keys), go_on, what)

    def _conclude(self, job: Job, gates: JobGates) -> Job | None:
        if gates.broken_by is not None:
            return self.end_waiting(job, Status.FAILED, self.reason_of(gates.broken_by), gates=gates)
        return self.end_waiting(job, Status.COMPLETED, None, gates=gates)

    def reason_of(self, broken_by: str) -> str:
        """Return why a job ends whose gate was broken by another one."""
        dependency = self._store.find(Job.key(job_id=broken_by))
        return f"job {broken_by} was deleted" if dependency is None else f"job {broken_by} ended {dependency.status}"

    def promote(self, entry: QueueJob, job: Job) -> None:
        """Make a due job ready, unless it waits for others as well.

        If another worker was faster, the job was cancelled or its gates have changed, the next look shows it.
        """
        gates = self._store.find(JobGates.key(job_id=job.job_id)) if job.is_gated else None
        with suppress(TransactionFailedError):
            self._make_ready(job, gates, entry)

    def _make_ready(self, job: Job, gates: JobGates | None, entry: QueueJob) -> None:
        """Let workers find a job whose time has come, unless a gate is open.

        The process that closes the last gate either sees the time and leaves the job to `promote`, or sees none.
        """
        updates: list[Update] = [QueueJob.not_before.set(None)]
        tx = self._store.transaction()
        tx.check(job, unchanged(job, Job.status, Job.is_gated))
        if gates is not None:
            tx.check(gates, unchanged(gates, JobGates.open_starts))
        if gates is None or not gates.open_starts:
            updates.append(QueueJob.rank.set(rank_of(entry.priority)))
        tx.update(entry, *updates, when=unchanged(entry, QueueJob.rank, QueueJob.not_before, QueueJob.priority))
        tx.commit()


class Starts:
    """Notifies of starts. The jobs already run, so a store that fails now does not stop them: it retries later."""

    def __init__(self, store: Store, endings: Endings) -> None:
        self._store = store
        self._endings = endings
        self._pending: list[Job] = []
        """Claimed jobs whose dependents have not all been notified of the start."""
        self._lock = threading.Lock()

    def notify(self, jobs: list[Job]) -> None:
        """Notify the dependents of the start of these jobs; `notify_pending` retries what fails."""
        awaited = [job for job in jobs if job.dependents]
        if not awaited:
            return
        try:
            pending = self._endings.notify_of_start(awaited)
        except JobtableError as error:
            if not is_passing(error):
                raise
            _LOG.warning("could not notify jobs waiting for a start; will retry: %s", error)
            pending = awaited
        self.notify_later(pending)

    def notify_later(self, jobs: list[Job]) -> None:
        """Leave it to the next `notify_pending`."""
        with self._lock:
            self._pending += jobs

    def notify_pending(self) -> None:
        """Notify the dependents that could not be notified when the jobs were claimed."""
        with self._lock:
            pending, self._pending = self._pending, []
        if not pending:
            return
        try:
            found = self._store.batch_get([Job.key(job_id=job.job_id) for job in pending])
        except JobtableError:
            self.notify_later(pending)
            raise
        runs = [(before, now) for before, now in zip(pending, found, strict=True) if now is not None]
        # The end of a run notifies everyone, so only those that still run are left.
        self.notify([n for b, n in runs if n.status is Status.RUNNING and n.lease_epoch == b.lease_epoch])


def add_ending(
    transition: Transition,
    job: Job,
    status: Status,
    message: str | None,
    *more: Update,
    result: Json = None,
    by: str | None = None,
    instance_id: str | None = None,
    when: Condition | None = None,
    parents: Parents | None = None,
) -> None:
    """End a job with the transition, and change `more` of it: it gives up its lease and leaves its queue."""
    at = transition.time_for(job)
    updates = [*more, Job.ended_at.set(at), Job.lease_seconds.set(None), Job.requested.set(None)]
    if job.is_awaiting:
        updates.append(Job.is_awaiting.set(False))
    if result is not None:
        updates.append(Job.result.set(result))
    if status is Status.COMPLETED:
        updates.append(Job.progress.set(100))
    transition.change(
        job,
        status,
        at,
        *updates,
        message=message,
        progress=100 if status is Status.COMPLETED else None,
        by=by,
        instance_id=instance_id,
        when=(Job.dependents == job.dependents) if when is None else (Job.dependents == job.dependents) & when,
    )
    if has_lease(job) and job.queue_name is not None:
        transition.count(job.queue_name, running=-1)
    transition.leave_queue(job, are_notified=parents is not None and parents.notify(transition, job, status))
    transition.add_last_act(job, status, message, result)
