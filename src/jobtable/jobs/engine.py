"""The job engine: every verb of jobs, queues and workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Self, TypeVar

from jobtable.clock import Clock
from jobtable.jobs.dependencies.verbs import Dependencies
from jobtable.jobs.lifecycle.beginnings import Beginnings
from jobtable.jobs.lifecycle.claims import Claims
from jobtable.jobs.lifecycle.control import Control
from jobtable.jobs.lifecycle.deletion import Deletion
from jobtable.jobs.lifecycle.endings import Endings
from jobtable.jobs.lifecycle.instances import Instances
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.lifecycle.many import ManyJobs
from jobtable.jobs.lifecycle.recovery import LeaseObserver
from jobtable.jobs.lifecycle.runs import Runs
from jobtable.jobs.lifecycle.starts import Starts
from jobtable.jobs.queues import Queues
from jobtable.jobs.read.queries import JobQueries
from jobtable.jobs.read.timing import Timings
from jobtable.jobs.read.trees import Trees
from jobtable.jobs.read.waiting import Waits
from jobtable.jobs.report.recording import Recording
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.submission import Submission
from jobtable.objects import ObjectStore
from jobtable.store import Store

T = TypeVar("T")


class Jobs:
    """Jobs in one store, with their large things in one object store. Any thread may use it.

    The verbs are those of the parts: submission.py, queues.py, control.py, deletion.py, many.py, dependencies.py,
    claims.py and runs.py describe what each of them promises.
    """

    def __init__(
        self, store: Store, objects: ObjectStore, *, clock: Clock | None = None, random: Random | None = None
    ) -> None:
        self.store = store
        self.objects = objects
        self.clock = clock or store.clock
        self.queries = JobQueries(store)
        self.recording = Recording(store, objects, self.clock)
        self.instances = Instances(store)
        self.queues = Queues(store, self.clock)
        self._endings = Endings(store, self.clock, self.queries)
        submission = Submission(store, self.clock, self.queues)
        dependencies = Dependencies(store, self.clock, self.queries)
        beginnings = Beginnings(store, self.clock, self.queries, self._endings, dependencies)
        self._trees = trees = Trees(self.queries, dependencies)
        control = Control(store, self.clock, self.queries, trees, self._endings, dependencies, beginnings)
        deletion = Deletion(store, objects, self.clock, self.queries, trees, self._endings, dependencies)
        starts = Starts(store, self._endings)
        chance = random or Random()  # noqa: S311 - no secret
        claims = Claims(store, self.clock, chance, self.queries, self._endings, starts)
        self._runs = runs = Runs(store, self.clock, chance, self.queries, self._endings, starts)

        self.submit = submission.submit
        self.submit_many = submission.submit_many
        self.submit_together = submission.submit_together
        self.open_group = submission.open_group
        self.seal = control.seal

        self.create_queue = self.queues.create
        self.change_queue = self.queues.change
        self.pause_queue = self.queues.pause
        self.resume_queue = self.queues.resume
        self.delete_queue = self.queues.delete
        self.queue_states = self.queues.states

        self.cancel = control.cancel
        self.stop = control.stop
        self.retry = control.retry
        self.begin_for_system = control.begin_for_system
        self.open_for_system = control.open_for_system
        self.prioritise = control.prioritise
        self.delete = deletion.delete
        self.delete_for_system = deletion.delete_for_system
        self.mark_as_going = deletion.mark_as_going
        self.add_dependency = dependencies.add
        self.why_waiting = Waits(store, self.clock, self.queries).why
        self.timing_of = Timings(store, self.clock).of

        self.claim = claims.claim
        self.promote_due = claims.promote_due
        self.heartbeat = runs.heartbeat
        self.refresh = runs.refresh
        self.look_at = runs.look_at
        self.report = runs.report
        self.finish = runs.finish
        self.finish_many = runs.finish_many
        self.release = runs.release

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and the object store."""
        self.store.close()
        self.objects.close()

    @property
    def many(self) -> ManyJobs:
        """What people do with jobs, done with many."""
        return ManyJobs(self)

    def desk(self, kind: Callable[[Jobs, Lease], T], lease: Lease) -> T:
        """What the tasks of a system ask for in the name of the job that they run; elsewhere it asks a server."""
        return kind(self, lease)

    def list_tree(self, job_id: str) -> Iterator[Job]:
        """A job and those under it, each before its own children; also those that no index shows yet."""
        return self._trees.whole(job_id)

    def observer(self) -> LeaseObserver:
        """One worker's watch over the leases of all."""
        return LeaseObserver(self.store, self.clock, self.queries, self._runs.interrupt_lost, self._endings.go_on)
