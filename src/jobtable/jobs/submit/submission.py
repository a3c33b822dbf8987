"""Submitting jobs: each is written with its history, its queue entry and the edges to its dependencies.

A job that exists can be submitted again, as a new one that may be changed.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from jobtable.errors import (
    ConditionFailedError,
    ConflictError,
    DependencyCycleError,
    JobStateError,
    TransactionFailedError,
    ValueRefusedError,
)
from jobtable.jobs.core import EngineCore
from jobtable.jobs.dependencies.edge_verbs import graph_version, raise_version, watch
from jobtable.jobs.dependencies.edges import Event, awaited, condition_of, describe, find_path
from jobtable.jobs.lifecycle.leases import IS_THERE
from jobtable.jobs.lifecycle.owners import owner_of
from jobtable.jobs.lifecycle.transitions import ensure_queue, length_of
from jobtable.jobs.stored.entities import (
    DependencyGraph,
    Job,
    JobChild,
    JobDependency,
    JobGates,
    JobStatus,
    Queue,
    QueueJob,
)
from jobtable.jobs.stored.field_types import FINAL
from jobtable.jobs.submit.definition import DEFAULT_QUEUE, Definition, EdgeCondition, NewJob, new_job
from jobtable.jobs.submit.preparation import SHARED_ACTIONS, Prepared, prepare
from jobtable.model import Condition, Entity
from jobtable.store.transactions import MOST_ACTIONS, PACKED_BYTES, Transaction

_KEYS = uuid.UUID("6f1a4c1e-5b1d-5c1b-9a55-3c1d8d2f7a10")
"""The namespace of the job ids derived from callers' keys."""
_CHUNK = 1000
_OF_JOBS = frozenset(
    each.__name__ for each in (Job, JobStatus, QueueJob, Queue, JobDependency, JobGates, JobChild, DependencyGraph)
)
"""What a submission writes of its own; other entities are its caller's."""
_IS_OPEN = Job.tree_status.missing()
"""The condition that the tree of a job was not ended."""


class Submission(EngineCore):
    """The verbs that submit jobs; see `JobVerbs`."""

    def submit(self, new: NewJob) -> Job:
        (job,) = self.submit_many([new])
        return job

    def submit_many(self, new: Iterable[NewJob]) -> list[Job]:
        submitted: list[Job] = []
        waiting = map(new_job, new)
        while chunk := list(islice(waiting, _CHUNK)):
            submitted += self._submit_chunk(chunk)
        return submitted

    def open_group(self, new: NewJob) -> Job:
        new = new_job(new)
        if new.task is not None:
            raise ValueRefusedError(f"group {new.name!r} cannot have a task of its own, but names {new.task}")
        (group,) = self._submit_chunk([new], is_group=True)
        return group

    def submit_together(
        self, new: Sequence[NewJob], *beside: Entity, also: Callable[[Transaction], None] | None = None
    ) -> list[Job]:
        """Submit jobs with ids, and add the entities `beside` them, in one transaction: all that are missing, or none.

        `also` adds writes to it. Jobs without a task are groups that are sealed at once: they wait for the children
        that come with them. TransactionFailedError if one of these entities exists, or a condition of `also` fails.
        """

        def add_missing(known: dict[str, Job]) -> list[Job]:
            prepared = [self._prepare_sealed(each, known) for each in new if each.job_id not in known]
            version = self._refuse_cycles(prepared, known)
            if prepared:
                self._add(prepared, version, beside, also)
            return [_refuse_another_task(known[str(each.job_id)], each) for each in new]

        return self.store.retrying(
            lambda: self._jobs_named_in(new, new),
            add_missing,
            f"submit job {new[0].job_id}",
            retry_if=_concerns_jobs,
        )

    # --- existing jobs ----------------------------------------------------------------------------------------------

    def _prepare_sealed(self, new: NewJob, known: dict[str, Job]) -> Prepared:
        prepared = prepare(new, known, self.clock.now(), is_group=new.task is None)
        if new.task is None:
            prepared = replace(prepared, job=prepared.job.model_copy(update={"is_awaiting": True}))
        known[prepared.job.job_id] = prepared.job
        return prepared

    def _submit_chunk(self, chunk: Sequence[NewJob], *, is_group: bool = False) -> list[Job]:
        named = [new if new.job_id else new.with_id(_id_of(new)) for new in chunk]
        known = self._jobs_named_in(named, [new for new in chunk if new.job_id is not None or new.key is not None])
        prepared: list[Prepared] = []
        for new in named:
            if new.job_id not in known:
                prepared.append(prepare(new, known, self.clock.now(), is_group=is_group))
                known[prepared[-1].job.job_id] = prepared[-1].job
        version = self._refuse_cycles(prepared, known)
        for together in _packed(prepared, known):
            known.update((job.job_id, job) for job in self._write(together, is_group, version))
            version = None if version is None else version + 1
        return [_refuse_another_task(known[str(new.job_id)], new) for new in named]

    def _jobs_named_in(self, named: Sequence[NewJob], repeatable: Sequence[NewJob]) -> dict[str, Job]:
        """Return the existing jobs: parents, dependencies, and those of an earlier submission with the same key.

        The parent of a parent that has ended is included.
        """
        names = {new.parent_job_id for new in named} | {on.job_id for new in named for on in new.depends_on}
        names |= {new.job_id or _id_of(new) for new in repeatable}
        known = self._read(name for name in names if name is not None)
        parents = [job for new in named if (job := known.get(str(new.parent_job_id))) is not None]
        above = {job.parent_job_id for job in parents if job.is_final and job.parent_job_id is not None}
        return known | self._read(above - known.keys())

    def _read(self, job_ids: Iterable[str]) -> dict[str, Job]:
        keys = [Job.key(job_id=job_id) for job_id in sorted(job_ids)]
        return {job.job_id: job for job in self.store.batch_get(keys) if job is not None} if keys else {}

    # --- writing ----------------------------------------------------------------------------------------------------

    def _refuse_cycles(self, prepared: list[Prepared], known: dict[str, Job]) -> int | None:
        """Refuse children that wait for the end of the parent that waits for them.

        Only its parent waits for a new job, and nothing can wait for the parent's end through other jobs unless some
        job waits for the parent. If one does, or these jobs would, the version of the graph is returned: it must not
        change until the jobs are written.
        """
        waited_for = {edge.dependency_job_id for each in prepared for edge in each.open_edges}
        risky = [
            each
            for each in prepared
            if each.parent_edge is not None
            and (known[each.parent_edge.job_id].dependents or each.parent_edge.job_id in waited_for)
        ]
        if not risky:
            return None
        version = graph_version(self.store)
        edges: dict[str, list[JobDependency]] = {each.job.job_id: list(each.edges) for each in prepared}

        def edges_of(job_id: str) -> list[JobDependency]:
            if job_id not in edges:
                edges[job_id] = list(self.store.query(JobDependency.key(job_id=job_id)))
            return edges[job_id]

        for each in prepared:
            if each.parent_edge is not None:
                edges_of(each.parent_edge.job_id).append(each.parent_edge)
        for each in risky:
            own_end = Event(each.job.job_id, "end")
            for edge in each.edges:
                path = find_path(awaited(edge.dependency_job_id, condition_of(edge)), own_end, edges_of)
                if path is not None:
                    raise DependencyCycleError(f"jobs would wait for each other: {describe((own_end, *path))}")
        return version

    def _write(self, together: list[Prepared], is_group: bool, version: int | None) -> list[Job]:
        """Write some jobs in one transaction, or one by one if one of them blocks the others."""
        try:
            self._add(together, version)
        except TransactionFailedError:
            return [self._submit_alone(each.new, is_group) for each in together]
        return [each.job for each in together]

    def _submit_alone(self, new: NewJob, is_group: bool) -> Job:
        def add(known: dict[str, Job]) -> Job:
            if str(new.job_id) in known:
                return known[str(new.job_id)]
            prepared = prepare(new, known, self.clock.now(), is_group=is_group)
            self._add([prepared], self._refuse_cycles([prepared], known))
            return prepared.job

        return self.store.retrying(lambda: self._jobs_named_in([new], [new]), add, f"submit job {new.job_id}")

    def _add(
        self,
        together: list[Prepared],
        version: int | None,
        beside: Sequence[Entity] = (),
        also: Callable[[Transaction], None] | None = None,
    ) -> None:
        try:
            self._add_once(together, version, beside, also)
        except TransactionFailedError as error:
            if not _misses_a_queue(error):
                raise
            for name in sorted({each.entry.queue_name for each in together}):
                ensure_queue(self.store, self.clock, name)
            self._add_once(together, version, beside, also)

    def _add_once(
        self,
        together: list[Prepared],
        version: int | None,
        beside: Sequence[Entity],
        also: Callable[[Transaction], None] | None,
    ) -> None:
        with self.store.transaction() as tx:
            _add_items(tx, together)
            for item in beside:
                tx.add(item)
            if also is not None:
                also(tx)
            if version is not None:
                raise_version(tx, version)


def _refuse_another_task(job: Job, new: NewJob) -> Job:
    """Return the job, or raise ConflictError if its key was used for another task before."""
    if job.definition.task != new.task:
        raise ConflictError(
            f"job {job.job_id} was submitted before with the task {job.definition.task}, not {new.task}; "
            "use another key"
        )
    return job


def _id_of(new: NewJob) -> str:
    if new.key is None:
        return str(uuid.uuid4())
    if not new.key:
        raise ValueRefusedError(f"the key of job {new.name!r} is empty; omit it")
    return str(uuid.uuid5(_KEYS, f"{new.user}\n{new.key}"))


def _packed(prepared: list[Prepared], known: Mapping[str, Job]) -> Iterator[list[Prepared]]:
    """Yield groups that fit into one transaction each, whatever queues, parents and dependencies they share."""
    tied = dict.fromkeys(job_id for each in prepared for job_id in each.ties)
    lengths = {job_id: length_of(known[job_id]) for job_id in tied}
    lengths.update((each.job.job_id, each.length) for each in prepared)
    together: list[Prepared] = []
    size, touched = 0, set[str]()
    for each in prepared:
        needed = each.actions + SHARED_ACTIONS  # if no other of these jobs shares its queue or parent
        touches = {each.job.job_id, *each.ties}
        length = sum(lengths[job_id] for job_id in touched | touches)
        if together and (size + needed > MOST_ACTIONS or length > PACKED_BYTES):
            yield together
            together, size, touched = [], 0, set()
        touched |= touches
        shares = any(other.entry.queue_name == each.entry.queue_name for other in together)
        size += each.actions + (not shares) + _actions_for_parent(each, together)
        together.append(each)
    if together:
        yield together


def _actions_for_parent(each: Prepared, together: list[Prepared]) -> int:
    """Return how many more actions the parent of a job needs: for itself, its gates and its own parent."""
    if each.job.parent_job_id is None:
        return 0
    siblings = [other for other in together if other.job.parent_job_id == each.job.parent_job_id]
    has_gates = each.parent_edge is None or any(other.parent_edge is not None for other in siblings)
    return (not siblings) * (1 + (each.above_id is not None)) + (not has_gates)


def _add_items(tx: Transaction, together: list[Prepared]) -> None:
    """Add every item of the jobs; what several of them change is changed once, as a transaction demands."""
    queues = Counter(each.entry.queue_name for each in together)
    children = Counter(each.parent_edge.job_id for each in together if each.parent_edge is not None)
    watched: dict[str, list[EdgeCondition]] = {}
    own = {each.job.job_id for each in together}
    for each in together:
        for edge in each.open_edges:
            watched.setdefault(edge.dependency_job_id, []).append(condition_of(edge))
    for each in together:
        job_id = each.job.job_id
        _add_one(tx, each, dependents=len(watched.get(job_id, ())), children=children[job_id])
    for name, count in queues.items():
        tx.update(Queue.key(queue_name=name), Queue.job_count.increment(count))
    for job_id, count in children.items():
        if job_id not in own:
            tx.update(JobGates.key(job_id=job_id), JobGates.open_completions.increment(count))
    demands = {job_id: when for job_id, when in _demands_above(together, watched).items() if job_id not in own}
    for job_id, conditions in watched.items():
        if job_id not in own:
            watch(tx, job_id, conditions, when=demands.pop(job_id, None))
    for job_id, when in demands.items():
        tx.check(Job.key(job_id=job_id), when)


def _demands_above(together: list[Prepared], watched: Container[str]) -> dict[str, Condition]:
    """Return the conditions on the jobs above new ones: no tree that they join was ended or deleted meanwhile."""
    demands: dict[str, Condition] = {each.above_id: _IS_OPEN for each in together if each.above_id is not None}
    awaiting = {each.parent_edge.job_id for each in together if each.parent_edge is not None}
    parents = {each.parent.job_id: each.parent for each in together if each.parent is not None}
    for job_id, parent in parents.items():
        demands[job_id] = IS_THERE & _IS_OPEN
        if not parent.is_final:  # otherwise its own parent is checked, too
            demands[job_id] &= ~Job.status.is_in(*FINAL)
        if job_id in awaiting and job_id not in watched:  # otherwise the version of the graph is checked
            demands[job_id] &= Job.dependents == parent.dependents
    return demands


def _add_one(tx: Transaction, each: Prepared, *, dependents: int, children: int) -> None:
    """Add the items of one job; of those written with it, `dependents` wait for it and `children` are its children."""
    job, gates = each.job, each.gates
    tx.add(job.model_copy(update={"dependents": job.dependents + dependents}) if dependents else job)
    tx.add(JobStatus(job_id=job.job_id, status=job.status, updated_at=job.created_at, updated_by=job.created_by))
    tx.add(each.entry)
    for edge in each.edges:
        tx.add(edge)
    if gates is not None:
        more = {"open_completions": gates.open_completions + children}
        tx.add(gates.model_copy(update=more) if children else gates)
    if each.parent_edge is not None:
        tx.add(each.parent_edge)
    if each.child is not None:
        tx.put(each.child)


def _concerns_jobs(error: ConditionFailedError | TransactionFailedError) -> bool:
    """Return whether the jobs themselves were in the way, not only what their caller stores with them."""
    failures = error.failures if isinstance(error, TransactionFailedError) else ()
    return not failures or any(each.entity in _OF_JOBS for each in failures)


def _misses_a_queue(error: TransactionFailedError) -> bool:
    return any(
        failure.current is None and (failure.verb, failure.entity) == ("update", "Queue") for failure in error.failures
    )


def copy_of(job: Job) -> NewJob:
    """Return a new job that does the same, without user, key, id, parent and dependencies; or raise JobStateError."""
    problem = why_no_copy(job)
    if problem is not None:
        raise JobStateError(f"job {job.job_id} cannot be submitted again: {problem}")
    definition = job.definition
    own = ("name", "description", "job_type", "priority", "tags", "estimated_duration", "max_attempts")
    return NewJob(
        **{name: getattr(job, name) for name in own},
        **{name: getattr(definition, name) for name in Definition.model_fields},
        queue=job.queue_name or DEFAULT_QUEUE,
        config={name: value for name, value in (definition.model_extra or {}).items() if name != "roll_up"},
    )


def why_no_copy(job: Job) -> str | None:
    definition = job.definition
    if definition.problem is not None:
        return definition.problem
    if definition.task is None:
        return "it is a group"
    if owner_of(job) is not None:
        return "it is part of something larger; start that again"
    return None
