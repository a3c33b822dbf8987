"""The records and files of a run elsewhere, kept by a server."""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from jobtable.errors import LeaseLostError, ObjectNotFoundError, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.buffer import RecordBuffer, Timed
from jobtable.jobs.report.checkpoints import Checkpoint, Checkpoints, SavedState
from jobtable.jobs.report.log_text import RunText
from jobtable.jobs.report.recording import Recording
from jobtable.jobs.report.run_files import Artifacts, RunFiles
from jobtable.jobs.stored.entities import JobArtifact, JobCheckpoint, JobLog, JobLogText, JobMetric
from jobtable.objects import ObjectStore, Source, key_parts
from jobtable.objects.object_store import Readable, chunks
from jobtable.remote.backend import ServerObjects
from jobtable.remote.server_requests import Server, only_at_store, path_of
from jobtable.store import Store

_ENDING = re.compile(r"\.[A-Za-z0-9]{1,20}")


class ServerRecording(Recording):
    """The records of runs of a worker elsewhere."""

    def __init__(self, server: Server, store: Store, objects: ServerObjects) -> None:
        super().__init__(store, objects, store.clock)
        self._server = server

    def buffer(self, lease: Lease, job_id: str, *, most_seconds: float) -> RecordBuffer:
        writer = ServerRecords(self._server, lease, job_id)
        return RecordBuffer(self._store, job_id, most_seconds=most_seconds, writer=writer)

    def run_text(self, lease: Lease) -> RunText:
        return ServerText(self._server, self._store, self._objects, lease)

    def checkpoints(self, lease: Lease) -> Checkpoints:
        return ServerCheckpoints(self._server, self._store, HeldObjects(self._server, lease), lease)

    def artifacts(self, lease: Lease) -> Artifacts:
        return ServerArtifacts(self._server, self._store, self._objects, lease)


class ServerRecords:
    """Lines and metrics of one run, on their way to the server."""

    def __init__(self, server: Server, lease: Lease, job_id: str) -> None:
        self._server = server
        self._lease = lease
        self._is_own = job_id == lease.job.job_id
        self._batch: Sequence[Timed] = ()
        self._left: list[tuple[str, dict[str, Any], str]] = []

    def write(self, records: Sequence[Timed]) -> None:
        """Send up to 98 records, with a key per request, so that none is stored twice if it is sent again.

        Records of a lost run are dropped: its worker learns of the loss by its heartbeat.
        """
        if not self._is_own:
            return  # the server applies the roll-up rule itself
        with contextlib.suppress(LeaseLostError):
            self._send(records)

    def _send(self, records: Sequence[Timed]) -> None:
        if records is not self._batch:
            lines = [_line(record) for record in records if isinstance(record, JobLog)]
            metrics = [_metric(record) for record in records if isinstance(record, JobMetric)]
            sent = (("logs", {"lines": lines}), ("metrics", {"metrics": metrics}))
            self._left = [(verb, body, str(uuid.uuid4())) for verb, body in sent if any(body.values())]
            self._batch = records
        while self._left:
            verb, body, key = self._left[0]
            path = path_of("jobs", self._lease.job.job_id, verb)
            self._server.write("POST", path, {**lease_of(self._lease), **body}, key=key)
            self._left.pop(0)


class ServerFiles(RunFiles):
    """Files of a run elsewhere, kept by a server."""

    def __init__(self, server: Server, store: Store, objects: ObjectStore, lease: Lease) -> None:
        super().__init__(store, objects, store.clock, lease)
        self._server = server


class ServerText(ServerFiles, RunText):
    """The full text of a run elsewhere."""

    def put_part(self, number: int, data: bytes, line_count: int) -> None:
        path = path_of("jobs", self._lease.job.job_id, "log-text", "parts", str(number))
        self._server.upload("PUT", path, data, query={**_sent_by(self._lease, data), "line_count": line_count})

    def put_whole(self, source: Readable, line_count: int, part_count: int) -> JobLogText:
        path = path_of("jobs", self._lease.job.job_id, "log-text")
        with tempfile.NamedTemporaryFile(prefix="jobtable-text-") as kept:
            kept.writelines(chunks(source))
            kept.flush()
            file = Path(kept.name)
            query = {**_sent_by(self._lease, file), "line_count": line_count, "part_count": part_count}
            return JobLogText.model_validate(self._server.upload("PUT", path, file, query=query))


@only_at_store("keep_last")
class ServerCheckpoints(ServerFiles, Checkpoints):
    """The checkpoints of a job that a worker elsewhere holds."""

    def find_latest(self) -> Checkpoint | None:
        return self._find(best=False)

    def find_best(self) -> Checkpoint | None:
        return self._find(best=True)

    def add(
        self, source: Source, state: SavedState, *, ending: str | None = None, keep_last: int | None = None
    ) -> JobCheckpoint:
        file = _file(source)
        found = _ENDING.fullmatch(ending or (file.suffix if isinstance(file, Path) else ""))
        query = {
            **_sent_by(self._lease, file),
            "step": state.step,
            "training_epoch": state.epoch,
            "metric": [f"{name}={value!r}" for name, value in state.metrics.items()],
            "is_best": state.is_best,
            "keep_last": keep_last,
            "model_state": state.model_state,
            "optimizer_state": state.optimizer_state,
            "ending": found[0] if found else None,
        }
        path = path_of("jobs", self._job_id, "checkpoints")
        return JobCheckpoint.model_validate(self._server.upload("POST", path, file, query=query))

    def _find(self, *, best: bool) -> Checkpoint | None:
        path = path_of("jobs", self._job_id, "checkpoint")
        found = self._server.read("GET", path, query={**lease_of(self._lease), "best": best})
        if found is None:
            return None
        return Checkpoint(JobCheckpoint.model_validate(found), self._objects, self._clock)


class ServerArtifacts(ServerFiles, Artifacts):
    """The artifacts of a job that a worker elsewhere holds."""

    def put(self, name: str, source: Source) -> JobArtifact:
        file = _file(source)
        path = path_of("jobs", self._job_id, "artifacts", *name.split("/"))
        return JobArtifact.model_validate(self._server.upload("PUT", path, file, query=_sent_by(self._lease, file)))


class HeldObjects(ServerObjects):
    """The checkpoints of a job as objects, for the worker that holds it."""

    def __init__(self, server: Server, lease: Lease) -> None:
        super().__init__(server)
        self._lease = lease

    def open(self, key: str) -> BinaryIO:
        path = path_of("jobs", self._lease.job.job_id, "checkpoints", key_parts(key)[-1])
        try:
            return self._server.open(path, lease_of(self._lease))
        except ObjectNotFoundError as error:
            raise ObjectNotFoundError(f"there is no object {key} on {self._server.url}") from error


def lease_of(lease: Lease) -> dict[str, Any]:
    """Return the members of a request that name the lease."""
    return {"instance_id": lease.instance_id, "epoch": lease.epoch}


def _sent_by(lease: Lease, source: Path | bytes) -> dict[str, Any]:
    """Return the lease and the digest of a file that is sent."""
    if isinstance(source, bytes):
        return {**lease_of(lease), "sha256": hashlib.sha256(source).hexdigest()}
    with source.open("rb") as stream:
        return {**lease_of(lease), "sha256": hashlib.file_digest(stream, "sha256").hexdigest()}


def _file(source: Source) -> Path | bytes:
    """Return the file or bytes to send; ValueRefusedError for a folder or a stream."""
    if isinstance(source, Path) and source.is_dir():
        raise ValueRefusedError(f"{source} is a folder; pack it into one file first, for example with shutil")
    if isinstance(source, Path | bytes):
        return source
    raise ValueRefusedError("a stream cannot be sent to a server; pass a file or bytes")


def _line(line: JobLog) -> dict[str, Any]:
    return {
        "message": line.message,
        "level": line.log_level,
        "source": line.source,
        "exception": line.exception,
        "timestamp": line.timestamp.isoformat(),
    }


def _metric(metric: JobMetric) -> dict[str, Any]:
    return metric.model_dump(mode="json", include={"metric_name", "value", "unit", "step", "epoch", "timestamp"})
