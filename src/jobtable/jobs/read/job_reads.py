"""What anybody may read of jobs, from a store or through a server."""

from __future__ import annotations

from collections.abc import Iterator

from jobtable.clock import Clock
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.read.progress import Timing, timing_of
from jobtable.jobs.read.waiting import Waiting, Waits
from jobtable.jobs.stored.entities import Job, JobDependency
from jobtable.objects import ObjectStore
from jobtable.store import Store


class JobReads:
    """The verbs that only read; see `JobVerbs`."""

    def __init__(self, store: Store, objects: ObjectStore, clock: Clock | None = None) -> None:
        self.store = store
        self.objects = objects
        self.clock = clock or store.clock
        self.queries = JobQueries(store)

    def why_waiting(self, job: Job) -> Waiting | None:
        return Waits(self.store, self.clock, self.queries).why(job)

    def timing_of(self, job: Job, *, percent: float | None = None) -> Timing | None:
        return timing_of(job, self.store, self.clock, percent=percent)

    # --- trees ------------------------------------------------------------------------------------------------------

    def list_tree(self, job_id: str) -> Iterator[Job]:
        job = self.queries.get_job(job_id)
        yield job
        yield from self.list_below(job)

    def list_below(self, job: Job) -> Iterator[Job]:
        """Yield the descendants of a job, each before its own children, however deep the tree is."""
        levels = [self.list_children_now(job)]
        while levels:
            child = next(levels[-1], None)
            if child is None:
                levels.pop()
            else:
                yield child
                levels.append(self.list_children_now(child))

    def list_children_now(self, job: Job) -> Iterator[Job]:
        """Yield the children of a job as they are now: all that were submitted before the first is asked for.

        Each has an item of its own in the job's partition, or the edge by which the job waits for it. The index is
        asked for those that another program wrote.
        """
        seen: set[str] = set()
        for ids in self._ids_of_children(job):
            found = self.queries.read_jobs(dict.fromkeys(child for child in ids if child not in seen))
            yield from (child for child in found if child is not None and child.parent_job_id == job.job_id)
            seen.update(ids)

    def _ids_of_children(self, job: Job) -> Iterator[list[str]]:
        yield [child.child_job_id for child in self.queries.list_unawaited_children(job)]
        if job.is_gated:
            edges = self.store.query(JobDependency.key(job_id=job.job_id))
            yield [edge.dependency_job_id for edge in edges]
        yield [child.job_id for child in self.queries.list_children(job)]
