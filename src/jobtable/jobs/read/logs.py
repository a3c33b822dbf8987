"""Reading the logs of jobs: recent lines from the table, the full text from object storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import count

from jobtable.clock import Clock
from jobtable.errors import ObjectNotFoundError, TransactionFailedError
from jobtable.jobs.lifecycle.leases import IS_THERE
from jobtable.jobs.read.log_search import LogSearch
from jobtable.jobs.report.log_lines import levels_from
from jobtable.jobs.report.log_text import ChunkReader, remove_parts
from jobtable.jobs.stored.entities import Job, JobLog, JobLogText
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.stored.locations import log_part_key, log_parts_prefix, merged_text_key, named_in_records
from jobtable.model.conditions import Condition
from jobtable.model.expressions import attribute_of
from jobtable.objects import ObjectStore
from jobtable.objects.object_store import CHUNK_SIZE, chunks
from jobtable.store import Query, Store

FOLLOW_SECONDS = 0.5
"""The pause between two reads of a followed log."""


class JobLogs:
    """The logs of jobs, as streams: memory is bounded, however long a log is."""

    def __init__(self, store: Store, objects: ObjectStore, *, clock: Clock | None = None) -> None:
        self._store = store
        self._objects = objects
        self._clock = clock or store.clock

    # --- lines ------------------------------------------------------------------------------------------------------

    def tail(self, job_id: str, most: int = 100, *, level: str | None = None) -> list[JobLog]:
        """Return the last lines, oldest first, from a level on if one is given."""
        newest = self._store.query(JobLog.key(job_id=job_id), newest_first=True, limit=most, where=_is_from(level))
        return list(newest)[::-1]

    def lines(self, job_id: str, *, level: str | None = None, since: datetime | None = None) -> Query[JobLog]:
        """Return the lines, oldest first, from a level on and after a time if given."""
        return self._store.query(JobLog.key(job_id=job_id), after=since, where=_is_from(level))

    def follow(
        self,
        job_id: str,
        *,
        level: str | None = None,
        since: datetime | None = None,
        tail: int | None = None,
        poll_seconds: float = FOLLOW_SECONDS,
    ) -> Iterator[JobLog]:
        """Yield the lines as they are written, until the job has ended.

        Starts with the first line, after `since`, or with the last `tail` lines. Each round reads what follows the last
        line; lines of one job appear in the order of their times, so none is missed. NotFoundError without the job.
        """
        levels = None if level is None else levels_from(level)
        if tail is not None:
            # Following starts after the last line of any level, so that earlier lines are not read again.
            last = self.tail(job_id, 1)
            shown = self.tail(job_id, tail, level=level) if tail else []
            yield from shown
            since = max((line.timestamp for line in (*last, *shown)), default=since)
        while True:
            # Before the lines are read: a job that has ended has written all of them.
            has_ended = self._job(job_id).is_final
            for line in self.lines(job_id, since=since):
                since = line.timestamp
                if levels is None or line.log_level in levels:
                    yield line
            if has_ended:
                return
            self._clock.sleep(poll_seconds)

    # --- the full text ----------------------------------------------------------------------------------------------

    def texts(self, job_id: str) -> Query[JobLogText]:
        """Return the records of the full texts of a job's runs, oldest first."""
        return self._store.query(JobLogText.key(job_id=job_id))

    def full_text(self, job_id: str, epoch: int | None = None) -> Iterator[bytes]:
        """Yield the output of one run, by default the last, in chunks; of a running or lost one, what was uploaded."""
        chosen = self._job(job_id).lease_epoch if epoch is None else epoch
        text = self._finished(job_id, chosen) or self.finish_text(job_id, chosen)
        if text is not None:
            return self._object(text.s3_key)
        return self._parts_or_object(job_id, chosen)

    def search(self, job_id: str, wanted: str, *, epoch: int | None = None, ignore_case: bool = False) -> LogSearch:
        """Return the lines that contain a text, oldest first, as a stream or page by page.

        Searches the full texts of one run or of all; of a job without any, which ran in the worker's own process, the
        lines in the table.
        """
        self._job(job_id)
        return LogSearch(self._store, self._objects, job_id, wanted, epoch=epoch, ignore_case=ignore_case)

    def finish_text(self, job_id: str, epoch: int) -> JobLogText | None:
        """Merge the parts that a lost worker has left into one object; None if there are none or the run goes on.

        Any number of processes may do so at once. A worker that returns replaces it with its own, longer text.
        """
        text = self._finished(job_id, epoch)
        if text is not None or self._is_running(job_id, epoch):
            return text
        parts = self._part_count(job_id, epoch)
        if parts == 0:
            return self._finished(job_id, epoch)
        counter = _LineCounter()
        try:
            chunks = counter.counted(self._parts(job_id, epoch, range(parts)))
            merged = self._objects.put(merged_text_key(job_id, epoch), ChunkReader(chunks))
        except ObjectNotFoundError:  # another process has merged them and removes the parts
            return self._finished(job_id, epoch)
        made = JobLogText(
            job_id=job_id,
            lease_epoch=epoch,
            **named_in_records(self._objects, merged),
            line_count=counter.lines,
            created_at=self._clock.now(),
        )
        try:
            with self._store.transaction() as tx:
                tx.check(Job.key(job_id=job_id), IS_THERE)
                tx.put(made, when=JobLogText.sha256.missing())
        except TransactionFailedError:  # it was merged elsewhere, or the job is being deleted
            return self._finished(job_id, epoch)
        remove_parts(self._objects, job_id, epoch, parts)
        return made

    def _job(self, job_id: str) -> Job:
        return self._store.get(Job.key(job_id=job_id))

    def _finished(self, job_id: str, epoch: int) -> JobLogText | None:
        text = self._store.find(JobLogText.key(job_id=job_id, lease_epoch=epoch))
        return None if text is None or text.sha256 is None else text

    def _is_running(self, job_id: str, epoch: int) -> bool:
        job = self._job(job_id)
        return job.status is Status.RUNNING and job.lease_epoch == epoch

    def _part_count(self, job_id: str, epoch: int) -> int:
        """Return the number of parts; 0 without the first, because then the text is one object."""
        keys = {found.key for found in self._objects.list(log_parts_prefix(job_id, epoch))}
        return next(number for number in count() if log_part_key(job_id, epoch, number) not in keys)

    def _parts(self, job_id: str, epoch: int, numbers: Iterable[int]) -> Iterator[bytes]:
        for number in numbers:
            yield self._objects.get(log_part_key(job_id, epoch, number))

    def _parts_or_object(self, job_id: str, epoch: int) -> Iterator[bytes]:
        """Yield the parts of a text, or the rest of the object into which they are merged meanwhile."""
        sent = 0
        missing: ObjectNotFoundError | None = None
        try:
            for chunk in self._parts(job_id, epoch, range(self._part_count(job_id, epoch))):
                yield chunk
                sent += len(chunk)
        except ObjectNotFoundError as error:
            missing = error
        text = self._finished(job_id, epoch)
        if text is not None:
            yield from self._object(text.s3_key, sent)
        elif missing is not None:
            raise missing

    def _object(self, key: str, start: int = 0) -> Iterator[bytes]:
        with self._objects.open(key) as stream:
            while start > 0 and (skipped := stream.read(min(start, CHUNK_SIZE))):
                start -= len(skipped)
            yield from chunks(stream)


class _LineCounter:
    def __init__(self) -> None:
        self.lines = 0

    def counted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.lines += chunk.count(b"\n")
            yield chunk


def _is_from(level: str | None) -> Condition | None:
    return None if level is None else attribute_of(JobLog.log_level).is_in(*levels_from(level))
