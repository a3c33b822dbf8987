"""Workers claim jobs, and delayed jobs become ready when their time has come."""

from __future__ import annotations

from datetime import datetime
from random import Random

from jobtable.clock import Clock, wall_time
from jobtable.errors import JobtableError, ValueRefusedError
from jobtable.jobs.core import EngineCore
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.lifecycle.transitions import MOST_JOBS, Refused, Transition, length_of
from jobtable.jobs.stored.entities import Instance, InstanceJob, Job, JobResource, Queue, QueueJob
from jobtable.jobs.stored.fields import CLAIMABLE, Status
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.store.transactions import grouped

_MOST_TRIES = 20
_MOST_RECORDED_JOBS = 19
"""How many jobs fit into one transaction together with the two items that tell which instance has each of them."""
MOST_DUE = 100
"""How many of the jobs whose time has come are looked after at once."""
_LARGEST_CROWD = 16
"""Where claimers are in each other's way, each picks one share of the next jobs: of at most this many shares."""


class Claims(EngineCore):
    """How workers get jobs."""

    def __init__(
        self, store: Store, objects: ObjectStore, *, clock: Clock | None = None, random: Random | None = None
    ) -> None:
        super().__init__(store, objects, clock=clock, random=random)
        self._crowds: dict[str, float] = {}
        """How many claimers seem to want the same jobs, by queue, where they are more than one."""

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
            raise ValueRefusedError(f"a claim takes at least one job for some time: {limit=}, {lease_seconds=}")
        claimed: list[Lease] = []
        passed_over: set[str] = set()
        collisions = 0
        try:
            while len(claimed) < limit and collisions < _MOST_TRIES:
                taken = self._claim_some(queue, limit - len(claimed), passed_over, instance_id, lease_seconds, instance)
                if taken is None:
                    break
                collisions += not taken
                claimed += taken
        except JobtableError:
            if not claimed:
                raise
            # The next claim raises it again. These jobs are claimed: if nobody ran them, they would count as lost.
        self._starts.tell([lease.job for lease in claimed])
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
        """Take some of the next jobs; none if others were faster, None if there is nothing to be had.

        The index may be behind: jobs that it shows but that cannot be had are passed over.
        """
        there = self.store.find(Queue.key(queue_name=queue))
        if there is None or there.paused_at is not None:
            return None
        most = _MOST_RECORDED_JOBS if instance is not None else MOST_JOBS
        wanted = min(limit, most, there.max_concurrent_jobs - there.running_count)
        places = self._choose(queue, wanted, passed_over) if wanted > 0 else []
        if not places:
            return None
        found = self.store.batch_get([Job.key(job_id=place.job_id) for place in places])
        jobs = [(p, job) for p, job in zip(places, found, strict=True) if job is not None and job.status in CLAIMABLE]
        if len(jobs) < len(places):
            passed_over.update({place.job_id for place in places} - {job.job_id for _, job in jobs})
        if not jobs:
            return []
        crowd = self._crowds.get(queue, 1.0)
        jobs = next(grouped(jobs, most, lambda pair: length_of(pair[1])))
        try:
            leases = self._take(there, jobs, instance_id, lease_seconds, instance)
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
        """The next jobs of a queue; where claimers are in each other's way, one share of them, picked at random."""
        crowd = round(self._crowds.get(queue, 1.0))
        shown = self.queries.list_ready(queue, limit=wanted * crowd + len(passed_over))
        places = [place for place in shown if place.job_id not in passed_over]
        share = max(1, min(wanted, -(-len(places) // crowd)))
        first = self._random.randrange(0, max(1, len(places)), share)
        return places[first : first + share]

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
        for place, job in chosen:
            at = transition.time_for(job)
            transition.change(
                job,
                Status.RUNNING,
                at,
                Job.lease_epoch.set(job.lease_epoch + 1),
                Job.lease_seconds.set(seconds),
                Job.heartbeat.set(0),
                Job.attempts.set(job.attempts + 1),
                Job.instance_id.set(instance_id),
                Job.started_at.set(at),
                instance_id=instance_id,
            )
            transition.leave_ready(place)
            if instance is not None:
                _record(transition, instance, job.job_id, at)
            changed = {
                "status": Status.RUNNING,
                "lease_epoch": job.lease_epoch + 1,
                "lease_seconds": seconds,
                "heartbeat": 0,
                "attempts": job.attempts + 1,
                "instance_id": instance_id,
                "started_at": at,
                "changed_at": at,
                "message": None,
            }
            leases.append(Lease(job.model_copy(update=changed), instance_id, instance is not None))
        most = queue.max_concurrent_jobs
        is_open = (Queue.max_concurrent_jobs == most) & Queue.paused_at.missing()
        has_room = Queue.running_count <= most - len(leases)
        transition.count(queue.queue_name, running=len(leases), when=is_open & has_room)
        transition.commit()
        return leases

    def promote_due(self, queue: str, *, limit: int = MOST_DUE) -> int:
        self._starts.tell_untold()
        now = wall_time(self.clock)
        done = 0
        problem: JobtableError | None = None
        for place in self.store.query(QueueJob.delayed(queue_name=queue), before=now, limit=limit):
            try:
                self._promote(place)
            except JobtableError as error:
                problem = error
            done += 1
        if problem is not None:
            raise problem
        return done

    def _promote(self, place: QueueJob) -> None:
        job = self.store.find(Job.key(job_id=place.job_id))
        if job is not None and job.is_final:
            self._endings.settle_due(job, place)
        elif job is not None and job.status in CLAIMABLE:
            self._endings.promote(place, job)


def _record(transition: Transition, instance: Instance, job_id: str, at: datetime) -> None:
    """Say which instance has the job."""
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
