"""What can be done with jobs: the verbs of people and the verbs of workers.

`Jobs` executes both on a store. `remote.jobs.ServerJobs` and `remote.work.ServerWork` send them to a server.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeAlias, TypedDict, TypeVar, Unpack

from jobtable.clock import Clock
from jobtable.errors import JobtableError
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.read.progress import Timing
from jobtable.jobs.read.waiting import Waiting
from jobtable.jobs.report.recording import Recording
from jobtable.jobs.stored.entities import Instance, Job, JobDependency, Queue
from jobtable.jobs.submit.definition import DependsOn, NewJob
from jobtable.objects import ObjectStore
from jobtable.store import Store

if TYPE_CHECKING:
    from jobtable.jobs.engine import Jobs

T = TypeVar("T")
ManyVerb: TypeAlias = Literal["cancel", "stop", "retry", "delete"]


@dataclass(frozen=True)
class ActedOn(Generic[T]):
    """What became of one of many jobs: what the verb returned, or why it failed.

    If the store did not answer for a job, those after it are skipped and have its error too.
    """

    job_id: str
    given: T | None = None
    error: JobtableError | None = None


class ManyVerbs(Protocol):
    """The verbs that people use on jobs, each on many jobs in their order, executed as the results are read.

    Each job is acted on by itself: an error of one does not stop the others.
    """

    def cancel(
        self, job_ids: Iterable[str], *, by: str = "local", message: str | None = None, tree: bool = True
    ) -> Iterator[ActedOn[Job]]:
        """Cancel jobs."""
        return self.act("cancel", job_ids, by=by, message=message, tree=tree)

    def stop(
        self, job_ids: Iterable[str], *, by: str = "local", message: str | None = None, tree: bool = True
    ) -> Iterator[ActedOn[Job]]:
        """Stop jobs."""
        return self.act("stop", job_ids, by=by, message=message, tree=tree)

    def retry(self, job_ids: Iterable[str], *, by: str = "local", tree: bool = False) -> Iterator[ActedOn[Job]]:
        """Restart jobs."""
        return self.act("retry", job_ids, by=by, tree=tree)

    def delete(self, job_ids: Iterable[str], *, tree: bool = False) -> Iterator[ActedOn[int]]:
        """Delete jobs; return the number of items of each."""
        return self.act("delete", job_ids, tree=tree)

    @abstractmethod
    def act(self, verb: ManyVerb, job_ids: Iterable[str], **options: Any) -> Iterator[ActedOn[Any]]:
        """Use a verb on jobs."""
        ...


class QueueSettings(TypedDict, total=False):
    """What a caller may set of a queue; None leaves a setting as it is, or at its default."""

    max_concurrent_jobs: int | None
    priority: int | None
    description: str | None


class Opened(Protocol):
    """A store and an object store, which are closed when the block ends."""

    store: Store
    objects: ObjectStore
    clock: Clock

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and the object store."""
        self.store.close()
        self.objects.close()


class JobVerbs(Opened, Protocol):
    """What people do with jobs and queues. Asking for what is already so changes nothing and is no error."""

    queries: JobQueries

    @property
    def many(self) -> ManyVerbs:
        """The verbs that act on many jobs."""
        ...

    # --- submitting -------------------------------------------------------------------------------------------------

    def submit(self, new: NewJob) -> Job:
        """Submit one job. It starts when its dependencies are met and a worker of its queue is free.

        A second submission with the same key or id returns the job of the first.
        """
        ...

    def submit_many(self, new: Iterable[NewJob]) -> list[Job]:
        """Submit many jobs, some tens in a transaction. If it is interrupted, the same call again completes it."""
        ...

    def open_group(self, new: NewJob) -> Job:
        """Submit a job that only has children: it runs without a worker until it is sealed and they have ended."""
        ...

    def seal(self, job_id: str) -> Job:
        """Declare that a group gets no more children: it ends when those that it has have ended."""
        ...

    def add_dependency(self, job_id: str, on: DependsOn) -> JobDependency:
        """Make a job wait for another one, or raise DependencyCycleError if they would wait for each other.

        Additions are serialised by one counter, so two concurrent ones cannot close a cycle between them.
        """
        ...

    # --- changing ---------------------------------------------------------------------------------------------------

    def cancel(self, job_id: str, *, by: str = "local", message: str | None = None, tree: bool = True) -> Job:
        """Cancel a job and its descendants: those that wait end at once, running ones when their worker notices."""
        ...

    def stop(self, job_id: str, *, by: str = "local", message: str | None = None, tree: bool = True) -> Job:
        """Stop a job and its descendants: a running job is asked to finish early, and keeps its results."""
        ...

    def retry(self, job_id: str, *, by: str = "local", tree: bool = False) -> Job:
        """Restart an ended job with all its attempts; with `tree` every descendant that is not COMPLETED.

        Its dependents wait for it again, and a group that had ended because of it goes on.
        """
        ...

    def prioritise(self, job_id: str, priority: int) -> Job:
        """Change the priority of a job, and of its queue entry if it waits there."""
        ...

    def delete(self, job_id: str, *, tree: bool = False) -> int:
        """Delete an ended job with every item and object under it; return the number of items.

        Without `tree`, a job with children is refused, and always one that a system made. If it is interrupted, the
        same call again completes it: the job item goes last.
        """
        ...

    # --- reading ----------------------------------------------------------------------------------------------------

    def list_tree(self, job_id: str) -> Iterator[Job]:
        """Yield a job and its descendants, each before its children; also those that no index shows yet."""
        ...

    def why_waiting(self, job: Job) -> Waiting | None:
        """Return all that a job waits for, or None if it runs or has ended. Reads at most some hundred items."""
        ...

    def timing_of(self, job: Job, *, percent: float | None = None) -> Timing | None:
        """Return how long a running job has taken and when it may end; `percent` is what has ended of a group."""
        ...

    # --- queues -----------------------------------------------------------------------------------------------------

    def create_queue(self, name: str, **settings: Unpack[QueueSettings]) -> Queue:
        """Create a queue, or raise AlreadyExistsError; the first job of a missing queue creates it with defaults."""
        ...

    def change_queue(self, name: str, **settings: Unpack[QueueSettings]) -> Queue:
        """Change settings of a queue."""
        ...

    def pause_queue(self, name: str) -> Queue:
        """Pause a queue: no more of its jobs start; running jobs continue."""
        ...

    def resume_queue(self, name: str) -> Queue:
        """Resume a paused queue."""
        ...

    def delete_queue(self, name: str) -> None:
        """Delete a queue in which no job waits or runs, or raise ConflictError; a job that names it recreates it."""


@dataclass(frozen=True)
class QueueState:
    """What a worker must know of a queue."""

    queue_name: str
    priority: int
    job_count: int
    running_count: int
    has_work: bool
    """Whether a job is ready or becomes ready by itself; nothing starts in a paused queue."""


class Observer(Protocol):
    """One worker's watch over the leases of all workers."""

    def recover(self) -> list[Job]:
        """Take the jobs of dead workers from them and complete groups that wait for nothing; return those jobs.

        Call it several times within every lease time. If some jobs cannot be taken, it raises after the others were.
        """
        ...


class InstanceVerbs(Protocol):
    """How a worker shows that it is alive."""

    def register(self, instance: Instance) -> None:
        """Record that a worker has started."""

    def beat(self, instance: Instance) -> None:
        """Record that it is alive, even if others took it for dead or its item was deleted."""

    def stop(self, instance: Instance) -> None:
        """Record that it ended in good order."""


class WorkVerbs(Opened, Protocol):
    """What workers do: they claim jobs, keep the leases alive, report, and end or release the jobs."""

    recording: Recording
    instances: InstanceVerbs

    @property
    def engine(self) -> Jobs:
        """Return the job engine, for tasks that need the store; TaskError if there is only a server."""
        ...

    def queue_states(self, names: Sequence[str], *, certain: bool = False) -> list[QueueState]:
        """Return the states of those queues that exist.

        Work that the indexes do not show yet is found only if it must be `certain`, and among ten thousand jobs.
        """
        ...

    def claim(
        self,
        queue: str,
        *,
        limit: int,
        instance_id: str,
        lease_seconds: float,
        instance: Instance | None = None,
    ) -> list[Lease]:
        """Claim up to `limit` ready jobs of a queue, the most urgent first; none if it is empty, paused or full.

        No two claimers ever get the same job in one epoch. If the instance is given, InstanceJob and JobResource items
        record which jobs it has. The leases must be kept alive by heartbeats.
        """
        ...

    def promote_due(self, queue: str, *, limit: int = 100) -> int:
        """Make due jobs ready, and notify dependents of a start or an end if nobody has; return how many were due.

        If that fails for some, it raises after the others were handled.
        """
        ...

    def heartbeat(self, lease: Lease) -> Lease:
        """Record that the worker lives; return the lease with the job as it is now, or raise LeaseLostError."""
        ...

    def refresh(self, lease: Lease) -> Lease:
        """Return the lease with the job as it is now, or raise LeaseLostError."""
        ...

    def look_at(self, leases: Sequence[Lease]) -> list[Job | None]:
        """Return the jobs of leases as they are now, held or not, in one read; None for a deleted one."""
        ...

    def report(self, lease: Lease, *, progress: float | None = None, message: str | None = None) -> None:
        """Record the progress of a job, with a line in its history; LeaseLostError if it is not held."""

    def finish(self, lease: Lease, outcome: Outcome) -> Job:
        """End a run: the job ends, is retried later, or waits for its children; LeaseLostError if it is not held.

        ValueRefusedError if the job and its result are too large for one item; NotFoundError if it has ended and was
        deleted since.
        """
        ...

    def finish_many(self, ended: Sequence[tuple[Lease, Outcome]]) -> list[Lease]:
        """End many runs, some tens in a transaction; return the leases that were lost before."""
        ...

    def release(self, lease: Lease, reason: str, *, is_unopened: bool = False) -> Job:
        """Release a running job: another worker may claim it at once, and no attempt is counted.

        `is_unopened` says that its task did not start because its process could not open the store: a job to which
        that happens too often in a row fails.
        """
        ...

    def observer(self) -> Observer:
        """Return a new watch over the leases of all workers."""
        ...

    def desk(self, kind: Callable[[Jobs, Lease], T], lease: Lease) -> T:
        """Return what the tasks of a system ask on behalf of the job that they run."""
        ...
