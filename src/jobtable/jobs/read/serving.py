"""Which queues live workers serve."""

from __future__ import annotations

from collections.abc import Iterable

from jobtable.jobs.stored.entities import Instance, Queue


class ServedQueues:
    """The queues that some workers serve; `is_whole` says whether these are all live workers."""

    def __init__(self, workers: Iterable[Instance], *, is_whole: bool) -> None:
        self._names = {queue for worker in workers for queue in worker.queues or ()}
        self._is_whole = is_whole

    def __contains__(self, queue_name: str) -> bool:
        """Whether a live worker serves a queue; where not all are known, one that is not may."""
        return not self._is_whole or queue_name in self._names

    def why_stuck(self, queue: Queue) -> str | None:
        """What keeps the jobs of a queue that wait from getting on: `paused` or `no worker`; None if nothing does."""
        if not queue.waiting_count:
            return None
        if queue.paused_at is not None:
            return "paused"
        return None if queue.queue_name in self else "no worker"
