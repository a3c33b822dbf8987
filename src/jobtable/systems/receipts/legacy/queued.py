"""Queue entries of legacy jobs, completed with what the workers of the main table need."""

from __future__ import annotations

from pydantic import ValidationError

from jobtable.errors import AlreadyExistsError, TransactionFailedError
from jobtable.jobs.stored.entities import DEFAULT_CONCURRENCY, Job, Queue, QueueJob
from jobtable.jobs.stored.field_types import CLAIMABLE, FINAL, rank_of
from jobtable.jobs.submit.definition import Definition
from jobtable.model import Entity
from jobtable.store import Store
from jobtable.systems.receipts.legacy import entities as old
from jobtable.systems.receipts.legacy.successors import successor


class QueuedJobs:
    """Gives migrated jobs their queues and queue entries.

    In the legacy table only a queue entry names the queue of its job. In the main table the job names it too, and the
    entry has a rank while a worker may claim the job and is deleted when the job ends.
    """

    def __init__(self, source: Store, target: Store) -> None:
        self._source = source
        self._target = target

    def complete(self, entity: Entity) -> tuple[Entity | None, str | None]:
        """Complete a migrated entity; also return why it is None, or a job that no worker claims."""
        if isinstance(entity, Job):
            return self._with_queue(entity)
        if isinstance(entity, QueueJob):
            return self._with_rank(entity)
        return entity, None

    def add(self, entry: QueueJob) -> None:
        """Add a job to its queue, which counts it, or raise AlreadyExistsError."""
        if self._target.find(Queue.key(queue_name=entry.queue_name)) is None:
            self._add_queue_of(entry)
        try:
            with self._target.transaction() as transaction:
                transaction.add(entry)
                transaction.update(Queue.key(queue_name=entry.queue_name), Queue.job_count.increment(1))
                transaction.check(Job.key(job_id=entry.job_id), Job.changed_at.missing())
        except TransactionFailedError as error:
            raise AlreadyExistsError(f"job {entry.job_id} is or was in queue {entry.queue_name}") from error

    def _add_queue_of(self, entry: QueueJob) -> None:
        legacy_queue = self._source.find(old.Queue.key(queue_name=entry.queue_name))
        queue = None if legacy_queue is None else successor(legacy_queue)
        default = Queue(
            queue_name=entry.queue_name, created_at=entry.enqueued_at, max_concurrent_jobs=DEFAULT_CONCURRENCY
        )
        try:
            self._target.add(queue or default)
        except AlreadyExistsError:
            return  # added for another job of the queue

    def _with_queue(self, job: Job) -> tuple[Job, str | None]:
        queue_name = self._queue_of(job.job_id)
        if queue_name is not None:
            return job.replace(queue_name=queue_name), None
        return job, "it waits but is in no queue, so no worker claims it" if job.status in CLAIMABLE else None

    def _with_rank(self, entry: QueueJob) -> tuple[QueueJob | None, str | None]:
        job = self._source.find(old.Job.key(job_id=entry.job_id))
        if job is None:
            return None, "the job of the queue entry does not exist"
        if job.status in FINAL:
            return None, "its job has ended, so it is in no queue of the main table"
        if entry.queue_name != self._queue_of(entry.job_id):
            return None, "its job is also in another queue, and the main table has one per job"
        moved = self._target.find(Job.key(job_id=entry.job_id))
        if moved is not None and moved.changed_at is not None:
            return None, "its job has changed in the main table since an earlier run"
        if job.status not in CLAIMABLE:
            return entry, None
        if self._source.query(old.JobDependency.key(job_id=job.job_id)).first() is not None:
            return entry, "its job has dependencies in the legacy table, so no worker claims it until it is retried"
        if not _names_a_task(job):
            return entry, "the configuration of its job names no task, so no worker claims it"
        return entry.replace(rank=rank_of(entry.priority)), None

    def _queue_of(self, job_id: str) -> str | None:
        """Return the queue of a legacy job, the first by name if there are several."""
        entry = self._source.query(old.QueueJob.by_job(job_id=job_id)).first()
        return None if entry is None else entry.queue_name


def _names_a_task(job: old.Job) -> bool:
    try:
        return Definition.model_validate(job.job_config or {}).task is not None
    except ValidationError:
        return False
