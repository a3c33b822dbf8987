"""One verb on many jobs: each is acted on by itself, and what cannot be done with one does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from jobtable.errors import (
    AccessDenied,
    BackendUnavailable,
    JobtableError,
    ObjectStoreUnavailable,
    StorageError,
    TableNotFound,
    Throttled,
)
from jobtable.jobs.stored.entities import Job

if TYPE_CHECKING:
    from jobtable.jobs.engine import Jobs

T = TypeVar("T")

_OF_ALL = (AccessDenied, BackendUnavailable, ObjectStoreUnavailable, StorageError, TableNotFound, Throttled)
"""Errors that are no job's own: the next job would meet them as well, after a wait of its own."""


@dataclass(frozen=True)
class ActedOn(Generic[T]):
    """What became of one of many jobs: what the verb gave, or why it could not be done.

    Where the store did not answer for a job, those behind it are left alone, and have its error too.
    """

    job_id: str
    given: T | None = None
    error: JobtableError | None = None


class ManyJobs:
    """The verbs of people, each on many jobs, in their order. They are done as the results are read."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def cancel(
        self, job_ids: Iterable[str], *, by: str = "local", message: str | None = None, tree: bool = True
    ) -> Iterator[ActedOn[Job]]:
        """Cancel jobs, as `Jobs.cancel` does one."""
        return act_on_each(job_ids, partial(self._jobs.cancel, by=by, message=message, tree=tree))

    def stop(
        self, job_ids: Iterable[str], *, by: str = "local", message: str | None = None, tree: bool = True
    ) -> Iterator[ActedOn[Job]]:
        """Stop jobs, as `Jobs.stop` does one."""
        return act_on_each(job_ids, partial(self._jobs.stop, by=by, message=message, tree=tree))

    def retry(self, job_ids: Iterable[str], *, by: str = "local", tree: bool = False) -> Iterator[ActedOn[Job]]:
        """Let jobs begin anew, as `Jobs.retry` does one."""
        return act_on_each(job_ids, partial(self._jobs.retry, by=by, tree=tree))

    def delete(self, job_ids: Iterable[str], *, tree: bool = False) -> Iterator[ActedOn[int]]:
        """Delete jobs, as `Jobs.delete` does one; gives the number of items of each."""
        return act_on_each(job_ids, partial(self._jobs.delete, tree=tree))


def act_on_each(job_ids: Iterable[str], act: Callable[[str], T]) -> Iterator[ActedOn[T]]:
    """Act on jobs one by one; behind an error that is no job's own, the others are left alone."""
    met: JobtableError | None = None
    for job_id in job_ids:
        if met is not None:
            yield ActedOn(job_id, error=met)
            continue
        try:
            given = act(job_id)
        except JobtableError as error:
            met = error if isinstance(error, _OF_ALL) else None
            yield ActedOn(job_id, error=error)
        else:
            yield ActedOn(job_id, given)
