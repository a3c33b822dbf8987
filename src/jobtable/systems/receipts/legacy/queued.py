"""Jobs of the legacy table in their queues: what workers need to find them in the main table, and to let them go."""

from __future__ import annotations

from pydantic import ValidationError

from jobtable.errors import AlreadyExistsError, TransactionFailedError
from jobtable.jobs.queues import DEFAULT_CONCURRENCY
from jobtable.jobs.stored.entities import Job, Queue, QueueJob
from jobtable.jobs.stored.fields import CLAIMABLE, FINAL, rank_of
from jobtable.jobs.submit.definition import Definition
from jobtable.model import Entity
from jobtable.store import Store
from jobtable.systems.receipts.legacy import entities as old
from jobtable.systems.receipts.legacy.successors import successor


class QueuedJobs:
    """Gives migrated jobs their queues, and their places in them.

    In the legacy table only a place names the queue of its job. In the main table the job names it too, and the place
    has a rank while a worker may claim the job, and goes when the job ends.
    """

    def __init__(self, source: Store, target: Store) -> None:
        self._source = source
        self._target = target

    def complete(self, entity: Entity) -> tuple[Entity | None, str | None]:
        """What becomes of a migrated entity, and why if that is nothing, or a job that no worker takes."""
        if isinstance(entity, Job):
            return self._with_queue(entity)
        if isinstance(entity, QueueJob):
            return self._with_rank(entity)
        return entity, None

    def add(self, place: QueueJob) -> None:
        """Put a job into its queue, which counts it, or raise AlreadyExistsError."""
        if self._target.find(Queue.key(queue_name=place.queue_name)) is None:
            self._add_queue_of(place)
        try:
            with self._target.transaction() as transaction:
                transaction.add(place)
                transaction.update(Queue.key(queue_name=place.queue_name), Queue.job_count.increment(1))
                transaction.check(Job.key(job_id=place.job_id), Job.changed_at.missing())
        except TransactionFailedError as error:
            raise AlreadyExistsError(f"job {place.job_id} is, or was, in queue {place.queue_name}") from error

    def _add_queue_of(self, place: QueueJob) -> None:
        legacy_queue = self._source.find(old.Queue.key(queue_name=place.queue_name))
        queue = None if legacy_queue is None else successor(legacy_queue)
        try:
            self._target.add(queue or _usual_queue(place))
        except AlreadyExistsError:
            return  # for another of its places

    def _with_queue(self, job: Job) -> tuple[Job, str | None]:
        queue_name = self._queue_of(job.job_id)
        if queue_name is not None:
            return job.replace(queue_name=queue_name), None
        return job, "it waits, but is in no queue, so no worker takes it" if job.status in CLAIMABLE else None

    def _with_rank(self, place: QueueJob) -> tuple[QueueJob | None, str | None]:
        job = self._source.find(old.Job.key(job_id=place.job_id))
        if job is None:
            return None, "the job that is in the queue is not there"
        if job.status in FINAL:
            return None, "its job has ended, and is in no queue of the main table"
        if place.queue_name != self._queue_of(place.job_id):
            return None, "its job is in another queue too, and the main table has one for each job"
        moved = self._target.find(Job.key(job_id=place.job_id))
        if moved is not None and moved.changed_at is not None:
            return None, "its job has gone on in the main table since an earlier run"
        if job.status not in CLAIMABLE:
            return place, None
        if self._source.query(old.JobDependency.key(job_id=job.job_id)).first() is not None:
            return place, "its job waits for others in the legacy table, so no worker takes it until it is retried"
        if not _names_a_task(job):
            return place, "the configuration of its job names no task, so no worker takes it"
        return place.replace(rank=rank_of(place.priority)), None

    def _queue_of(self, job_id: str) -> str | None:
        """The queue of a legacy job; of several the first in the order of their names."""
        place = self._source.query(old.QueueJob.by_job(job_id=job_id)).first()
        return None if place is None else place.queue_name


def _usual_queue(place: QueueJob) -> Queue:
    return Queue(queue_name=place.queue_name, created_at=place.enqueued_at, max_concurrent_jobs=DEFAULT_CONCURRENCY)


def _names_a_task(job: old.Job) -> bool:
    try:
        return Definition.model_validate(job.job_config or {}).task is not None
    except ValidationError:
        return False
