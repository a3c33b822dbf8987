"""Edges between jobs: added without making a cycle, counted, and opened again when a job is retried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jobtable.clock import Clock
from jobtable.errors import (
    ConflictError,
    DependencyCycleError,
    ErrorReason,
    JobStateError,
    NotFoundError,
    TransactionFailedError,
)
from jobtable.jobs.dependencies.edges import (
    awaited,
    condition_of,
    count_edges,
    describe,
    find_path,
    gated,
    is_broken_by,
    new_edge,
    same_gates,
)
from jobtable.jobs.lifecycle.endings import COUNT_OF, INDEX_WAITS
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.stored.entities import DependencyGraph, Job, JobDependency, JobGates, QueueJob
from jobtable.jobs.stored.field_types import CLAIMABLE, Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition
from jobtable.model import Condition, Update, unchanged
from jobtable.store import Store
from jobtable.store.transactions import Transaction


class Dependencies:
    """The edges between existing jobs. New jobs bring theirs along when they are submitted."""

    def __init__(self, store: Store, clock: Clock, queries: JobQueries) -> None:
        self._store = store
        self._clock = clock
        self._queries = queries

    def add(self, job_id: str, on: DependsOn) -> JobDependency:
        """Make a job wait for another one; see `JobVerbs.add_dependency`."""
        if job_id == on.job_id:
            raise DependencyCycleError(f"job {job_id} cannot wait for itself")

        def add_edge(version: int) -> JobDependency:
            self._refuse_cycle(job_id, on)
            job, dependency = self._queries.get_job(job_id), self._queries.get_job(on.job_id)
            edge = self._edge(job, dependency, on)
            tx = self._store.transaction()
            self._add_edge(tx, job, edge, on)
            raise_version(tx, version)
            try:
                tx.commit()
            except TransactionFailedError as error:
                self._refuse_repetition(edge, error)
                raise
            return edge

        return self._store.retrying(
            lambda: graph_version(self._store), add_edge, f"make job {job_id} wait for {on.job_id}"
        )

    def _refuse_cycle(self, job_id: str, on: DependsOn) -> None:
        waiting = gated(job_id, on.gate)
        path = find_path(awaited(on.job_id, on.condition), waiting, self.edges_of)
        if path is not None:
            raise DependencyCycleError(f"jobs would wait for each other: {describe((waiting, *path))}")

    def edges_of(self, job_id: str) -> Iterable[JobDependency]:
        """Return the edges from a job as they are now, including closed ones, which a retry opens again."""
        return self._store.query(JobDependency.key(job_id=job_id))

    def _edges_to(self, job_id: str) -> list[JobDependency]:
        """Return the edges to an ended job as they are now; some may be missing if the index lags."""
        edges: list[JobDependency] = []
        for seconds in (0, *INDEX_WAITS):
            self._clock.sleep(seconds)
            shown = self._queries.list_dependents(job_id)
            keys = [JobDependency.key(job_id=e.job_id, dependency_job_id=e.dependency_job_id) for e in shown]
            edges = [edge for edge in self._store.batch_get(keys) if edge is not None]
            job = self._store.find(Job.key(job_id=job_id))
            if job is None or _counted(edges) >= job.dependents:
                break
        return edges

    def _edge(self, job: Job, dependency: Job, on: DependsOn) -> JobDependency:
        allowed = CLAIMABLE if on.gate == "start" else CLAIMABLE | {Status.RUNNING}
        if job.status not in allowed:
            raise JobStateError(
                f"job {job.job_id} is {job.status}; its {on.gate} cannot wait for more jobs",
                reason=ErrorReason.JOB_ENDED if job.is_final else ErrorReason.JOB_ACTIVE,
            )
        if is_broken_by(on.condition, dependency):
            raise JobStateError(
                f"job {job.job_id} cannot wait for {on.job_id} to be {on.condition}; that job is {dependency.status}"
            )
        return new_edge(job.job_id, on, dependency, self._clock.now())

    def _add_edge(self, tx: Transaction, job: Job, edge: JobDependency, on: DependsOn) -> None:
        tx.add(edge)
        same_state = (Job.status == job.status) & (Job.is_awaiting == job.is_awaiting)
        tx.update(Job.key(job_id=job.job_id), Job.is_gated.set(True), when=same_state)
        counts = count_edges(job.job_id, [edge])
        if not job.is_gated:
            tx.add(counts)
        elif changes := _increments(counts):
            tx.update(JobGates.key(job_id=job.job_id), *changes)
        if edge.met_at_once:
            return
        watch(tx, on.job_id, [on.condition])
        if on.gate == "start" and job.queue_name is not None:
            entry = QueueJob.key(queue_name=job.queue_name, job_id=job.job_id)
            tx.update(entry, QueueJob.rank.set(None))

    def _refuse_repetition(self, edge: JobDependency, error: TransactionFailedError) -> None:
        there = self._find_fresh(edge)
        if there is not None:
            raise ConflictError(
                f"job {edge.job_id} already waits for {edge.dependency_job_id} ({there.gate}, {there.condition})"
            ) from error

    # --- when a job is retried or deleted ---------------------------------------------------------------------------

    def recount(self, tx: Transaction, job_id: str) -> JobGates:
        """Count again what a job waits for, and store the counts with the transaction."""
        stored = self._store.get(JobGates.key(job_id=job_id))
        edges = list(self.edges_of(job_id))
        counted = count_edges(job_id, edges, self._find_breaker(edges))
        tx.put(counted, when=same_gates(stored) & unchanged(stored, *COUNT_OF.values()))
        return counted

    def _find_breaker(self, edges: Sequence[JobDependency]) -> str | None:
        """Return a job whose end broke one of these closed edges, or None."""
        found = self._queries.read_jobs(edge.dependency_job_id for edge in edges)
        broken_by = None
        for edge, dependency in zip(edges, found, strict=True):
            if dependency is None and edge.outcome is not None:
                continue  # it was deleted before the index showed this edge, which blocks nothing
            if dependency is None:
                raise NotFoundError(f"job {edge.job_id} waits for {edge.dependency_job_id}, which no longer exists")
            if edge.outcome is not None and is_broken_by(condition_of(edge), dependency):
                broken_by = dependency.job_id
        return broken_by

    def find_breaker_of(self, job: Job) -> str | None:
        """Return an ended job because of which this one cannot start, or None."""
        return self._find_breaker(list(self.edges_of(job.job_id))) if job.is_gated else None

    def reopen(self, dependency: Job) -> None:
        """Open the gates of the dependents of a job that restarts, except those that waited for its start.

        A gate that has let its job start stays closed. Nothing is opened unless the job has a queue entry, by which
        the dependents are notified of its end again if it does not restart.
        """
        edges = self._edges_to(dependency.job_id)
        if _counted(edges) < self._queries.get_job(dependency.job_id).dependents:
            raise ConflictError(
                f"job {dependency.job_id} cannot restart yet: the index does not show all its dependents; "
                "retry it again in a moment"
            )
        for edge in edges:
            if condition_of(edge) is not EdgeCondition.STARTED or dependency.started_at is None:
                self._reopen(edge, dependency)

    def _reopen(self, edge: JobDependency, dependency: Job) -> None:
        def reopen(fresh: JobDependency | None) -> None:
            job, gates = self._store.get_together(Job.key(job_id=edge.job_id), JobGates.key(job_id=edge.job_id))
            if fresh is None or job is None or gates is None or not _can_be_reopened(fresh, job):
                return
            tx = self._store.transaction()
            self._add_opening(tx, fresh, job, gates)
            _require_entry(tx, dependency, fresh)
            try:
                tx.commit()
            except TransactionFailedError:
                if self._has_entry(dependency):
                    raise

        what = f"make job {edge.job_id} wait for {edge.dependency_job_id} again"
        self._store.retrying(lambda: self._find_fresh(edge), reopen, what)

    def _find_fresh(self, edge: JobDependency) -> JobDependency | None:
        return self._store.find(JobDependency.key(job_id=edge.job_id, dependency_job_id=edge.dependency_job_id))

    def _has_entry(self, ended: Job) -> bool:
        """Return whether an ended job is unchanged and still has a queue entry."""
        fresh = self._store.find(Job.key(job_id=ended.job_id))
        is_same = fresh is not None and fresh.changed_at == ended.changed_at
        return is_same and (ended.queue_name is None or self._queries.find_entry(ended) is not None)

    def _add_opening(self, tx: Transaction, edge: JobDependency, job: Job, gates: JobGates) -> None:
        is_start = edge.gate == "start"
        updates: list[Update] = [(JobGates.open_starts if is_start else JobGates.open_completions).increment(1)]
        if not is_start and edge.outcome is not None and edge.outcome in COUNT_OF:
            updates.append(COUNT_OF[edge.outcome].increment(-1))
        if gates.broken_by == edge.dependency_job_id:
            others = [each for each in self.edges_of(job.job_id) if each.dependency_job_id != edge.dependency_job_id]
            updates.append(JobGates.broken_by.set(self._find_breaker(others)))
        opened = [JobDependency.outcome.set(None), JobDependency.met_at_once.set(None)]
        tx.update(edge, *opened, when=unchanged(edge, JobDependency.outcome, JobDependency.met_at_once))
        tx.update(gates, *updates, when=unchanged(gates, JobGates.broken_by))
        tx.check(job, unchanged(job, Job.status, Job.attempts))
        if is_start and job.status in CLAIMABLE and job.queue_name is not None:
            tx.update(QueueJob.key(queue_name=job.queue_name, job_id=job.job_id), QueueJob.rank.set(None))

    def remove_all(self, job_id: str) -> int:
        """Remove the edges from and to an ended job, and what other jobs count of them; return how many.

        An edge that the index does not show yet stays, but its job was notified: it blocks nothing.
        """
        removed = sum(self._remove(edge, self._uncount_dependent) for edge in self.edges_of(job_id))
        return removed + sum(self._remove(edge, _uncount_outcome) for edge in self._edges_to(job_id))

    def _remove(self, edge: JobDependency, uncount: Callable[[Transaction, JobDependency], None]) -> bool:
        """Remove an edge with what one of its jobs counts of it; return whether it existed."""

        def remove(fresh: JobDependency | None) -> bool:
            if fresh is None:
                return False
            same = unchanged(fresh, JobDependency.type, JobDependency.outcome, JobDependency.met_at_once)
            with self._store.transaction() as tx:
                tx.delete(fresh, when=same)
                uncount(tx, fresh)
            return True

        what = f"remove the dependency of job {edge.job_id} on {edge.dependency_job_id}"
        return self._store.retrying(lambda: self._find_fresh(edge), remove, what)

    def _uncount_dependent(self, tx: Transaction, edge: JobDependency) -> None:
        dependency = None if edge.met_at_once else self._store.find(Job.key(job_id=edge.dependency_job_id))
        # Edges of an earlier version do not record whether they are counted.
        if dependency is not None and dependency.dependents:
            tx.update(dependency, Job.dependents.increment(-1), when=unchanged(dependency, Job.dependents))


def _counted(edges: Iterable[JobDependency]) -> int:
    """Return how many of the edges to a job it counts as its dependents."""
    return sum(not edge.met_at_once for edge in edges)


def _can_be_reopened(edge: JobDependency, job: Job) -> bool:
    has_let_it_start = edge.gate == "start" and not job.is_final and (job.status is not Status.PENDING or job.attempts)
    return edge.outcome is not None and not has_let_it_start


def _require_entry(tx: Transaction, ended: Job, edge: JobDependency) -> None:
    """Open an edge to an ended job only while the job has a queue entry, and count the edge if it was not counted."""
    is_same = unchanged(ended, Job.status, Job.changed_at)
    if edge.met_at_once:
        tx.update(ended, Job.dependents.increment(1), when=is_same)
    else:
        tx.check(ended, is_same)
    if ended.queue_name is not None:
        entry = QueueJob.key(queue_name=ended.queue_name, job_id=ended.job_id)
        tx.check(entry, QueueJob.not_before.exists())


def _uncount_outcome(tx: Transaction, edge: JobDependency) -> None:
    if edge.gate == "completion" and edge.outcome is not None and edge.outcome in COUNT_OF:
        tx.update(JobGates.key(job_id=edge.job_id), COUNT_OF[edge.outcome].increment(-1))


def _increments(counts: JobGates) -> list[Update]:
    """Return what to add to the counts of a job that gets more edges."""
    names = ("open_starts", "open_completions", "completed", "failed", "stopped", "cancelled")
    return [getattr(JobGates, name).increment(getattr(counts, name)) for name in names if getattr(counts, name)]


def graph_version(store: Store) -> int:
    """Return how often edges were added that could close a cycle."""
    graph = store.find(DependencyGraph.key())
    return 0 if graph is None else graph.version


def raise_version(tx: Transaction, seen: int) -> None:
    """Make a transaction fail if edges that could close a cycle were added since."""
    if seen == 0:
        tx.add(DependencyGraph(version=1))
    else:
        tx.update(DependencyGraph.key(), DependencyGraph.version.increment(1), when=DependencyGraph.version == seen)


def watch(tx: Transaction, job_id: str, conditions: list[EdgeCondition], *, when: Condition | None = None) -> None:
    """Count new dependents of a job, provided that it has not notified such dependents yet, and `when`."""
    may_run = EdgeCondition.STARTED not in conditions
    statuses = [Status.PENDING, Status.INTERRUPTED, *([Status.RUNNING] if may_run else [])]
    unnotified = Job.status.is_in(*statuses)
    counted = Job.dependents.increment(len(conditions))
    tx.update(Job.key(job_id=job_id), counted, when=unnotified if when is None else unnotified & when)
