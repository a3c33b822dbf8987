"""Workers claim jobs, and delayed jobs become ready when they are due."""

from __future__ import annotations

from datetime import datetime
from random import Random

from jobtable.clock import Clock, wall_time
from jobtable.errors import JobtableError, ValueRefusedError
from jobtable.jobs.core import EngineCore
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.lifecycle.transitions import MOST_JOBS, Refused, Transition, length_of
from jobtable.jobs.stored.entities import Instance, InstanceJob, Job, JobResource, Queue, QueueJob
from jobtable.jobs.stored.field_types import CLAIMABLE, Status
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.store.transactions import grouped

_MOST_COLLISIONS = 20
_MOST_RECORDED_JOBS = 19
"""How many jobs fit into one transaction with the two items that record which instance has each."""
MOST_DUE = 100
"""How many due jobs are handled at once."""
_LARGEST_CROWD = 16
"""Contending claimers each pick one of at most this many shares of the next jobs."""


class Claims(EngineCore):
    """The verbs by which workers get jobs; see `WorkVerbs`."""

    def __init__(
        self, store: Store, objects: ObjectStore, *, clock: Clock | None = None, random: Random | None = None
    ) -> None:
        super().__init__(store, objects, clock=clock, random=random)
        self._crowds: dict[str, float] = {}
        """How many claimers seem to want the same jobs, by queue, if more than one."""

    def claim(
        self,
        queue: str,
        *,
        limit: int,
        instance_id: str,
        lease_seconds: float,
        instance: Instance | None = None,
    ) -> list[Lease]:
        if limit < 1 or lease_seconds <= 0:
            raise ValueRefusedError(
                f"limit must be at least 1 and lease_seconds positive, not {limit=}, {lease_seconds=}"
            )
        claimed: list[Lease] = []
        passed_over: set[str] = set()
        collisions = 0
        try:
            while len(claimed) < limit and collisions < _MOST_COLLISIONS:
                taken = self._claim_some(queue, limit - len(claimed), passed_over, instance_id, lease_seconds, instance)
                if taken is None:
                    break
                collisions += not taken
                claimed += taken
        except JobtableError:
            if not claimed:
                raise
            # The next claim raises it again. These jobs are claimed; unless they run, they would count as lost.
        if any(lease.job.dependents for lease in claimed):
            self._starts.notify([lease.job for lease in claimed])
        return claimed

    def _claim_some(
        self,
        queue: str,
        limit: int,
        passed_over: set[str],
        instance_id: str,
        lease_seconds: float,
        instance: Instance | None,
    ) -> list[Lease] | None:
        """Claim some of the next jobs; none if others were faster, None if no job can be claimed.

        The index may lag: jobs that it shows but that cannot be claimed are passed over.
        """
        found_queue = self.store.find(Queue.key(queue_name=queue))
        if found_queue is None or found_queue.paused_at is not None:
            return None
        most = _MOST_RECORDED_JOBS if instance is not None else MOST_JOBS
        wanted = min(limit, most, found_queue.max_concurrent_jobs - found_queue.running_count)
        entries = self._choose(queue, wanted, passed_over) if wanted > 0 else []
        if not entries:
            return None
        found = self.store.batch_get([Job.key(job_id=entry.job_id) for entry in entries])
        jobs = [(p, job) for p, job in zip(entries, found, strict=True) if job is not None and job.status in CLAIMABLE]
        if len(jobs) < len(entries):
            passed_over.update({entry.job_id for entry in entries} - {job.job_id for _, job in jobs})
        if not jobs:
            return []
        crowd = self._crowds.get(queue, 1.0)
        jobs = next(grouped(jobs, most, lambda pair: length_of(pair[1])))
        try:
            leases = self._take(found_queue, jobs, instance_id, lease_seconds, instance)
        except Refused as refused:
            if refused.job_ids:
                passed_over |= refused.job_ids
                self._crowds[queue] = min(crowd * 2, _LARGEST_CROWD)
            return []
        if crowd * 0.9 > 1:
            self._crowds[queue] = crowd * 0.9
        else:
            self._crowds.pop(queue, None)
        return leases

    def _choose(self, queue: str, wanted: int, passed_over: set[str]) -> list[QueueJob]:
        """Return the next jobs of a queue; if claimers contend, a share of them picked at random."""
        crowd = round(self._crowds.get(queue, 1.0))
        shown = self.store.query(QueueJob.ready(queue_name=queue), limit=wanted * crowd + len(passed_over))
        entries = [entry for entry in shown if entry.job_id not in passed_over]
        share = max(1, min(wanted, -(-len(entries) // crowd)))
        first = self._random.randrange(0, max(1, len(entries)), share)
        return entries[first : first + share]

    def _take(
        self,
        queue: Queue,
        chosen: list[tuple[QueueJob, Job]],
        instance_id: str,
        seconds: float,
        instance: Instance | None,
    ) -> list[Lease]:
        transition = Transition(self.store, self.clock)
        leases = []
        for entry, job in chosen:
            at = transition.time_for(job)
            run = {
                "lease_epoch": job.lease_epoch + 1,
                "lease_seconds": seconds,
                "heartbeat": 0,
                "attempts": job.attempts + 1,
                "instance_id": instance_id,
                "started_at": at,
            }
            updates = [getattr(Job, name).set(value) for name, value in run.items()]
            if job.woken:
                updates.append(Job.woken.set(None))
            transition.change(job, Status.RUNNING, at, *updates, instance_id=instance_id)
            transition.leave_ready(entry)
            if instance is not None:
                _record(transition, instance, job.job_id, at)
            begun = {"status": Status.RUNNING, "changed_at": at, "message": None, "woken": None}
            claimed = job.model_copy(update={**run, **begun})
            leases.append(Lease(claimed, instance_id, instance is not None))
        most = queue.max_concurrent_jobs
        is_open = (Queue.max_concurrent_jobs == most) & Queue.paused_at.missing()
        has_room = Queue.running_count <= most - len(leases)
        transition.count(queue.queue_name, running=len(leases), when=is_open & has_room)
        transition.commit()
        return leases

    def promote_due(self, queue: str, *, limit: int = MOST_DUE) -> int:
        self._starts.notify_pending()
        now = wall_time(self.clock)
        done = 0
        problem: JobtableError | None = None
        for entry in self.store.query(QueueJob.delayed(queue_name=queue), before=now, limit=limit):
            try:
                self._promote(entry)
            except JobtableError as error:
                problem = error
            done += 1
        if problem is not None:
            raise problem
        return done

    def _promote(self, entry: QueueJob) -> None:
        job = self.store.find(Job.key(job_id=entry.job_id))
        if job is not None and job.is_final:
            self._endings.settle_due(job, entry)
        elif job is not None and job.status in CLAIMABLE:
            self._endings.promote(entry, job)


def _record(transition: Transition, instance: Instance, job_id: str, at: datetime) -> None:
    transition.tx.put(
        InstanceJob(instance_id=instance.instance_id, job_id=job_id, assigned_at=at, status=Status.RUNNING)
    )
    transition.tx.put(
        JobResource(
            job_id=job_id,
            resource_id=instance.instance_id,
            resource_type="instance",
            instance_id=instance.instance_id,
            instance_type=instance.instance_type,
            gpu_count=instance.gpu_count,
            allocated_at=at,
            status="ALLOCATED",
        )
    )
