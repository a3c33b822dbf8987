"""Living workers notice dead ones and take their jobs from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jobtable.clock import Clock
from jobtable.errors import ConditionFailedError, JobtableError, NotFoundError
from jobtable.jobs.lifecycle.instances import seen_until
from jobtable.jobs.lifecycle.leases import has_lease
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.stored.entities import Instance, Job
from jobtable.jobs.stored.field_types import Health, InstanceStatus, Status
from jobtable.jobs.verbs import Observer
from jobtable.store import Store


@dataclass(frozen=True)
class _Seen:
    """A heartbeat, and when this observer first saw it on its monotonic clock."""

    epoch: int
    heartbeat: int
    since: float


class LeaseObserver(Observer):
    """Watches the heartbeats of all running jobs and instances.

    A lease is dead when its heartbeat has not moved for the lease time while this observer watched. No wall clock is
    involved, so one that is wrong or jumps can neither end a healthy lease nor keep a dead one. A live worker that is
    taken for dead loses its lease only if its heartbeat has still not moved at that instant.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        queries: JobQueries,
        interrupt: Callable[[Job], Job | None],
        go_on: Callable[[str], Job | None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._queries = queries
        self._interrupt = interrupt
        self._go_on = go_on
        self._jobs: dict[str, _Seen] = {}
        self._instances: dict[str, _Seen] = {}

    def recover(self) -> list[Job]:
        changed: list[Job | None] = []
        seen: dict[str, _Seen] = {}
        problem: JobtableError | None = None
        for job in self._queries.list_jobs_by_status(Status.RUNNING):
            try:
                changed.append(self._look_at(job, seen))
            except JobtableError as error:
                problem = error
        self._jobs = seen
        self._bury_instances()
        if problem is not None:
            raise problem
        return [job for job in changed if job is not None]

    def _look_at(self, job: Job, seen: dict[str, _Seen]) -> Job | None:
        if job.is_awaiting:
            return self._go_on(job.job_id)
        if not has_lease(job):
            return None
        mark = self._mark(self._jobs.get(job.job_id), job.lease_epoch, job.heartbeat)
        if self._clock.monotonic() - mark.since > (job.lease_seconds or 0):
            seen[job.job_id] = mark  # if it cannot be taken now, the next look tries again
            taken = self._interrupt(job)
            del seen[job.job_id]
            return taken
        seen[job.job_id] = mark
        return None

    def _bury_instances(self) -> None:
        seen: dict[str, _Seen] = {}
        for instance in self._queries.list_instances_by_status(InstanceStatus.RUNNING):
            if instance.lease_seconds is None:
                continue  # not a worker of this package: its heartbeat never moves
            mark = self._mark(self._instances.get(instance.instance_id), 0, instance.heartbeat)
            if self._clock.monotonic() - mark.since > instance.lease_seconds:
                self._bury(instance)
            else:
                seen[instance.instance_id] = mark
        self._instances = seen

    def _bury(self, instance: Instance) -> None:
        try:
            self._store.update(
                instance,
                Instance.status.set(InstanceStatus.TERMINATED),
                Instance.health_status.set(Health.UNHEALTHY),
                Instance.time_to_live.set(seen_until(self._clock)),
                when=Instance.heartbeat == instance.heartbeat,
            )
        except (ConditionFailedError, NotFoundError):
            return  # it lives, or another observer was first

    def _mark(self, last: _Seen | None, epoch: int, heartbeat: int) -> _Seen:
        """Return the last mark if it has not moved, else one of now, as a look at all jobs may take long."""
        if last is not None and (last.epoch, last.heartbeat) == (epoch, heartbeat):
            return last
        return _Seen(epoch, heartbeat, self._clock.monotonic())
