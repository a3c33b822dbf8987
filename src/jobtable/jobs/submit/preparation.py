"""From a job that a caller submits to the items that are written for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic_core import PydanticSerializationError, to_json

from jobtable.errors import ErrorReason, JobStateError, ValueRefusedError, missing
from jobtable.jobs.dependencies.edges import count_edges, is_broken_by, need_gates, new_edge
from jobtable.jobs.stored.entities import Job, JobChild, JobDependency, JobGates, QueueJob
from jobtable.jobs.stored.field_types import Status, rank_of
from jobtable.jobs.submit.definition import DependsOn, NewJob, refusing
from jobtable.store.sizes import MAX_ITEM_SIZE, item_size
from jobtable.store.transactions import MOST_ACTIONS

SHARED_ACTIONS = 5
"""What a job's transaction may need besides its own items: its queue, the graph, its parent with its gates, and the
parent of that."""
MOST_OPEN_DEPENDENCIES = (MOST_ACTIONS - SHARED_ACTIONS - 5) // 2
"""A job is written with its history, queue entry, gates and parent's edge, and two actions per dependency: its edge and
its count of dependents."""

MOST_JOB_BYTES = MAX_ITEM_SIZE - 32_000
"""The item of a job also needs room for its outcome: a failure message has some thousand characters."""
_SURELY_SMALL = 100_000
_MOST_BYTES_TOGETHER = 4_000_000
"""For the items of a job, its parent and its dependencies: DynamoDB allows 4 MiB in a transaction and counts items that
are changed or checked as a whole. The rest is for edges and expressions."""


@dataclass(frozen=True)
class Prepared:
    """A new job with the items that are written with it."""

    new: NewJob
    job: Job
    entry: QueueJob
    edges: tuple[JobDependency, ...]
    gates: JobGates | None
    parent_edge: JobDependency | None
    child: JobChild | None
    """Records the job under a parent that does not wait for it."""
    parent: Job | None
    above_id: str | None
    """The parent of a parent that has ended, which takes children only while this one does."""
    length: int
    """The approximate size of the job in bytes."""

    @property
    def open_edges(self) -> list[JobDependency]:
        """The edges whose dependencies must count the new dependent, because they will notify it."""
        return [edge for edge in self.edges if not edge.met_at_once]

    @property
    def ties(self) -> list[str]:
        """The existing jobs whose items are changed or checked with it."""
        above = [job_id for job_id in (self.job.parent_job_id, self.above_id) if job_id is not None]
        return [*dict.fromkeys(above + [edge.dependency_job_id for edge in self.open_edges])]

    @property
    def actions(self) -> int:
        """How many actions of a transaction it takes, without its share of the queue and the parent."""
        has_parent = self.job.parent_job_id is not None
        return 3 + len(self.edges) + len(self.open_edges) + (self.gates is not None) + has_parent


def prepare(new: NewJob, known: Mapping[str, Job], now: datetime, *, is_group: bool) -> Prepared:
    """Return the items of a job that has an id, or raise the error that says why it cannot be submitted.

    The known jobs must include its parent, the parent of one that has ended, and its dependencies.
    """
    if new.task is None and not is_group:
        raise ValueRefusedError(f"job {new.name!r} has no task; name one as module:function, or open a group")
    if not new.queue:
        raise ValueRefusedError(f"the queue of job {new.name!r} cannot be {new.queue!r}: a queue must have a name")
    parent = _needed_parent(known, new.parent_job_id, new.name) if new.parent_job_id else None
    above = _job_above(parent, known)
    edges = _edges(new, known, now)
    gates = count_edges(str(new.job_id), edges)
    with refusing(f"job {new.name!r}"):
        job = _job(new, parent, now, is_gated=is_group or need_gates(edges))
        entry = _entry(new, job, is_ready=not is_group and not gates.open_starts and new.not_before is None)
    if is_group:
        job = job.model_copy(update={"status": Status.RUNNING, "started_at": now})
        entry = entry.model_copy(update={"not_before": None})
    prepared = Prepared(
        new=new,
        job=job,
        entry=entry,
        edges=tuple(edges),
        gates=gates if job.is_gated else None,
        parent_edge=_parent_edge(new, parent, now),
        child=_child(new, parent),
        parent=parent,
        above_id=None if above is None else above.job_id,
        length=_length(job),
    )
    _refuse_large_ties(prepared, known)
    return prepared


def _refuse_large_ties(prepared: Prepared, known: Mapping[str, Job]) -> None:
    """Raise ValueRefusedError if a job is too large for one transaction with its parent and dependencies."""
    if (len(prepared.ties) + 1) * MAX_ITEM_SIZE <= _MOST_BYTES_TOGETHER:
        return
    jobs = [prepared.job, *(known[job_id] for job_id in prepared.ties)]
    total = sum(item_size(Job.__schema__.codec.encode(job)) for job in jobs)
    if total > _MOST_BYTES_TOGETHER:
        raise ValueRefusedError(
            f"{prepared.new.name!r} has {total:,} bytes with its parent and dependencies ({len(jobs) - 1} jobs), and "
            f"one transaction takes {_MOST_BYTES_TOGETHER:,}; wait for a group of them, or add some with "
            "add_dependency, and keep large params in object storage"
        )


def _length(job: Job) -> int:
    """Return the approximate size of a job; ValueRefusedError if it leaves no room for its outcome."""
    try:
        length = len(to_json(job.job_config)) + 4 * (len(job.name) + len(job.description))  # the rest of it is short
    except PydanticSerializationError as error:
        raise ValueRefusedError(f"job {job.name!r} contains text that is not valid Unicode") from error
    if length > _SURELY_SMALL:
        length = item_size(Job.__schema__.codec.encode(job))
    if length > MOST_JOB_BYTES:
        raise ValueRefusedError(
            f"job {job.name!r} has {length:,} bytes, and at most {MOST_JOB_BYTES:,} can be submitted; keep large "
            "values in object storage and pass their keys as params"
        )
    return length


def _edges(new: NewJob, known: Mapping[str, Job], now: datetime) -> list[JobDependency]:
    edges = []
    for on in _distinct(new):
        if on.job_id == new.job_id:
            raise ValueRefusedError(f"job {new.job_id} cannot wait for itself")
        dependency = _needed(known, on.job_id, new.name)
        if is_broken_by(on.condition, dependency):
            raise JobStateError(
                f"{new.name!r} waits for job {on.job_id} to be {on.condition}, but it is {dependency.status}"
            )
        edges.append(new_edge(str(new.job_id), on, dependency, now))
    if len(edges) + sum(not edge.met_at_once for edge in edges) > 2 * MOST_OPEN_DEPENDENCIES:
        raise ValueRefusedError(
            f"{new.name!r} waits for {len(edges)} jobs, and at most {MOST_OPEN_DEPENDENCIES} of them may not have "
            "ended; put them into a group and wait for that, or add the others with add_dependency"
        )
    return edges


def _distinct(new: NewJob) -> list[DependsOn]:
    """Return the dependencies of a job, each once; ValueRefusedError if it waits for one job in two ways."""
    found: dict[str, DependsOn] = {}
    for on in new.depends_on:
        if found.setdefault(on.job_id, on) != on:
            raise ValueRefusedError(f"{new.name!r} waits for job {on.job_id} in two ways; remove one of them")
    return list(found.values())


def _needed(known: Mapping[str, Job], job_id: str, name: str) -> Job:
    try:
        return known[job_id]
    except KeyError:
        raise missing("job", job_id, hint=f"{name!r} refers to it") from None


def _needed_parent(known: Mapping[str, Job], job_id: str, name: str) -> Job:
    """Return the parent, or raise JobStateError if it takes no children."""
    parent = _needed(known, job_id, name)
    if parent.deleted_at is not None:
        raise JobStateError(
            f"{name!r} cannot become a child of job {job_id}, which is being deleted", reason=ErrorReason.JOB_DELETED
        )
    for closed in (parent, _job_above(parent, known)):
        if closed is not None and closed.tree_status is not None:
            it = "it" if closed is parent else closed.job_id
            raise JobStateError(
                f"{name!r} cannot become a child of job {job_id}: {it} was {closed.tree_status} with its whole tree; "
                f"retry {it}, or its tree, first"
            )
    return parent


def _job_above(parent: Job | None, known: Mapping[str, Job]) -> Job | None:
    """Return the parent of a parent that has ended, if it is known.

    Ending a tree does not write to ended jobs without children: their parent speaks for them.
    """
    return None if parent is None or not parent.is_final else known.get(str(parent.parent_job_id))


_AS_GIVEN = ("name", "description", "priority", "estimated_duration", "tags", "job_type", "job_stage", "max_attempts")
"""The fields that a job has as its caller gives them."""


def _job(new: NewJob, parent: Job | None, now: datetime, *, is_gated: bool) -> Job:
    return Job(
        job_id=str(new.job_id),
        **{name: getattr(new, name) for name in _AS_GIVEN},
        parent_job_id=new.parent_job_id,
        created_at=now,
        created_by=new.user,
        job_config=new.job_config(),
        root_job_id=None if parent is None else parent.root_job_id or parent.job_id,
        queue_name=new.queue,
        dependents=0 if new.parent_waits is None else 1,
        is_gated=is_gated,
        changed_at=now,
    )


def _entry(new: NewJob, job: Job, *, is_ready: bool) -> QueueJob:
    return QueueJob(
        queue_name=new.queue,
        job_id=job.job_id,
        enqueued_at=job.created_at,
        priority=new.priority,
        rank=rank_of(new.priority) if is_ready else None,
        not_before=new.not_before,
        group_id=new.roll_up.job_id if new.group_id is None and new.roll_up is not None else new.group_id,
    )


def _child(new: NewJob, parent: Job | None) -> JobChild | None:
    if parent is None or new.parent_waits is not None:
        return None
    return JobChild(job_id=parent.job_id, child_job_id=str(new.job_id))


def _parent_edge(new: NewJob, parent: Job | None, now: datetime) -> JobDependency | None:
    if new.parent_waits is None:
        return None
    if parent is None:
        raise ValueRefusedError(f"{new.name!r} has no parent that could wait for it; set parent_job_id")
    if not parent.is_gated or parent.is_final:
        raise JobStateError(
            f"job {parent.job_id} cannot wait for {new.name!r}: it is not a group, or has ended; see open_group"
        )
    return JobDependency(
        job_id=parent.job_id,
        dependency_job_id=str(new.job_id),
        type=new.parent_waits.type,
        condition=new.parent_waits.condition.value,
        gate="completion",
        created_at=now,
    )
