"""Queues: creating, changing, pausing, resuming and deleting them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from jobtable.errors import AlreadyExistsError, ConditionFailedError, ConflictError, NotFoundError, missing
from jobtable.jobs.core import EngineCore
from jobtable.jobs.lifecycle.transitions import add_queue
from jobtable.jobs.stored.entities import Job, Queue, QueueJob
from jobtable.jobs.verbs import QueueSettings, QueueState

_MOST_EXAMINED = 10_000
"""How many entries of a queue are searched for one that the indexes do not show."""


class Queues(EngineCore):
    """The verbs of queues; see `JobVerbs`."""

    def create_queue(self, name: str, **settings: Unpack[QueueSettings]) -> Queue:
        try:
            return add_queue(self.store, self.clock, name, **_given(settings))
        except AlreadyExistsError as error:
            hint = "change_queue(...), or `jobtable queues change`, changes its settings"
            raise AlreadyExistsError(f"queue {name} already exists", hint=hint) from error

    def queue_states(self, names: Sequence[str], *, certain: bool = False) -> list[QueueState]:
        found = self.store.batch_get([Queue.key(queue_name=name) for name in names])
        return [
            QueueState(
                queue.queue_name,
                queue.priority,
                queue.job_count,
                queue.running_count,
                self._has_work(queue, certain=certain),
            )
            for queue in found
            if queue is not None
        ]

    def _has_work(self, queue: Queue, *, certain: bool) -> bool:
        if queue.paused_at is not None or not queue.job_count:
            return False
        name = queue.queue_name
        shown = (QueueJob.ready(queue_name=name), QueueJob.delayed(queue_name=name))
        if any(True for entries in shown for _ in self.store.query(entries, limit=1)):
            return True
        # The table itself is always up to date, but it has no order: all that waits must be read.
        entries = self.store.query(QueueJob.key(queue_name=name), limit=_MOST_EXAMINED) if certain else ()
        return any(entry.rank is not None or entry.not_before is not None for entry in entries)

    def change_queue(self, name: str, **settings: Unpack[QueueSettings]) -> Queue:
        return self._set(name, **_given(settings))

    def pause_queue(self, name: str) -> Queue:
        return self._set(name, paused_at=self.clock.now())

    def resume_queue(self, name: str) -> Queue:
        return self._set(name, paused_at=None)

    def _set(self, name: str, **values: Any) -> Queue:
        updates = [getattr(Queue, field).set(value) for field, value in values.items()]
        selection = Queue.key(queue_name=name)
        return self.store.update(selection, *updates) if updates else self.store.get(selection)

    def delete_queue(self, name: str) -> None:
        try:
            existed = self.store.delete(Queue.key(queue_name=name), when=Queue.job_count == 0)
        except ConditionFailedError as error:
            count = error.current.job_count
            jobs = "1 job waits or runs" if count == 1 else f"{count:,} jobs wait or run"
            raise ConflictError(
                f"queue {name} cannot be deleted: {jobs} in it", hint="cancel these jobs, or wait for them to end"
            ) from error
        if not existed:
            raise missing("queue", name)

    def queue_position(self, job: Job) -> int | None:
        """Return the position of a job among the ready jobs of its queue, from 1, or None if it is not ready.

        Reads the keys of all that are ahead of it.
        """
        entry = self.queries.find_entry(job)
        if entry is None or entry.rank is None:
            return None
        ready = self.store.query(QueueJob.ready(queue_name=entry.queue_name))
        for number, each in enumerate(ready, start=1):
            if each.job_id == job.job_id:
                return number
        raise NotFoundError(f"job {job.job_id} has just left queue {entry.queue_name}")


def _given(settings: QueueSettings) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}
