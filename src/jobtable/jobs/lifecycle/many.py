"""One verb on many jobs of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

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
from jobtable.jobs.verbs import ActedOn, JobVerbs, ManyVerbs

T = TypeVar("T")

_OF_ALL = (AccessDenied, BackendUnavailable, ObjectStoreUnavailable, StorageError, TableNotFound, Throttled)
"""Errors that are no job's own: the next job would meet them as well, after a wait of its own."""


class ManyJobs(ManyVerbs):
    """The verbs of `ManyVerbs`, one job after the other."""

    def __init__(self, jobs: JobVerbs) -> None:
        self._jobs = jobs

    def cancel(
        self, job_ids: Iterable[str], *, by: str = "local", message: str | None = None, tree: bool = True
    ) -> Iterator[ActedOn[Job]]:
        return act_on_each(job_ids, partial(self._jobs.cancel, by=by, message=message, tree=tree))

    def stop(
        self, job_ids: Iterable[str], *, by: str = "local", message: str | None = None, tree: bool = True
    ) -> Iterator[ActedOn[Job]]:
        return act_on_each(job_ids, partial(self._jobs.stop, by=by, message=message, tree=tree))

    def retry(self, job_ids: Iterable[str], *, by: str = "local", tree: bool = False) -> Iterator[ActedOn[Job]]:
        return act_on_each(job_ids, partial(self._jobs.retry, by=by, tree=tree))

    def delete(self, job_ids: Iterable[str], *, tree: bool = False) -> Iterator[ActedOn[int]]:
        return act_on_each(job_ids, partial(self._jobs.delete, tree=tree))


def act_on_each(job_ids: Iterable[str], act: Callable[[str], T]) -> Iterator[ActedOn[T]]:
    """Act on jobs one by one; after an error that is no job's own, the others are skipped."""
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
