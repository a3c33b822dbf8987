"""The import of a checked archive: objects first, then items, and the journey itself last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice

from jobtable.errors import (
    AlreadyExistsError,
    ArchiveError,
    ConditionFailedError,
    ConflictError,
    ErrorReason,
    NotFoundError,
)
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import await_workers
from jobtable.jobs.lifecycle.transitions import ensure_queue
from jobtable.jobs.stored.entities import Job, main
from jobtable.model import Condition
from jobtable.store import TryAgain
from jobtable.store.backend import Item
from jobtable.store.batches import Batches
from jobtable.systems.journeys.archives.archive import Archive
from jobtable.systems.journeys.creation import DELETION
from jobtable.systems.journeys.entities import JobExecution, Journey, SecondBrainRule, journeys
from jobtable.systems.journeys.object_keys import journey_prefix
from jobtable.systems.journeys.parts import Aggregates, Creation, JourneyStatus, is_running
from jobtable.systems.journeys.raw_items import add_item, list_partition, missing_from, replace_item
from jobtable.systems.journeys.running import aggregates
from jobtable.systems.journeys.running.stage_jobs import JourneyJobs, is_job_of

_METADATA = {"S": "METADATA"}
_JOBS_AT_ONCE = 100
"""Jobs in memory at once: a journey may have had tens of thousands."""


class Existing(StrEnum):
    """What an import does if the journey already exists."""

    REFUSE = "refuse"
    """Change nothing."""
    MERGE = "merge"
    """Add what is missing, keep the rest, and count the totals again."""
    REPLACE = "replace"
    """Make the journey equal to the archive; what the archive lacks is deleted."""


@dataclass(frozen=True)
class Imported:
    """What an import stored and removed."""

    journey_id: str
    items: int
    objects: int
    removed_items: int
    removed_objects: int


def refuse_running(journey: Journey, verb: str) -> None:
    """Raise ConflictError if a journey runs."""
    if journey.status is JourneyStatus.RUNNING:
        message = f"cannot {verb} journey {journey.journey_id} while it runs"
        raise ConflictError(message, hint="pause or cancel it first")


class Restore:
    """One import of one checked archive."""

    def __init__(self, jobs: Jobs, archive: Archive, existing: Existing) -> None:
        self._engine = jobs
        self._store = jobs.store
        self._objects = jobs.objects
        self._archive = archive
        self._existing = existing
        self._jobs = JourneyJobs(jobs)
        self._batches = Batches(jobs.store)
        self._journey_id = archive.manifest.journey_id
        self._selection = Journey.key(journey_id=self._journey_id)
        self._prefix = journey_prefix(self._journey_id)
        self._is_merged = False

    def run(self) -> Imported:
        """Import the archive, or finish an interrupted import of it."""
        self._mark()
        is_replaced = self._existing is Existing.REPLACE
        removed_items = self._remove_jobs() if is_replaced else 0
        objects = self._put_objects()
        items = self._put_items()
        removed_objects = 0
        if is_replaced:
            removed_items += self._remove_items()
            removed_objects = self._remove_objects()
        if self._is_merged:
            self._recount(has_changed=items > 0)
        elif not replace_item(self._store, journeys, self._metadata(), self._is_marked()):
            raise self._overtaken()
        return Imported(self._journey_id, items, objects, removed_items, removed_objects)

    # --- before the first write

    def _mark(self) -> None:
        """Mark the journey as being imported, and decide whether this import merges into it."""
        there = self._store.find(self._selection)
        has_jobs = sum(1 for _ in self._jobs_there()) > 0
        begun = there.creation.fingerprint if there is not None and there.creation is not None else None
        for is_merged in (True, False):
            self._is_merged = is_merged
            if begun == self._fingerprint:
                return
        if begun == DELETION:
            raise ConflictError(f"journey {self._journey_id} is being deleted", hint="finish its deletion first")
        if there is not None:
            refuse_running(there, "import over")
        if self._existing is Existing.REFUSE and (there is not None or has_jobs or self._has_anything()):
            raise AlreadyExistsError(
                f"journey {self._journey_id} already exists",
                hint="merge into it, or replace it",
                reason=ErrorReason.TARGET_NOT_EMPTY,
            )
        if self._existing is Existing.REPLACE:
            held = chain(self._jobs_there(), self._jobs.list_jobs(self._journey_id))
            await_workers(self._engine, held, f"import over journey {self._journey_id}")
        self._is_merged = self._existing is Existing.MERGE and there is not None
        marker = Creation(done=0, total=self._archive.manifest.item_count, fingerprint=self._fingerprint)
        coming: Journey = Journey.__schema__.codec.decode(self._metadata())
        coming = coming.replace(creation=marker, status=JourneyStatus.PENDING)
        if there is None:
            self._store.add(coming)
            return
        if self._is_merged and begun is not None:
            message = f"another import of journey {self._journey_id} is not finished"
            raise ConflictError(message, hint="finish it first")
        try:
            if self._is_merged:
                is_idle = ~is_running(Journey.status) & Journey.creation.missing()
                self._store.update(self._selection, Journey.creation.set(marker), when=is_idle)
            else:
                is_idle = ~is_running(Journey.status) & ~(Journey.creation["fingerprint"] == DELETION)
                self._store.put(coming, when=is_idle)
        except ConditionFailedError as error:
            message = f"journey {self._journey_id} was started or deleted meanwhile"
            raise ConflictError(message, hint="look at it, then import again") from error

    @property
    def _fingerprint(self) -> str:
        how = "into" if self._is_merged else "anew"
        return f"import {self._existing.value} {how} {self._archive.digest}"

    def _is_marked(self) -> Condition:
        """Return the condition that nobody deleted the journey, or imported it again, since this import started."""
        marked: Condition = Journey.creation["fingerprint"] == self._fingerprint
        return marked

    def _overtaken(self) -> ConflictError:
        message = f"journey {self._journey_id} was deleted or imported by someone else meanwhile"
        return ConflictError(message, hint="import it again, and replace it")

    def _metadata(self) -> Item:
        return next(item for item in self._archive.items() if item["SK"] == _METADATA)

    def _jobs_there(self) -> Iterator[Job]:
        """Yield the archive's jobs that already exist; ConflictError if one belongs to something else."""
        job_ids = iter(sorted(self._archive.job_ids))
        while some := [Job.key(job_id=job_id) for job_id in islice(job_ids, _JOBS_AT_ONCE)]:
            for job in self._store.batch_get(some):
                if job is not None and not is_job_of(job, self._journey_id):
                    raise ConflictError(f"job {job.job_id} already exists, and does not belong to {self._journey_id}")
                if job is not None:
                    yield job

    def _has_anything(self) -> bool:
        has_item = next(self._items_here(), None) is not None
        return has_item or next(self._objects.list(self._prefix), None) is not None

    def _items_here(self) -> Iterator[Item]:
        return list_partition(self._store, journeys, self._selection)

    def _keys_here(self) -> Iterator[str]:
        yield from (found.key for found in self._objects.list(self._prefix))
        yield from self._jobs.list_objects(sorted(self._archive.job_ids))

    # --- storing

    def _put_objects(self) -> int:
        there = set(self._keys_here()) if self._is_merged else set()
        entries = [entry for entry in self._archive.manifest.objects if entry.key not in there]
        for entry in entries:
            with self._archive.open_object(entry) as source:
                info = self._objects.put(entry.key, source)
            if info.sha256 != entry.sha256:
                raise ArchiveError(f"the file changed during its import: {entry.key} has another checksum")
        return len(entries)

    def _put_items(self) -> int:
        items = (item for item in self._archive.items() if item["SK"] != _METADATA)
        jobs = self._archive.job_items()
        for queue in sorted(self._archive.queues):  # so that an imported job can be retried here
            ensure_queue(self._store, self._engine.clock, queue)
        if self._is_merged:
            added = sum(add_item(self._store, main, item) for item in jobs)
            return added + sum(add_item(self._store, journeys, item) for item in items)
        # Executions lead to their jobs, so the jobs come first.
        return self._batches.put_items(main, jobs) + self._batches.put_items(journeys, items) + 1

    # --- removing

    def _remove_jobs(self) -> int:
        """Delete the jobs that the archive lacks; an archive without jobs keeps those of its executions."""
        for job in self._jobs_there():
            self._jobs.cancel(job, "the import of its journey")
        removed = 0
        has_jobs = self._archive.manifest.jobs is not None
        for execution in self._store.query(JobExecution.key(journey_id=self._journey_id), newest_first=True):
            if has_jobs or execution.job_id not in self._archive.execution_ids:
                found = self._jobs.list_jobs_of(execution)
                removed += self._jobs.delete(job for job in found if job.job_id not in self._archive.job_ids)
        return removed

    def _remove_items(self) -> int:
        here = self._jobs.list_items(self._archive.job_ids)
        removed = self._batches.delete_items(main, missing_from(self._archive.job_items(), here))
        return removed + self._batches.delete_items(journeys, missing_from(self._archive.items(), self._items_here()))

    def _remove_objects(self) -> int:
        wanted = {entry.key for entry in self._archive.manifest.objects}
        others = [key for key in self._keys_here() if key not in wanted]
        for other in others:
            self._objects.delete(other)
        return len(others)

    def _recount(self, *, has_changed: bool) -> None:
        def recount(journey: Journey | None) -> None:
            if journey is None or journey.creation is None or journey.creation.fingerprint != self._fingerprint:
                raise self._overtaken()
            counted, counts = self._counted(journey)
            is_same = not has_changed and (counted, counts) == (journey.aggregates, journey.execution_counts)
            try:
                self._store.update(
                    self._selection,
                    Journey.aggregates.set(counted),
                    Journey.execution_counts.set(counts),
                    Journey.creation.remove(),
                    Journey.updated_at.set(journey.updated_at if is_same else self._engine.clock.now()),
                    when=self._is_marked() & (Journey.updated_at == journey.updated_at),
                )
            except NotFoundError as error:
                raise TryAgain from error

        what = f"merge journey {self._journey_id}"
        self._store.retrying(lambda: self._store.find(self._selection), recount, what)

    def _counted(self, journey: Journey) -> tuple[Aggregates, dict[str, int]]:
        """Count the totals of the journey, and find the highest execution number of each stage."""
        counts = dict(journey.execution_counts or {})

        def executions() -> Iterator[JobExecution]:
            for execution in self._store.query(JobExecution.key(journey_id=self._journey_id)):
                counts[execution.stage_id] = max(execution.execution_number, counts.get(execution.stage_id, 0))
                yield execution

        rules = self._store.query(SecondBrainRule.key(journey_id=self._journey_id))
        return aggregates.recount(executions(), rules), counts
