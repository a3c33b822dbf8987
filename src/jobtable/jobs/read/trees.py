"""The jobs under a job."""

from __future__ import annotations

from collections.abc import Iterator

from jobtable.jobs.dependencies.verbs import Dependencies
from jobtable.jobs.read.queries import JobQueries
from jobtable.jobs.stored.entities import Job


class Trees:
    """Finds the jobs under others, also those that the index does not show yet."""

    def __init__(self, queries: JobQueries, dependencies: Dependencies) -> None:
        self._queries = queries
        self._dependencies = dependencies

    def whole(self, job_id: str) -> Iterator[Job]:
        """A job and those under it, each before its own children."""
        job = self._queries.get_job(job_id)
        yield job
        yield from self.below(job)

    def below(self, job: Job) -> Iterator[Job]:
        """The jobs under a job, each before its own children, however deep the tree is."""
        levels = [self.children(job)]
        while levels:
            child = next(levels[-1], None)
            if child is None:
                levels.pop()
            else:
                yield child
                levels.append(self.children(child))

    def children(self, job: Job) -> Iterator[Job]:
        """The children of a job, as they are now: all that were submitted before the first is asked for.

        Each has an item of its own in the job's partition, or the edge by which the job waits for it. The index is
        asked for those that another program wrote.
        """
        seen: set[str] = set()
        for ids in self._ids_of_children(job):
            found = self._queries.read_jobs(dict.fromkeys(child for child in ids if child not in seen))
            yield from (child for child in found if child is not None and child.parent_job_id == job.job_id)
            seen.update(ids)

    def _ids_of_children(self, job: Job) -> Iterator[list[str]]:
        yield [child.child_job_id for child in self._queries.list_unawaited_children(job)]
        if job.is_gated:
            yield [edge.dependency_job_id for edge in self._dependencies.edges_of(job.job_id)]
        yield [child.job_id for child in self._queries.list_children(job)]
