"""The full output of one run: kept in a bounded file, uploaded in parts during the run, then as one object."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterator
from typing import IO, Any

from jobtable.clock import Clock
from jobtable.errors import ObjectStoreError
from jobtable.jobs.lifecycle.leases import is_known, lost_if_refused
from jobtable.jobs.report.run_files import RunFiles
from jobtable.jobs.stored.entities import Job, JobLogText
from jobtable.jobs.stored.locations import log_part_key, log_text_key, named_in_records
from jobtable.objects import ObjectInfo, ObjectStore
from jobtable.objects.object_store import CHUNK_SIZE, Readable

MOST_HEAD_BYTES = 48 << 20
"""The text is kept up to here."""
MOST_TAIL_BYTES = 16 << 20
"""Of the rest, only so many last bytes are kept."""
PART_BYTES = 1 << 20
UPLOAD_SECONDS = 5.0
"""How often a running job's text is uploaded; newer output is lost if the worker's machine dies."""


class TextSpool:
    """The first and last bytes of a text, in temporary files; small ones stay in memory."""

    def __init__(self, most_head_bytes: int = MOST_HEAD_BYTES, most_tail_bytes: int = MOST_TAIL_BYTES) -> None:
        self._most_head = most_head_bytes
        self._most_tail = most_tail_bytes
        self._head = _temporary_file()
        self._tail = _temporary_file()
        self.head_bytes = 0
        self._behind_head = 0
        self.line_count = 0

    def append(self, data: bytes) -> None:
        self.line_count += data.count(b"\n")
        room = self._most_head - self.head_bytes
        if room > 0:
            self._head.seek(self.head_bytes)
            self._head.write(data[:room])
            self.head_bytes += min(room, len(data))
            data = data[room:]
        self._behind_head += len(data)
        data = data[-self._most_tail :]
        # The tail is a ring: the number of earlier bytes gives the position of a byte.
        place = (self._behind_head - len(data)) % self._most_tail
        for piece, at in ((data[: self._most_tail - place], place), (data[self._most_tail - place :], 0)):
            if piece:
                self._tail.seek(at)
                self._tail.write(piece)

    def head(self, start: int, length: int) -> bytes:
        self._head.seek(start)
        return self._head.read(min(length, self.head_bytes - start))

    def chunks(self) -> Iterator[bytes]:
        """Yield the whole text, with a line that says how much of the middle was left out."""
        for start in range(0, self.head_bytes, CHUNK_SIZE):
            yield self.head(start, CHUNK_SIZE)
        left_out = max(self._behind_head - self._most_tail, 0)
        if left_out:
            yield b"\n[%s bytes of output were left out here]\n" % f"{left_out:,}".encode()
        kept = self._behind_head - left_out
        begin = self._behind_head % self._most_tail if left_out else 0
        for start in range(0, kept, CHUNK_SIZE):
            yield self._ring((begin + start) % self._most_tail, min(CHUNK_SIZE, kept - start))

    def close(self) -> None:
        for file in (self._head, self._tail):
            with contextlib.suppress(OSError):  # the disk may be full
                file.close()

    def _ring(self, place: int, length: int) -> bytes:
        self._tail.seek(place)
        data = self._tail.read(min(length, self._most_tail - place))
        if len(data) < length:
            self._tail.seek(0)
            data += self._tail.read(length - len(data))
        return data


class ChunkReader:
    """Chunks as a stream that can be put."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._held = b""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""
        while not self._held:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._held = chunk
        data, self._held = self._held[:size], self._held[size:]
        return data


class RunText(RunFiles):
    """Where the full text of one run is kept: in parts while the run goes on, then as one object with its record."""

    def put_part(self, number: int, data: bytes, line_count: int) -> None:
        """Store part `number`, from 0, replacing an earlier version; the first one also creates the record.

        LeaseLostError if the job was deleted; a run that only lost its lease keeps its own text.
        """
        self._refuse_if_gone()
        part = self._objects.put(log_part_key(self._job_id, self._lease.epoch, number), data)
        if number == 0:
            self._put_record(self._record(part, sha256=None, line_count=line_count, part_count=1))

    def put_whole(self, source: Readable, line_count: int, part_count: int) -> JobLogText:
        """Store the text as one object, record it, and delete the parts; LeaseLostError as above."""
        self._refuse_if_gone()
        whole = self._objects.put(log_text_key(self._job_id, self._lease.epoch), source)
        record = self._record(whole, line_count=line_count)
        self._put_record(record)
        remove_parts(self._objects, self._job_id, self._lease.epoch, part_count)
        return record

    def _refuse_if_gone(self) -> None:
        """Store nothing where a new job with the id of a deleted one may have its objects."""
        job = self._store.find(Job.key(job_id=self._job_id))
        if job is None or job.deleted_at is not None or job.created_at != self._lease.job.created_at:
            raise self._lease.lost()

    def _put_record(self, record: JobLogText) -> None:
        """Record an object; if the job was deleted meanwhile, `objects sweep` removes it."""
        with lost_if_refused(self._lease), self._store.transaction() as tx:
            tx.check(Job.key(job_id=self._job_id), is_known(self._lease))
            tx.put(record)

    def _record(self, named: ObjectInfo, **more: Any) -> JobLogText:
        fields = {**named_in_records(self._objects, named), "created_at": self._clock.now(), **more}
        return JobLogText(job_id=self._job_id, lease_epoch=self._lease.epoch, **fields)


class LogText:
    """Writes the full text of one run of a job.

    During the run its text is in parts, the last of which is replaced as it grows. At the end it becomes one object,
    then the record names it, then the parts are deleted. One thread may append while another uploads, so that the job
    does not wait for slow object storage.
    """

    def __init__(self, place: RunText, clock: Clock, spool: TextSpool | None = None) -> None:
        self._place = place
        self._clock = clock
        self._spool = spool or TextSpool()
        self._lock = threading.Lock()
        self._problem: OSError | None = None
        self._uploaded_bytes = 0
        self._part_count = 0
        self._last_upload = clock.monotonic()

    def append(self, data: bytes) -> None:
        """Add to the text; if the disk is full, `finish` raises that."""
        with self._lock:
            try:
                if self._problem is None:
                    self._spool.append(data)
            except OSError as error:
                self._problem = error

    def upload(self) -> None:
        """Upload what is new, if the last upload is long enough ago."""
        if self._clock.monotonic() - self._last_upload < UPLOAD_SECONDS:
            return
        try:
            self._upload_to(self._spool.head_bytes)
        finally:
            self._last_upload = self._clock.monotonic()

    def _upload_to(self, end: int) -> None:
        while self._uploaded_bytes < end:
            number = self._uploaded_bytes // PART_BYTES
            with self._lock:
                data, line_count = self._spool.head(number * PART_BYTES, PART_BYTES), self._spool.line_count
            self._place.put_part(number, data, line_count)
            self._uploaded_bytes = number * PART_BYTES + len(data)
            self._part_count = number + 1

    def finish(self) -> JobLogText | None:
        """Store the text as one object and return its record; None without text. May be retried.

        OSError if the disk was full; the uploaded parts stay.
        """
        if self._problem is not None:
            raise self._problem
        if not self._spool.head_bytes:
            return None
        return self._place.put_whole(ChunkReader(self._spool.chunks()), self._spool.line_count, self._part_count)

    def close(self) -> None:
        self._spool.close()


def _temporary_file() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=PART_BYTES, prefix="jobtable-text-")


def remove_parts(objects: ObjectStore, job_id: str, epoch: int, count: int) -> None:
    """Remove the parts of a text that is one object now.

    The first goes first: parts without it mean that the text is one object. `objects sweep` removes the rest.
    """
    with contextlib.suppress(ObjectStoreError):
        for number in range(count):
            objects.delete(log_part_key(job_id, epoch, number))
