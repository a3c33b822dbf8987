"""What the parts of the job engine share."""

from __future__ import annotations

from random import Random
from typing import Any

from jobtable.clock import Clock
from jobtable.jobs.dependencies.edge_verbs import Dependencies
from jobtable.jobs.lifecycle.endings import Endings, Starts
from jobtable.jobs.lifecycle.instances import Instances
from jobtable.jobs.read.job_reads import JobReads
from jobtable.jobs.report.recording import Recording
from jobtable.jobs.verbs import InstanceVerbs
from jobtable.objects import ObjectStore
from jobtable.store import Store


class EngineCore(JobReads):
    """A store, an object store, and the collaborators that several parts of the engine need."""

    def __init__(
        self, store: Store, objects: ObjectStore, *, clock: Clock | None = None, random: Random | None = None
    ) -> None:
        super().__init__(store, objects, clock)
        self.recording = Recording(store, objects, self.clock)
        self.instances: InstanceVerbs = Instances(store)
        self._shared: dict[Any, Any] = {}
        self._random = random or Random()  # noqa: S311 - no secret
        self._endings = Endings(store, self.clock, self.queries)
        self._dependencies = Dependencies(store, self.clock, self.queries)
        self._starts = Starts(store, self._endings)
