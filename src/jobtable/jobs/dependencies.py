"""Edges between jobs: added without making a cycle, counted, and opened again when a job is retried."""

from __future__ import annotations

from collections.abc import Iterable

from jobtable.clock import Clock
from jobtable.errors import (
    ConflictError,
    DependencyCycleError,
    JobStateError,
    NotFoundError,
    TransactionFailedError,
)
from jobtable.jobs.cycles import awaited, find_path, gated, told
from jobtable.jobs.definition import DependsOn, EdgeCondition
from jobtable.jobs.edges import condition_of, count_edges, is_broken_by, is_met_by, outcome_of
from jobtable.jobs.endings import COUNT_OF
from jobtable.jobs.entities import DependencyGraph, Job, JobDependency, JobGates, QueueJob
from jobtable.jobs.queries import JobQueries
from jobtable.jobs.records import CLAIMABLE, Status
from jobtable.model import Update, unchanged
from jobtable.store import Store
from jobtable.store.transactions import Transaction

_MOST_TRIES = 50


class Dependencies:
    """The edges between jobs that are there already. New jobs bring theirs along when they are submitted."""

    def __init__(self, store: Store, clock: Clock, queries: JobQueries) -> None:
        self._store = store
        self._clock = clock
        self._queries = queries

    def add(self, job_id: str, on: DependsOn) -> JobDependency:
        """Let a job wait for another one, or raise DependencyCycleError if they would wait for each other.

        Additions are serialised by one counter, so two that are made at once cannot close a cycle between them.
        """
        if job_id == on.job_id:
            raise DependencyCycleError(f"job {job_id} cannot wait for itself")
        for _ in range(_MOST_TRIES):
            version = graph_version(self._store)
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
                continue
            return edge
        raise ConflictError(
            f"job {job_id} could not be made to wait for {on.job_id}: other edges are added all the time"
        )

    def _refuse_cycle(self, job_id: str, on: DependsOn) -> None:
        waiting = gated(job_id, on.gate)
        path = find_path(awaited(on.job_id, on.condition), waiting, self.edges_of)
        if path is not None:
            raise DependencyCycleError(f"jobs would wait for each other: {told((waiting, *path))}")

    def edges_of(self, job_id: str) -> Iterable[JobDependency]:
        """The edges from a job, as they are now; also those that are closed, because a retry opens them again."""
        return self._store.query(JobDependency.key(job_id=job_id))

    def _edge(self, job: Job, dependency: Job, on: DependsOn) -> JobDependency:
        allowed = CLAIMABLE if on.gate == "start" else CLAIMABLE | {Status.RUNNING}
        if job.status not in allowed:
            raise JobStateError(f"job {job.job_id} is {job.status}: its {on.gate} cannot wait for anything more")
        if is_broken_by(on.condition, dependency):
            raise JobStateError(
                f"job {job.job_id} cannot wait for {on.job_id} to be {on.condition}: that is {dependency.status}"
            )
        return JobDependency(
            job_id=job.job_id,
            dependency_job_id=on.job_id,
            type=on.type,
            condition=on.condition.value,
            gate=on.gate,
            created_at=self._clock.now(),
            **outcome_of(on.condition, dependency),
        )

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
            place = QueueJob.key(queue_name=job.queue_name, job_id=job.job_id)
            tx.update(place, QueueJob.rank.set(None))

    def _refuse_repetition(self, edge: JobDependency, error: TransactionFailedError) -> None:
        there = self._store.find(JobDependency.key(job_id=edge.job_id, dependency_job_id=edge.dependency_job_id))
        if there is not None:
            raise ConflictError(
                f"job {edge.job_id} waits for {edge.dependency_job_id} already ({there.gate}, {there.condition})"
            ) from error

    # --- when a job is retried or deleted ---------------------------------------------------------------------------

    def count_gates(self, job_id: str) -> JobGates:
        """What a job waits for, counted anew from its edges."""
        edges = list(self.edges_of(job_id))
        found = self._store.batch_get([Job.key(job_id=edge.dependency_job_id) for edge in edges])
        broken_by = None
        for edge, dependency in zip(edges, found, strict=True):
            if dependency is None:
                raise NotFoundError(f"job {job_id} waits for {edge.dependency_job_id}, which is not there any more")
            if edge.outcome is not None and is_broken_by(condition_of(edge), dependency):
                broken_by = dependency.job_id
        return count_edges(job_id, edges, broken_by)

    def reopen(self, job_id: str) -> None:
        """Open the gates of everyone who waits for a job that begins anew, but not of whoever waited for its start."""
        job = self._queries.get_job(job_id)
        for edge in self._queries.list_dependents(job_id):
            if edge.outcome is None or is_met_by(condition_of(edge), job):
                continue
            is_start = edge.gate == "start"
            updates = [(JobGates.open_starts if is_start else JobGates.open_completions).increment(1)]
            if not is_start and edge.outcome in COUNT_OF:
                updates.append(COUNT_OF[edge.outcome].increment(-1))
            if self._store.get(JobGates.key(job_id=edge.job_id)).broken_by == job_id:
                updates.append(JobGates.broken_by.set(None))
            tx = self._store.transaction()
            opened = [JobDependency.outcome.set(None), JobDependency.met_at_once.set(None)]
            tx.update(edge, *opened, when=JobDependency.outcome == edge.outcome)
            tx.update(JobGates.key(job_id=edge.job_id), *updates)
            if edge.met_at_once:
                watch(tx, job_id, [condition_of(edge)])
            try:
                tx.commit()
            except TransactionFailedError:
                if not self._queries.get_job(job_id).is_final:  # it has ended again already: they need not wait
                    raise

    def remove_all(self, job_id: str) -> int:
        """Remove the edges from and to an ended job, and what other jobs count of them."""
        removed = 0
        for edge in self._store.query(JobDependency.key(job_id=job_id)):
            tx = self._store.transaction()
            tx.delete(edge, when=unchanged(edge, JobDependency.met_at_once))
            dependency = None if edge.met_at_once else self._store.find(Job.key(job_id=edge.dependency_job_id))
            # Edges that an earlier version has written do not say that they are not counted.
            if dependency is not None and dependency.dependents:
                tx.update(Job.key(job_id=edge.dependency_job_id), Job.dependents.increment(-1))
            tx.commit()
            removed += 1
        for edge in self._queries.list_dependents(job_id):
            tx = self._store.transaction()
            tx.delete(edge)
            if edge.gate == "completion" and edge.outcome is not None and edge.outcome in COUNT_OF:
                tx.update(JobGates.key(job_id=edge.job_id), COUNT_OF[edge.outcome].increment(-1))
            tx.commit()
            removed += 1
        return removed


def _increments(counts: JobGates) -> list[Update]:
    """What to add to the counts of a job that gets more edges."""
    names = ("open_starts", "open_completions", "completed", "failed", "stopped", "cancelled")
    return [getattr(JobGates, name).increment(getattr(counts, name)) for name in names if getattr(counts, name)]


def graph_version(store: Store) -> int:
    """How often edges were added that could close a cycle."""
    graph = store.find(DependencyGraph.key())
    return 0 if graph is None else graph.version


def raise_version(tx: Transaction, seen: int) -> None:
    """Let a transaction happen only if no edges that could close a cycle were added since."""
    if seen == 0:
        tx.add(DependencyGraph(version=1))
    else:
        tx.update(DependencyGraph.key(), DependencyGraph.version.increment(1), when=DependencyGraph.version == seen)


def watch(tx: Transaction, job_id: str, conditions: list[EdgeCondition]) -> None:
    """Count new dependents on a job that has not come so far that it would not tell them any more."""
    may_run = EdgeCondition.STARTED not in conditions
    statuses = [Status.PENDING, Status.INTERRUPTED, *([Status.RUNNING] if may_run else [])]
    tx.update(Job.key(job_id=job_id), Job.dependents.increment(len(conditions)), when=Job.status.is_in(*statuses))
