"""Journeys as files: exported with all items and objects of the journey and its jobs, imported, deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from jobtable.errors import ConditionFailedError, ConflictError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import STOPPING_SECONDS, await_workers
from jobtable.store.backend import Item
from jobtable.store.batches import Batches
from jobtable.systems.journeys.archives.archive import ArchiveContents, Exported, write_archive
from jobtable.systems.journeys.archives.check import MOST_BYTES, checked_archive
from jobtable.systems.journeys.archives.restore import Existing, Imported, Restore, refuse_running
from jobtable.systems.journeys.creation import DELETION, incomplete
from jobtable.systems.journeys.entities import Journey, journeys
from jobtable.systems.journeys.object_keys import journey_prefix
from jobtable.systems.journeys.parts import Creation, JourneyStatus, is_running
from jobtable.systems.journeys.raw_items import list_partition
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.running.stage_jobs import JourneyJobs

_METADATA = {"S": "METADATA"}


class JourneyBackups:
    """Exports, imports and deletes journeys, with the jobs that ran them."""

    def __init__(self, runner: JourneyRunner) -> None:
        self._runner = runner
        self._store = runner.jobs.store
        self._objects = runner.jobs.objects
        self._jobs = JourneyJobs(runner.jobs)

    @classmethod
    def of(cls, jobs: Jobs) -> Self:
        return cls(JourneyRunner(jobs))

    def get_journey_complete(self, journey_id: str, path: Path) -> Exported:
        """Write a journey and its ended jobs, with all items and objects, to one file, whole or not at all.

        ConflictError if a worker runs it, or if it changes meanwhile: pause a running journey first.
        """
        before = self._store.get(Journey.key(journey_id=journey_id))
        if before.creation is not None:
            raise incomplete(journey_id)
        patience = 0.0 if before.status is JourneyStatus.RUNNING else STOPPING_SECONDS
        jobs, what = self._jobs.list_jobs(journey_id), f"export journey {journey_id}"
        await_workers(self._runner.jobs, jobs, what, patience_seconds=patience)
        job_ids = [job.job_id for job in self._jobs.list_ended(journey_id)]
        contents = ArchiveContents(
            journey_id, self.list_items(journey_id), self._jobs.list_items(job_ids), self._keys(journey_id, job_ids)
        )

        def refuse_changed() -> None:
            after = self._store.find(Journey.key(journey_id=journey_id))
            if after is None or after.creation is not None or after.updated_at != before.updated_at:
                message = f"journey {journey_id} changed during its export"
                raise ConflictError(message, hint="pause it, then try again")

        return write_archive(path, contents, self._objects, refuse_changed)

    def _keys(self, journey_id: str, job_ids: list[str]) -> Iterator[str]:
        yield from (found.key for found in self._objects.list(journey_prefix(journey_id)))
        yield from self._jobs.list_objects(job_ids)

    def import_journey_complete(
        self, path: Path, existing: Existing = Existing.REFUSE, *, most_bytes: int = MOST_BYTES
    ) -> Imported:
        """Check a whole file, then store its contents; the same call again resumes an interrupted import.

        Until the import is finished the journey is marked (`creation`) and cannot run.
        """
        with checked_archive(path, most_bytes=most_bytes) as archive:
            return Restore(self._runner.jobs, archive, existing).run()

    def delete_journey(self, journey_id: str, *, stop: bool = False, by: str = "user") -> int:
        """Delete a journey and its jobs with all items and objects; return the number of items.

        ConflictError while it runs, unless `stop` cancels it first. The same call again finishes an interrupted
        deletion; until then the journey is marked (`creation`) and cannot run.
        """
        journey = self._store.get(Journey.key(journey_id=journey_id))
        if stop:
            if journey.creation is None:
                with contextlib.suppress(ConflictError):  # it has already ended
                    self._runner.cancel(journey_id, by=by)
            self._jobs.cancel_all(journey_id, by)
        else:
            refuse_running(journey, "delete")
        await_workers(self._runner.jobs, self._jobs.list_jobs(journey_id), f"delete journey {journey_id}")
        self._mark_as_deleted(journey_id)
        # What leads to the rest goes last: the executions after their jobs, and the journey after everything.
        removed = self._jobs.delete(self._jobs.list_jobs(journey_id))
        items = (item for item in self.list_items(journey_id) if item["SK"] != _METADATA)
        removed += Batches(self._store).delete_items(journeys, items)
        for found in list(self._objects.list(journey_prefix(journey_id))):
            self._objects.delete(found.key)
        return removed + self._store.delete(Journey.key(journey_id=journey_id))

    def _mark_as_deleted(self, journey_id: str) -> None:
        """Mark the journey, so that nobody starts it any more."""
        marker = Journey.creation.set(Creation(done=0, total=0, fingerprint=DELETION))
        try:
            self._store.update(Journey.key(journey_id=journey_id), marker, when=~is_running(Journey.status))
        except ConditionFailedError as error:
            raise ConflictError(f"journey {journey_id} was started meanwhile", hint="pause or cancel it") from error

    def list_items(self, journey_id: str) -> Iterator[Item]:
        """Yield every item of a journey as it is stored, in key order."""
        return list_partition(self._store, journeys, Journey.key(journey_id=journey_id))
