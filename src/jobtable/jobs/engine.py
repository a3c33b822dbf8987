"""The job engine: the verbs of people, of workers and of systems, on one store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jobtable.jobs.lifecycle.claims import Claims
from jobtable.jobs.lifecycle.control import Control
from jobtable.jobs.lifecycle.deletion import Deletion
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.lifecycle.many import ManyJobs
from jobtable.jobs.lifecycle.runs import Runs
from jobtable.jobs.queues import Queues
from jobtable.jobs.submit.submission import Submission
from jobtable.jobs.verbs import JobVerbs, WorkVerbs

T = TypeVar("T")


class Jobs(Submission, Queues, Control, Deletion, Claims, Runs, JobVerbs, WorkVerbs):
    """Jobs in one store, with their large things in one object store. Any thread may use it.

    `JobVerbs` and `WorkVerbs` state what the verbs promise; the others are for the systems that run on the engine.
    """

    @property
    def many(self) -> ManyJobs:
        return ManyJobs(self)

    @property
    def engine(self) -> Jobs:
        return self

    def desk(self, kind: Callable[[Jobs, Lease], T], lease: Lease) -> T:
        return kind(self, lease)

    def shared(self, kind: Callable[[Jobs], T]) -> T:
        """Return what a class makes of this engine, made once: all who ask share it, and what it remembers."""
        found: T = self._shared[kind] if kind in self._shared else self._shared.setdefault(kind, kind(self))
        return found
