"""Checkpoints: saved states of a job in object storage, to resume from."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, TypeVar

from jobtable.clock import Clock
from jobtable.errors import ConflictError, ObjectStoreError, ValueRefusedError
from jobtable.files import whole_file
from jobtable.jobs.lifecycle.leases import check_lease, lost_if_refused
from jobtable.jobs.report.buffer import Timeline
from jobtable.jobs.report.run_files import RunFiles
from jobtable.jobs.stored.entities import JobCheckpoint
from jobtable.jobs.stored.locations import checkpoint_key, discard, named_in_records
from jobtable.objects import ObjectStore, Source
from jobtable.objects.object_store import measured
from jobtable.store import Transaction
from jobtable.store.retries import insist

T = TypeVar("T")

_MOST_REMOVED_TOGETHER = 90


@dataclass(frozen=True)
class SavedState:
    """What is known of a saved state."""

    step: int = 0
    epoch: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    is_best: bool = False
    model_state: bool = True
    """Whether it contains the state of the model."""
    optimizer_state: bool = True


@dataclass(frozen=True)
class Checkpoint:
    """A stored checkpoint: its record, and its bytes in object storage, for which reads wait."""

    record: JobCheckpoint
    objects: ObjectStore
    clock: Clock

    def open(self) -> BinaryIO:
        """The saved state as a stream; the caller closes it."""
        return self._insist(lambda: self.objects.open(self.record.s3_key))

    def read(self) -> bytes:
        """The whole saved state, checked against the record."""
        data = self._insist(lambda: self.objects.get(self.record.s3_key))
        self._check(hashlib.sha256(data).hexdigest())
        return data

    def save_to(self, path: Path) -> Path:
        """Write the saved state to a file, which appears once it is complete and checked; return the path."""
        return self._insist(lambda: self._save_to(path))

    def _save_to(self, path: Path) -> Path:
        with whole_file(path) as file:
            with self.objects.open(self.record.s3_key) as stream:
                digest, _ = measured(stream, file)
            self._check(digest.hex())
        return path

    def _insist(self, call: Callable[[], T]) -> T:
        return insist(call, f"read checkpoint {self.record.s3_key}", self.clock)

    def _check(self, sha256: str) -> None:
        if self.record.sha256 is not None and sha256 != self.record.sha256:
            raise ObjectStoreError(
                f"checkpoint {self.record.s3_key} of job {self.record.job_id} is damaged (SHA-256 {sha256}, not "
                f"{self.record.sha256}); resume from another one"
            )


class Checkpoints(RunFiles):
    """The checkpoints of the job of a run."""

    @cached_property
    def _timeline(self) -> Timeline:
        return Timeline(self._store, self._job_id)

    def find_latest(self) -> Checkpoint | None:
        """The last checkpoint, or None."""
        record = self._store.query(JobCheckpoint.key(job_id=self._job_id), newest_first=True, limit=1).first()
        return None if record is None else Checkpoint(record, self._objects, self._clock)

    def find_best(self) -> Checkpoint | None:
        """Return the checkpoint flagged as the best, or None."""
        flagged = self._flagged()
        return Checkpoint(flagged[-1], self._objects, self._clock) if flagged else None

    def add(
        self, source: Source, state: SavedState, *, ending: str | None = None, keep_last: int | None = None
    ) -> JobCheckpoint:
        """Save a state: the object first, then its record, which takes over the flag of the best one.

        The object's name ends as the file's does, or with `ending`. With `keep_last`, all but that many
        of the last ones and the best are then removed.
        """
        name = _name_of(source, state.step, ending)
        saved = self._objects.put(checkpoint_key(self._job_id, name), source)

        def record(at: datetime) -> JobCheckpoint:
            return JobCheckpoint(
                job_id=self._job_id, timestamp=at, **named_in_records(self._objects, saved), **vars(state)
            )

        def write(tx: Transaction, times: Sequence[datetime]) -> None:
            check_lease(tx, self._lease)
            for earlier in self._flagged(before=times[0]) if state.is_best else []:
                tx.update(earlier, JobCheckpoint.is_best.set(False))
            tx.add(record(times[0]))

        try:
            with lost_if_refused(self._lease):
                (time,) = self._timeline.commit([self._clock.now()], write)
        except ConflictError:
            discard(self._objects, saved.key)
            raise
        if keep_last is not None:
            self.keep_last(keep_last)
        return record(time)

    def keep_last(self, count: int) -> int:
        """Delete all but the last `count` and the best, records before objects; return how many."""
        if count < 1:
            raise ValueRefusedError(f"job {self._job_id}: keep_last must be at least 1, not {count}")
        newest_first = list(self._store.query(JobCheckpoint.key(job_id=self._job_id), newest_first=True))
        removed = [record for record in newest_first[count:] if not record.is_best]
        for start in range(0, len(removed), _MOST_REMOVED_TOGETHER):
            together = removed[start : start + _MOST_REMOVED_TOGETHER]
            with lost_if_refused(self._lease), self._store.transaction() as tx:
                check_lease(tx, self._lease)
                for record in together:
                    tx.delete(record)
            for record in together:
                discard(self._objects, record.s3_key)
        return len(removed)

    def _flagged(self, before: datetime | None = None) -> list[JobCheckpoint]:
        is_best = JobCheckpoint.is_best == True  # noqa: E712 - an expression
        return list(self._store.query(JobCheckpoint.key(job_id=self._job_id), before=before, where=is_best))


def _name_of(source: Source, step: int, ending: str | None) -> str:
    """A name that no other checkpoint has, with the ending of the file."""
    if isinstance(source, Path) and source.is_dir():
        raise ValueRefusedError(f"{source} is a folder; pack it into one file first, for example with shutil")
    if ending is None:
        ending = source.suffix if isinstance(source, Path) else ""
    return f"step-{step}-{uuid.uuid4().hex[:12]}{ending}"
