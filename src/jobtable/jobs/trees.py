"""The jobs under a job."""

from __future__ import annotations

from collections.abc import Iterator

from jobtable.jobs.dependencies import Dependencies
from jobtable.jobs.entities import Job
from jobtable.jobs.queries import JobQueries


class Trees:
    """Finds the jobs under others; also those that the index does not show yet, if their parent waits for them."""

    def __init__(self, queries: JobQueries, dependencies: Dependencies) -> None:
        self._queries = queries
        self._dependencies = dependencies

    def below(self, job: Job) -> Iterator[Job]:
        """The jobs under a job, each before its own children, however deep the tree is."""
        levels = [self._children(job)]
        while levels:
            child = next(levels[-1], None)
            if child is None:
                levels.pop()
            else:
                yield child
                levels.append(self._children(child))

    def _children(self, job: Job) -> Iterator[Job]:
        """The children of a job, as they are now: the index may be behind.

        Those that it does not show yet are known by the edges of a job that waits for them.
        """
        ids = dict.fromkeys(child.job_id for child in self._queries.list_children(job))
        if job.is_gated:
            ids.update(dict.fromkeys(edge.dependency_job_id for edge in self._dependencies.edges_of(job.job_id)))
        found = self._queries.read_jobs(ids)
        return (child for child in found if child is not None and child.parent_job_id == job.job_id)
