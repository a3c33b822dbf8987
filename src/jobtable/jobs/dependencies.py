"""Edges between jobs: added without making a cycle, counted, and opened again when a job is retried."""

from __future__ import annotations

from collections import Counter

from jobtable.clock import Clock
from jobtable.errors import (
    ConflictError,
    DependencyCycleError,
    JobStateError,
    NotFoundError,
    TransactionFailedError,
)
from jobtable.jobs.definition import DependsOn, EdgeCondition
from jobtable.jobs.edges import condition_of, is_broken_by, is_met_by
from jobtable.jobs.endings import COUNT_OF
from jobtable.jobs.entities import DependencyGraph, Job, JobDependency, JobGates, QueueJob
from jobtable.jobs.queries import JobQueries
from jobtable.jobs.records import CLAIMABLE, Status
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

        Additions are serialised by one counter, so two that are made at once cannot close a cycle between them. An
        edge that a job brings along when it is submitted needs no such care: nothing waits for a new job yet.
        """
        if job_id == on.job_id:
            raise DependencyCycleError(f"job {job_id} cannot wait for itself")
        for _ in range(_MOST_TRIES):
            graph = self._store.find(DependencyGraph.key())
            self._refuse_cycle(job_id, on)
            job, dependency = self._queries.get_job(job_id), self._queries.get_job(on.job_id)
            edge = self._edge(job, dependency, on)
            tx = self._store.transaction()
            self._add_edge(tx, job, edge, on)
            if graph is None:
                tx.add(DependencyGraph(version=1))
            else:
                seen = DependencyGraph.version == graph.version
                tx.update(DependencyGraph.key(), DependencyGraph.version.increment(1), when=seen)
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
        """Follow what the dependency waits for, by edges of the same gate; the job itself must not be there."""
        came_from: dict[str, str] = {on.job_id: job_id}
        waiting = [on.job_id]
        while waiting:
            current = waiting.pop()
            for edge in self._store.query(JobDependency.key(job_id=current)):
                following = edge.dependency_job_id
                if edge.gate != on.gate or following in came_from:
                    continue
                came_from[following] = current
                if following == job_id:
                    raise DependencyCycleError(f"jobs would wait for each other: {_path(came_from, job_id)}")
                waiting.append(following)

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
            outcome=dependency.status if is_met_by(on.condition, dependency) else None,
        )

    def _add_edge(self, tx: Transaction, job: Job, edge: JobDependency, on: DependsOn) -> None:
        tx.add(edge)
        same_state = (Job.status == job.status) & (Job.is_awaiting == job.is_awaiting)
        tx.update(Job.key(job_id=job.job_id), Job.is_gated.set(True), when=same_state)
        open_gates = 1 if edge.outcome is None else 0
        counts = {"start": JobGates.open_starts, "completion": JobGates.open_completions}
        if job.is_gated:
            tx.update(JobGates.key(job_id=job.job_id), counts[on.gate].increment(open_gates))
        else:
            tx.add(JobGates(job_id=job.job_id).model_copy(update={f"open_{on.gate}s": open_gates}))
        if edge.outcome is not None:
            return
        watch(tx, on.job_id, [on.condition])
        if on.gate == "start" and job.queue_name is not None:
            place = QueueJob.key(queue_name=job.queue_name, job_id=job.job_id)
            tx.update(place, QueueJob.rank.set(None), QueueJob.not_before.set(None))

    def _refuse_repetition(self, edge: JobDependency, error: TransactionFailedError) -> None:
        there = self._store.find(JobDependency.key(job_id=edge.job_id, dependency_job_id=edge.dependency_job_id))
        if there is not None:
            raise ConflictError(
                f"job {edge.job_id} waits for {edge.dependency_job_id} already ({there.gate}, {there.condition})"
            ) from error

    # --- when a job is retried or deleted ---------------------------------------------------------------------------

    def count_gates(self, job_id: str) -> JobGates:
        """What a job waits for, counted anew from its edges."""
        edges = list(self._store.query(JobDependency.key(job_id=job_id)))
        found = self._store.batch_get([Job.key(job_id=edge.dependency_job_id) for edge in edges])
        counts: Counter[str] = Counter()
        broken_by = None
        for edge, dependency in zip(edges, found, strict=True):
            if dependency is None:
                raise NotFoundError(f"job {job_id} waits for {edge.dependency_job_id}, which is not there any more")
            if edge.outcome is None:
                counts["open_starts" if edge.gate == "start" else "open_completions"] += 1
            elif edge.gate == "completion" and edge.outcome in COUNT_OF:
                counts[edge.outcome.value.lower()] += 1
            if edge.outcome is not None and is_broken_by(condition_of(edge), dependency):
                broken_by = dependency.job_id
        return JobGates(job_id=job_id, broken_by=broken_by).model_copy(update=dict(counts))

    def reopen(self, job_id: str) -> None:
        """Open the gates of everyone who waits for a job that begins anew."""
        for edge in self._queries.list_dependents(job_id):
            if edge.outcome is None:
                continue
            is_start = edge.gate == "start"
            updates = [(JobGates.open_starts if is_start else JobGates.open_completions).increment(1)]
            if not is_start and edge.outcome in COUNT_OF:
                updates.append(COUNT_OF[edge.outcome].increment(-1))
            if self._store.get(JobGates.key(job_id=edge.job_id)).broken_by == job_id:
                updates.append(JobGates.broken_by.set(None))
            tx = self._store.transaction()
            tx.update(edge, JobDependency.outcome.set(None), when=JobDependency.outcome == edge.outcome)
            tx.update(JobGates.key(job_id=edge.job_id), *updates)
            tx.commit()

    def remove_all(self, job_id: str) -> int:
        """Remove the edges from and to an ended job, and what other jobs count of them."""
        removed = 0
        for edge in self._store.query(JobDependency.key(job_id=job_id)):
            tx = self._store.transaction()
            tx.delete(edge, when=JobDependency.outcome.missing() if edge.outcome is None else None)
            if edge.outcome is None:
                tx.update(Job.key(job_id=edge.dependency_job_id), Job.dependents.increment(-1))
            tx.commit()
            removed += 1
        for edge in self._queries.list_dependents(job_id):
            tx = self._store.transaction()
            tx.delete(edge)
            if edge.gate == "completion" and edge.outcome in COUNT_OF:
                tx.update(JobGates.key(job_id=edge.job_id), COUNT_OF[edge.outcome].increment(-1))
            tx.commit()
            removed += 1
        return removed


def watch(tx: Transaction, job_id: str, conditions: list[EdgeCondition]) -> None:
    """Count new dependents on a job that has not come so far that it would not tell them any more."""
    may_run = EdgeCondition.STARTED not in conditions
    statuses = [Status.PENDING, Status.INTERRUPTED, *([Status.RUNNING] if may_run else [])]
    tx.update(Job.key(job_id=job_id), Job.dependents.increment(len(conditions)), when=Job.status.is_in(*statuses))


def _path(came_from: dict[str, str], job_id: str) -> str:
    steps = [job_id]
    while len(steps) == 1 or steps[-1] != job_id:
        steps.append(came_from[steps[-1]])
    return " waits for ".join(reversed(steps))
