"""One verb on many jobs of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from jobtable.errors import (
    AccessDenied,
    BackendUnavailable,
    JobtableError,
    ObjectStoreUnavailable,
    StorageError,
    TableNotFound,
    Throttled,
)
from jobtable.jobs.verbs import ActedOn, JobVerbs, ManyVerb, ManyVerbs

T = TypeVar("T")

_OF_ALL = (AccessDenied, BackendUnavailable, ObjectStoreUnavailable, StorageError, TableNotFound, Throttled)
"""Errors that are no job's own: the next job would meet them as well, after a wait of its own."""


class ManyJobs(ManyVerbs):
    """The verbs of `ManyVerbs`, one job after the other."""

    def __init__(self, jobs: JobVerbs) -> None:
        self._jobs = jobs

    def act(self, verb: ManyVerb, job_ids: Iterable[str], **options: Any) -> Iterator[ActedOn[Any]]:
        return act_on_each(job_ids, partial(getattr(self._jobs, verb), **options))


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
