"""Jobs are submitted: written with their history, their place in a queue, and the edges to what they wait for."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from jobtable.clock import Clock
from jobtable.errors import (
    ConflictError,
    DependencyCycleError,
    JobStateError,
    NotFoundError,
    TransactionFailedError,
    ValueRefusedError,
)
from jobtable.jobs.cycles import Event, awaited, find_path, told
from jobtable.jobs.definition import DependsOn, EdgeCondition, NewJob, refusing
from jobtable.jobs.dependencies import graph_version, raise_version, watch
from jobtable.jobs.edges import condition_of, count_edges, is_broken_by, need_gates, outcome_of
from jobtable.jobs.entities import Job, JobDependency, JobGates, JobStatus, Queue, QueueJob
from jobtable.jobs.queues import Queues
from jobtable.jobs.records import FINAL, Status, rank_of
from jobtable.model import Entity
from jobtable.store import Store
from jobtable.store.transactions import MOST_ACTIONS, Transaction

_KEYS = uuid.UUID("6f1a4c1e-5b1d-5c1b-9a55-3c1d8d2f7a10")
"""The name space of job ids that are made of callers' keys."""
_MOST_TRIES = 20
_CHUNK = 1000
_SHARED_ACTIONS = 4
"""What a job's transaction may need besides its own items: its queue, its parent and that one's gates, the graph."""
MOST_OPEN_DEPENDENCIES = (MOST_ACTIONS - _SHARED_ACTIONS - 5) // 2
"""A job is written with its history, its place, its gates and its parent's edge, and with two actions for each job that
it waits for: the edge, and the count of those who wait."""


@dataclass(frozen=True)
class _Prepared:
    """A new job with the items that are written with it."""

    new: NewJob
    job: Job
    place: QueueJob
    edges: tuple[JobDependency, ...]
    gates: JobGates | None
    parent_edge: JobDependency | None
    parent_dependents: int
    """How many jobs wait for the parent, which must still be so when the edge is written."""
    watched: tuple[DependsOn, ...]
    """Edges that are open: their dependencies must be told of the new dependent."""

    @property
    def actions(self) -> int:
        """How many actions of a transaction it takes, its share of the queue and the parent not counted."""
        return 3 + len(self.edges) + len(self.watched) + (self.gates is not None) + (self.parent_edge is not None)


class Submission:
    """Submits jobs. A second submission with the same key or id finds the job of the first."""

    def __init__(self, store: Store, clock: Clock, queues: Queues) -> None:
        self._store = store
        self._clock = clock
        self._queues = queues

    def submit(self, new: NewJob) -> Job:
        """Submit one job. It starts when a worker of its queue is free and everything that it waits for is done."""
        (job,) = self.submit_many([new])
        return job

    def submit_many(self, new: Iterable[NewJob]) -> list[Job]:
        """Submit many jobs, some tens in a transaction. If it is interrupted, the same call again finishes it."""
        submitted: list[Job] = []
        waiting = iter(new)
        while chunk := list(islice(waiting, _CHUNK)):
            submitted += self._submit_chunk(chunk)
        return submitted

    def open_group(self, new: NewJob) -> Job:
        """Make a job that only groups others: it runs at once, without a worker, until it is sealed and they ended."""
        if new.task is not None:
            raise ValueRefusedError(f"a group does nothing itself, but {new.name!r} names the task {new.task}")
        (group,) = self._submit_chunk([new], is_group=True)
        return group

    def submit_together(self, new: Sequence[NewJob], *beside: Entity) -> list[Job]:
        """Submit some jobs with ids, and what else tells of them, in one transaction: all that are not there, or none.

        Those without a task are groups, which are sealed from the beginning: they wait for those that come with them.
        """
        for _ in range(_MOST_TRIES):
            known = self._jobs_named_in(new, new)
            prepared = [self._prepare_sealed(each, known) for each in new if each.job_id not in known]
            if not prepared:
                return [_same(known[str(each.job_id)], each) for each in new]
            version = self._refuse_cycles(prepared, known)
            with suppress(TransactionFailedError):  # then some of it is there now, or has changed
                self._add_all(prepared, version, beside)
        raise ConflictError(f"job {new[0].job_id} could not be submitted: what it is tied to changes all the time")

    # --- what is written --------------------------------------------------------------------------------------------

    def _prepare_sealed(self, new: NewJob, known: dict[str, Job]) -> _Prepared:
        prepared = self._prepare(new, known, is_group=new.task is None)
        if new.task is None:
            prepared = replace(prepared, job=prepared.job.model_copy(update={"is_awaiting": True}))
        known[prepared.job.job_id] = prepared.job
        return prepared

    def _submit_chunk(self, chunk: Sequence[NewJob], *, is_group: bool = False) -> list[Job]:
        named = [new if new.job_id else replace(new, job_id=_id_of(new)) for new in chunk]
        known = self._jobs_named_in(named, [new for new in chunk if new.job_id is not None or new.key is not None])
        prepared: list[_Prepared] = []
        for new in named:
            if new.job_id not in known:
                prepared.append(self._prepare(new, known, is_group))
                known[prepared[-1].job.job_id] = prepared[-1].job
        version = self._refuse_cycles(prepared, known)
        for group in _packed(prepared):
            known.update((job.job_id, job) for job in self._write(group, is_group, version))
            version = None if version is None else version + 1
        return [_same(known[str(new.job_id)], new) for new in named]

    def _jobs_named_in(self, named: Sequence[NewJob], repeatable: Sequence[NewJob]) -> dict[str, Job]:
        """The jobs that are there: parents, dependencies, and what an earlier submission with the same key made."""
        names = {new.parent_job_id for new in named} | {on.job_id for new in named for on in new.depends_on}
        names |= {new.job_id or _id_of(new) for new in repeatable}
        keys = [Job.key(job_id=name) for name in sorted(name for name in names if name is not None)]
        return {job.job_id: job for job in self._store.batch_get(keys) if job is not None}

    def _prepare(self, new: NewJob, known: dict[str, Job], is_group: bool) -> _Prepared:
        now = self._clock.now()
        parent = _needed(known, new.parent_job_id, new.name) if new.parent_job_id else None
        edges, watched = self._edges(new, known, now)
        gates = count_edges(str(new.job_id), edges)
        with refusing(f"job {new.name!r}"):
            job = _job(new, parent, now, is_gated=is_group or need_gates(edges))
            place = _place(new, job, is_ready=not is_group and not gates.open_starts and new.not_before is None)
        if is_group:
            job = job.model_copy(update={"status": Status.RUNNING, "started_at": now})
            place = place.model_copy(update={"not_before": None})
        return _Prepared(
            new=new,
            job=job,
            place=place,
            edges=edges,
            gates=gates if job.is_gated else None,
            parent_edge=_parent_edge(new, parent, now),
            parent_dependents=0 if parent is None else parent.dependents,
            watched=watched,
        )

    def _edges(
        self, new: NewJob, known: dict[str, Job], now: datetime
    ) -> tuple[tuple[JobDependency, ...], tuple[DependsOn, ...]]:
        edges, watched = [], []
        for on in _distinct(new):
            if on.job_id == new.job_id:
                raise ValueRefusedError(f"job {new.job_id} cannot wait for itself")
            dependency = _needed(known, on.job_id, new.name)
            if is_broken_by(on.condition, dependency):
                raise JobStateError(
                    f"{new.name!r} waits for job {on.job_id} to be {on.condition}, but that is {dependency.status}"
                )
            edge = JobDependency(
                job_id=str(new.job_id),
                dependency_job_id=on.job_id,
                type=on.type,
                condition=on.condition.value,
                gate=on.gate,
                created_at=now,
                **outcome_of(on.condition, dependency),
            )
            edges.append(edge)
            if not edge.met_at_once:
                watched.append(on)
        if len(edges) + len(watched) > 2 * MOST_OPEN_DEPENDENCIES:
            raise ValueRefusedError(
                f"{new.name!r} waits for {len(edges)} jobs, and a job is submitted with up to {MOST_OPEN_DEPENDENCIES} "
                "that have not ended: put them into a group and wait for that, or add the others with add_dependency"
            )
        return tuple(edges), tuple(watched)

    # --- writing ----------------------------------------------------------------------------------------------------

    def _refuse_cycles(self, prepared: list[_Prepared], known: dict[str, Job]) -> int | None:
        """Refuse children that their parent would wait for while they wait for its end.

        Nothing waits for a new job but its parent, and nothing can wait for the parent's end by way of other jobs
        unless some job waits for the parent. Where that is so, the version of the graph is given: it must not change
        until the jobs are written.
        """
        ends = {edge.dependency_job_id for each in prepared for edge in each.edges if not _awaits_start(edge)}
        risky = [
            each
            for each in prepared
            if each.parent_edge is not None
            and (known[each.parent_edge.job_id].dependents or each.parent_edge.job_id in ends)
        ]
        if not risky:
            return None
        version = graph_version(self._store)
        edges: dict[str, list[JobDependency]] = {each.job.job_id: list(each.edges) for each in prepared}
        for each in prepared:
            if each.parent_edge is not None:
                parent = each.parent_edge.job_id
                edges.setdefault(parent, list(self._store.query(JobDependency.key(job_id=parent))))
                edges[parent].append(each.parent_edge)

        def edges_of(job_id: str) -> list[JobDependency]:
            if job_id not in edges:
                edges[job_id] = list(self._store.query(JobDependency.key(job_id=job_id)))
            return edges[job_id]

        for each in risky:
            own_end = Event(each.job.job_id, "end")
            for edge in each.edges:
                path = find_path(awaited(edge.dependency_job_id, condition_of(edge)), own_end, edges_of)
                if path is not None:
                    raise DependencyCycleError(f"jobs would wait for each other: {told((own_end, *path))}")
        return version

    def _write(self, group: list[_Prepared], is_group: bool, version: int | None) -> list[Job]:
        """Write some jobs in one transaction, or one by one if one of them stands in the way of the others."""
        try:
            self._add_all(group, version)
        except TransactionFailedError:
            return [self._submit_alone(each.new, is_group) for each in group]
        return [each.job for each in group]

    def _submit_alone(self, new: NewJob, is_group: bool) -> Job:
        """Write one job, looking anew at what it is tied to as often as that changes."""
        for _ in range(_MOST_TRIES):
            known = self._jobs_named_in([new], [new])
            if str(new.job_id) in known:
                return known[str(new.job_id)]
            prepared = self._prepare(new, known, is_group)
            version = self._refuse_cycles([prepared], known)
            try:
                self._add_all([prepared], version)
            except TransactionFailedError:
                continue
            return prepared.job
        raise ConflictError(f"job {new.job_id} could not be submitted: what it is tied to changes all the time")

    def _add_all(self, group: list[_Prepared], version: int | None, beside: Sequence[Entity] = ()) -> None:
        try:
            self._add_once(group, version, beside)
        except TransactionFailedError as error:
            if not _misses_a_queue(error):
                raise
            for name in sorted({each.place.queue_name for each in group}):
                self._queues.ensure(name)
            self._add_once(group, version, beside)

    def _add_once(self, group: list[_Prepared], version: int | None, beside: Sequence[Entity]) -> None:
        with self._store.transaction() as tx:
            _add_all(tx, group)
            for item in beside:
                tx.put(item)
            if version is not None:
                raise_version(tx, version)


def _distinct(new: NewJob) -> list[DependsOn]:
    """What a job waits for, each named once; ValueRefusedError if it waits for one job in two ways."""
    found: dict[str, DependsOn] = {}
    for on in new.depends_on:
        if found.setdefault(on.job_id, on) != on:
            raise ValueRefusedError(f"{new.name!r} waits for job {on.job_id} in two ways: leave one of them out")
    return list(found.values())


def _awaits_start(edge: JobDependency) -> bool:
    return condition_of(edge) is EdgeCondition.STARTED


def _same(job: Job, new: NewJob) -> Job:
    """The job, unless its key was used for another task before."""
    if job.definition.task != new.task:
        raise ConflictError(
            f"job {job.job_id} was submitted before with the task {job.definition.task}, not {new.task}: "
            "use another key"
        )
    return job


def _id_of(new: NewJob) -> str:
    if new.key is None:
        return str(uuid.uuid4())
    if not new.key:
        raise ValueRefusedError(f"the key of job {new.name!r} is empty: all such jobs would be one; leave it out")
    return str(uuid.uuid5(_KEYS, f"{new.user}\n{new.key}"))


def _needed(known: dict[str, Job], job_id: str, name: str) -> Job:
    try:
        return known[job_id]
    except KeyError:
        raise NotFoundError(f"{name!r} refers to job {job_id}, which is not there") from None


def _job(new: NewJob, parent: Job | None, now: datetime, *, is_gated: bool) -> Job:
    return Job(
        job_id=str(new.job_id),
        name=new.name,
        description=new.description,
        created_at=now,
        created_by=new.user,
        priority=new.priority,
        job_config=new.job_config(),
        estimated_duration=new.estimated_duration,
        tags=new.tags,
        job_type=new.job_type,
        parent_job_id=new.parent_job_id,
        root_job_id=None if parent is None else parent.root_job_id or parent.job_id,
        job_stage=new.job_stage,
        queue_name=new.queue,
        max_attempts=new.max_attempts,
        dependents=0 if new.parent_waits is None else 1,
        is_gated=is_gated,
        changed_at=now,
    )


def _place(new: NewJob, job: Job, *, is_ready: bool) -> QueueJob:
    return QueueJob(
        queue_name=new.queue,
        job_id=job.job_id,
        enqueued_at=job.created_at,
        priority=new.priority,
        rank=rank_of(new.priority) if is_ready else None,
        not_before=new.not_before,
        sweep_id=new.sweep_id,
    )


def _parent_edge(new: NewJob, parent: Job | None, now: datetime) -> JobDependency | None:
    if new.parent_waits is None:
        return None
    if parent is None:
        raise ValueRefusedError(f"{new.name!r} has no parent that could wait for it: give parent_job_id")
    if not parent.is_gated or parent.is_final:
        raise JobStateError(
            f"job {parent.job_id} cannot wait for {new.name!r}: it is no group, or has ended; see Jobs.open_group"
        )
    return JobDependency(
        job_id=parent.job_id,
        dependency_job_id=str(new.job_id),
        type=new.parent_waits.type,
        condition=new.parent_waits.condition.value,
        gate="completion",
        created_at=now,
    )


def _packed(prepared: list[_Prepared]) -> Iterator[list[_Prepared]]:
    """Groups that fit into one transaction each, whatever queues, parents and dependencies they share."""
    group: list[_Prepared] = []
    size = 0
    for each in prepared:
        needed = each.actions + _SHARED_ACTIONS  # should no other job of the group have the same queue and parent
        if group and size + needed > MOST_ACTIONS:
            yield group
            group, size = [], 0
        shares = any(other.place.queue_name == each.place.queue_name for other in group)
        size += each.actions + (not shares) + (0 if each.parent_edge is None or _shares_parent(each, group) else 2)
        group.append(each)
    if group:
        yield group


def _shares_parent(each: _Prepared, group: list[_Prepared]) -> bool:
    edge = each.parent_edge
    return edge is not None and any(o.parent_edge is not None and o.parent_edge.job_id == edge.job_id for o in group)


def _add_all(tx: Transaction, group: list[_Prepared]) -> None:
    """Every item of the jobs; what several of them change is changed once, because a transaction demands it."""
    queues = Counter(each.place.queue_name for each in group)
    children = Counter(each.parent_edge.job_id for each in group if each.parent_edge is not None)
    dependents = {each.parent_edge.job_id: each.parent_dependents for each in group if each.parent_edge is not None}
    watched: dict[str, list[EdgeCondition]] = {}
    own = {each.job.job_id for each in group}
    for each in group:
        for on in each.watched:
            watched.setdefault(on.job_id, []).append(on.condition)
    for each in group:
        job_id = each.job.job_id
        _add_one(tx, each, dependents=len(watched.get(job_id, ())), children=children[job_id])
    for name, count in queues.items():
        tx.update(Queue.key(queue_name=name), Queue.job_count.increment(count))
    for parent in (each for each in children if each not in own):
        tx.update(JobGates.key(job_id=parent), JobGates.open_completions.increment(children[parent]))
        if parent not in watched:
            same = (Job.dependents == dependents[parent]) & ~Job.status.is_in(*FINAL)
            tx.check(Job.key(job_id=parent), same)
    for job_id, conditions in watched.items():
        if job_id not in own:
            watch(tx, job_id, conditions)


def _add_one(tx: Transaction, each: _Prepared, *, dependents: int, children: int) -> None:
    """The items of one job. Of those that are written with it, so many wait for it, and it waits for its children."""
    job, gates = each.job, each.gates
    tx.add(job.model_copy(update={"dependents": job.dependents + dependents}) if dependents else job)
    tx.add(JobStatus(job_id=job.job_id, status=job.status, updated_at=job.created_at, updated_by=job.created_by))
    tx.add(each.place)
    for edge in each.edges:
        tx.add(edge)
    if gates is not None:
        more = {"open_completions": gates.open_completions + children}
        tx.add(gates.model_copy(update=more) if children else gates)
    if each.parent_edge is not None:
        tx.add(each.parent_edge)


def _misses_a_queue(error: TransactionFailedError) -> bool:
    return any(failure.current is None and failure.action.startswith("update Queue ") for failure in error.failures)
