"""Ended jobs restart, but only after their dependents wait again and the groups above them run again.

Any number of jobs may wait for one, so this is not one transaction. Until a job restarts it has a queue entry with a
due time, as a job that has just ended has. If this process dies, any worker of the queue finds the due entry and
notifies the dependents that the job has ended, as if nobody had retried it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count

from jobtable.clock import wall_time
from jobtable.errors import ErrorReason, JobStateError
from jobtable.jobs.core import EngineCore
from jobtable.jobs.lifecycle.transitions import SETTLING_TIME, Transition
from jobtable.jobs.report.recording import find_roll_up
from jobtable.jobs.stored.entities import Job, JobGates, QueueJob
from jobtable.jobs.stored.field_types import Status, rank_of
from jobtable.model import unchanged


class Beginnings(EngineCore):
    """Restarts ended jobs."""

    def _restart(self, job: Job, by: str) -> None:
        """Restart an ended job and the groups above it that it had ended; JobStateError if it cannot."""
        self._refuse_unstartable(job)
        if self.queries.find_entry(job) is not None:  # not all dependents know that it has ended
            self._endings.settle(job)
        next_job: Job | None = job
        while next_job is not None:
            for each in reversed(self._reopen_upwards(next_job)):
                self._write_beginning(each, by)
            # If this took long, a worker may have notified the dependents again, so that the group has ended once more.
            next_job = self._find_group_above(next_job)

    def _refuse_unstartable(self, job: Job) -> None:
        if job.deleted_at is not None:
            raise JobStateError(
                f"job {job.job_id} is being deleted and cannot be retried", reason=ErrorReason.JOB_DELETED
            )
        broken_by = self._dependencies.find_breaker_of(job) if not job.definition.is_group else None
        if broken_by is not None:
            raise JobStateError(f"job {job.job_id} waits for job {broken_by}, which must be retried first")

    def _reopen_upwards(self, job: Job) -> list[Job]:
        """Make dependents wait for a job again, and for the groups above it; return the job and these groups.

        The groups restart before the job, because an ended one would miss its end.
        """
        restarting: list[Job] = []
        above: Job | None = job
        while above is not None:
            self._reopen(above, SETTLING_TIME)
            restarting.append(above)
            above = self._find_group_above(above)
        return restarting

    def _find_group_above(self, job: Job) -> Job | None:
        """Return the group of a job if it has ended but waits for one of its children again."""
        group = None if job.parent_job_id is None else self.queries.get_job(job.parent_job_id)
        if group is None or not group.definition.is_group or not group.is_final:
            return None
        gates = self.store.find(JobGates.key(job_id=group.job_id))
        return group if gates is not None and gates.open_completions else None

    def _reopen(self, job: Job, settling_time: timedelta) -> None:
        self._hold(job, settling_time)
        self._dependencies.reopen(job)

    def _hold(self, job: Job, settling_time: timedelta) -> None:
        """Give an ended job a queue entry that other workers find after the settling time."""

        def hold(job: Job) -> None:
            due = wall_time(self.clock) + settling_time
            entry = self.queries.find_entry(job)
            transition = Transition(self.store, self.clock)
            same = unchanged(job, Job.status, Job.changed_at, Job.priority)
            transition.tx.check(job, same & Job.deleted_at.missing())
            if entry is not None:
                transition.tx.update(entry, QueueJob.not_before.set(due))
            elif job.queue_name is not None:
                transition.tx.add(self._entry(job, job.queue_name, not_before=due))
                transition.count(job.queue_name, jobs=1)
            transition.commit()

        self.store.retrying(lambda: self._get_unchanged(job), hold, f"retry job {job.job_id}", first=job)

    def _get_unchanged(self, job: Job) -> Job:
        """Return the job as it is now, or raise JobStateError if it has changed since it ended."""
        fresh = self.queries.get_job(job.job_id)
        if fresh.changed_at != job.changed_at or fresh.deleted_at is not None:
            raise JobStateError(
                f"job {job.job_id} changed meanwhile", hint="read it again", reason=ErrorReason.JOB_CHANGED
            )
        return fresh

    def _write_beginning(self, job: Job, by: str) -> None:
        settling_times = (SETTLING_TIME * 2**attempt for attempt in count())

        def read() -> Job:
            fresh = self._get_unchanged(job)
            self._reopen(fresh, next(settling_times))  # a worker was faster: leave more time now
            return fresh

        def begin(job: Job) -> None:
            transition = Transition(self.store, self.clock)
            gates = self._dependencies.recount(transition.tx, job.job_id) if job.is_gated else None
            self._add_beginning(transition, job, gates, by)
            transition.commit()

        self.store.retrying(read, begin, f"retry job {job.job_id}", first=job)
        if job.is_gated:
            self._endings.go_on(job.job_id)

    def _add_beginning(self, transition: Transition, job: Job, gates: JobGates | None, by: str) -> None:
        is_group = job.definition.is_group
        transition.change(
            job,
            Status.RUNNING if is_group else Status.PENDING,
            transition.time_for(job),
            Job.attempts.set(0),
            Job.interruptions.set(0),
            Job.unopened.set(None),
            Job.progress.set(0),
            Job.ended_at.set(None),
            Job.result.set(None),
            Job.instance_id.set(None),
            Job.is_awaiting.set(is_group),
            Job.tree_status.set(None),
            message=f"retried by {by}",
            by=by,
            when=Job.deleted_at.missing(),
        )
        if job.queue_name is not None:
            is_ready = not is_group and (gates is None or gates.open_starts == 0)
            entry = self._entry(job, job.queue_name, rank=rank_of(job.priority) if is_ready else None)
            transition.tx.put(entry, when=QueueJob.not_before.exists() & (QueueJob.priority == job.priority))

    def _entry(
        self, job: Job, queue_name: str, *, rank: int | None = None, not_before: datetime | None = None
    ) -> QueueJob:
        return QueueJob(
            queue_name=queue_name,
            job_id=job.job_id,
            enqueued_at=self.clock.now(),
            priority=job.priority,
            rank=rank,
            not_before=not_before,
            group_id=None if (rule := find_roll_up(job)) is None else rule.job_id,
        )
