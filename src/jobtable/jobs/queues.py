"""Queues: creating, changing, pausing, resuming and deleting them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobtable.clock import Clock
from jobtable.errors import AlreadyExistsError, ConditionFailedError, ConflictError, NotFoundError, missing
from jobtable.jobs.stored.entities import Job, Queue, QueueJob
from jobtable.jobs.submit.definition import refusing
from jobtable.model import Update
from jobtable.store import Store

DEFAULT_CONCURRENCY = 1000
_MOST_LOOKED_AT = 10_000
"""Among how many places of a queue one is looked for that the indexes do not show."""


@dataclass(frozen=True)
class QueueState:
    """What a worker must know of a queue."""

    queue_name: str
    priority: int
    job_count: int
    running_count: int
    has_work: bool
    """Whether a job is ready, or becomes ready by itself; nothing starts in a paused queue."""


class Queues:
    """The verbs of queues."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create(
        self, name: str, *, max_concurrent_jobs: int = DEFAULT_CONCURRENCY, priority: int = 500, description: str = ""
    ) -> Queue:
        """Make a queue, or raise AlreadyExistsError."""
        with refusing(f"queue {name!r}"):
            queue = Queue(
                queue_name=name,
                created_at=self._clock.now(),
                max_concurrent_jobs=max_concurrent_jobs,
                priority=priority,
                description=description,
            )
        try:
            self._store.add(queue)
        except AlreadyExistsError as error:
            advice = "change_queue(...), or `jobtable queues change`, changes its settings"
            raise AlreadyExistsError(f"the queue {name} is there already; {advice}") from error
        return queue

    def states(self, names: Sequence[str], *, certain: bool = False) -> list[QueueState]:
        """The states of those queues that are there.

        Work that the indexes do not show yet is found only if it must be `certain`, and among ten thousand jobs.
        """
        found = self._store.batch_get([Queue.key(queue_name=name) for name in names])
        return [
            QueueState(
                queue.queue_name,
                queue.priority,
                queue.job_count,
                queue.running_count,
                self._has_work(queue) or (certain and self._has_hidden_work(queue)),
            )
            for queue in found
            if queue is not None
        ]

    def _has_work(self, queue: Queue) -> bool:
        if queue.paused_at is not None or not queue.job_count:
            return False
        places = (QueueJob.ready(queue_name=queue.queue_name), QueueJob.delayed(queue_name=queue.queue_name))
        return any(True for place in places for _ in self._store.query(place, limit=1))

    def _has_hidden_work(self, queue: Queue) -> bool:
        """The same by the table itself, which is never behind but has no order: all that waits must be read."""
        if queue.paused_at is not None or not queue.job_count:
            return False
        places = self._store.query(QueueJob.key(queue_name=queue.queue_name), limit=_MOST_LOOKED_AT)
        return any(place.rank is not None or place.not_before is not None for place in places)

    def ensure(self, name: str) -> None:
        """Make a queue with the usual settings if it is not there."""
        try:
            self.create(name)
        except AlreadyExistsError:
            return

    def change(
        self,
        name: str,
        *,
        max_concurrent_jobs: int | None = None,
        priority: int | None = None,
        description: str | None = None,
    ) -> Queue:
        """Change the settings that are given."""
        updates: list[Update] = []
        if max_concurrent_jobs is not None:
            updates.append(Queue.max_concurrent_jobs.set(max_concurrent_jobs))
        if priority is not None:
            updates.append(Queue.priority.set(priority))
        if description is not None:
            updates.append(Queue.description.set(description))
        selection = Queue.key(queue_name=name)
        return self._store.update(selection, *updates) if updates else self._store.get(selection)

    def pause(self, name: str) -> Queue:
        """Let no more jobs of the queue start; those that run go on."""
        return self._store.update(Queue.key(queue_name=name), Queue.paused_at.set(self._clock.now()))

    def resume(self, name: str) -> Queue:
        """Let jobs of the queue start again."""
        return self._store.update(Queue.key(queue_name=name), Queue.paused_at.set(None))

    def delete(self, name: str) -> None:
        """Remove a queue in which nothing waits or runs, or raise ConflictError; a job that names it makes it again."""
        try:
            is_there = self._store.delete(Queue.key(queue_name=name), when=Queue.job_count == 0)
        except ConditionFailedError as error:
            count = error.current.job_count
            told = "1 job waits or runs" if count == 1 else f"{count:,} jobs wait or run"
            raise ConflictError(
                f"queue {name} cannot be deleted: {told} in it; cancel what nobody wants, or wait for the end of it"
            ) from error
        if not is_there:
            raise missing("queue", name)

    def position(self, job: Job) -> int | None:
        """The job's place among those that are ready in its queue, from 1; None if it is not ready.

        Reads the keys of all that are ahead of it.
        """
        if job.queue_name is None:
            return None
        place = self._store.find(QueueJob.key(queue_name=job.queue_name, job_id=job.job_id))
        if place is None or place.rank is None:
            return None
        for number, ahead in enumerate(self._store.query(QueueJob.ready(queue_name=job.queue_name)), start=1):
            if ahead.job_id == job.job_id:
                return number
        raise NotFoundError(f"job {job.job_id} has just left queue {job.queue_name}")
