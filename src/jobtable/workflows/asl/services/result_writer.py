"""ResultWriter: what a distributed Map returns, and the files that hold its results.

Below the prefix, each run has a folder of its id: `manifest.json` names the files `SUCCEEDED_0.json`, `FAILED_0.json`
and `PENDING_0.json`, of which those without an execution are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile

from jobtable.errors import JobtableError
from jobtable.objects import ObjectStore
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import Execution, ExecutionStatus, MachineType
from jobtable.workflows.asl.interpreter.strand import dump, write_instant
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.run import Json
from jobtable.workflows.asl.services.buckets import key_in_bucket
from jobtable.workflows.asl.verbs import ChildExecution

RESULT_WRITER_FAILED = "States.ResultWriterFailed"
_IN_MEMORY_BYTES = 8 * 1024 * 1024
_FILES = {
    ExecutionStatus.SUCCEEDED: "SUCCEEDED",
    ExecutionStatus.RUNNING: "PENDING",
    ExecutionStatus.PENDING_REDRIVE: "PENDING",
}
"""The files of executions by their status; those of all others are in FAILED."""


def write_results(objects: ObjectStore, writer: Json, results: list[Json], children: Iterable[ChildExecution]) -> Json:
    """Return what a distributed Map returns, after the files are durable if it has any."""
    config: Mapping[str, Json] = writer.get("WriterConfig") or {}
    resource = writer.get("Resource")
    transformation = config.get("Transformation", "COMPACT" if resource is None else "NONE")
    if transformation not in ("NONE", "COMPACT", "FLATTEN"):
        raise StateFault(RESULT_WRITER_FAILED, f"The Transformation {transformation} is not supported")
    if resource is None:
        if transformation == "NONE":
            return [_record(each) for each in children]
        return _flat(results) if transformation == "FLATTEN" else results
    if not str(resource).endswith(":s3:putObject"):
        raise StateFault(RESULT_WRITER_FAILED, f"The resource '{resource}' cannot be written; use s3:putObject")
    try:
        return _Export(objects, writer, str(transformation), config.get("OutputType", "JSON")).write(results, children)
    except (JobtableError, OSError) as error:
        raise StateFault(RESULT_WRITER_FAILED, str(error)) from error


class _Export:
    def __init__(self, objects: ObjectStore, writer: Json, transformation: str, output_type: str) -> None:
        if output_type not in ("JSON", "JSONL"):
            raise StateFault(RESULT_WRITER_FAILED, f"The OutputType {output_type} is not supported; use JSON or JSONL")
        where = writer.get("Parameters") or {}
        self._objects = objects
        bucket = where.get("Bucket")
        if not isinstance(bucket, str) or not bucket:
            raise StateFault(RESULT_WRITER_FAILED, "The field 'Bucket' is required but was missing")
        self._bucket = bucket
        self._map_run = str(writer.get("MapRunArn", ""))
        prefix = str(where.get("Prefix") or "").rstrip("/")
        self._folder = f"{prefix}/{self._map_run.rpartition(':')[2]}".removeprefix("/")
        self._transformation = transformation
        self._is_lines = output_type == "JSONL"

    def write(self, results: list[Json], children: Iterable[ChildExecution]) -> Json:
        """Write the files, the manifest last, and return where that is."""
        with ExitStack() as stack:
            spools = {
                name: stack.enter_context(SpooledTemporaryFile(_IN_MEMORY_BYTES))
                for name in ("FAILED", "PENDING", "SUCCEEDED")
            }
            for name, record in self._records(results, children):
                spool = spools[name]
                if not self._is_lines:
                    spool.write(b"," if spool.tell() else b"[")
                spool.write(dump(record).encode(errors="replace") + (b"\n" if self._is_lines else b""))
            files = {name: self._put(name, spool) for name, spool in spools.items()}
        key = f"{self._folder}/manifest.json"
        manifest = {"DestinationBucket": self._bucket, "MapRunArn": self._map_run, "ResultFiles": files}
        self._objects.put(key_in_bucket(self._bucket, key), dump(manifest).encode())
        return {"Bucket": self._bucket, "Key": key}

    def _records(self, results: list[Json], children: Iterable[ChildExecution]) -> Iterator[tuple[str, Json]]:
        is_whole = self._transformation == "NONE"
        for child in children:
            name = _FILES.get(child.record.status, "FAILED")
            if is_whole or name != "SUCCEEDED":
                yield name, _record(child)
        if not is_whole:
            yield from (
                ("SUCCEEDED", each) for each in (_flat(results) if self._transformation == "FLATTEN" else results)
            )

    def _put(self, name: str, spool: SpooledTemporaryFile[bytes]) -> list[dict[str, Json]]:
        """Store what was written for a file; return its entry in the manifest."""
        if not spool.tell():
            return []
        if not self._is_lines:
            spool.write(b"]")
        spool.seek(0)
        key = f"{self._folder}/{name}_0.{'jsonl' if self._is_lines else 'json'}"
        stored = self._objects.put(key_in_bucket(self._bucket, key), spool)
        return [{"Key": key, "Size": stored.size}]


def _record(child: ChildExecution) -> dict[str, Json]:
    """Return a child execution as Step Functions exports it."""
    record = child.record
    arns = Arns(record.region, record.account)
    is_express = record.type is MachineType.EXPRESS
    has_succeeded = record.status is ExecutionStatus.SUCCEEDED
    members = {
        "Cause": record.cause,
        "Error": record.error,
        "ExecutionArn": arns.express(record.machine, record.name, record.job_id)
        if is_express
        else arns.execution(record.machine, record.name),
        "Input": child.input,
        "InputDetails": {"Included": True},
        "Name": record.name,
        "Output": child.output,
        "OutputDetails": None if child.output is None else {"Included": True},
        "RedriveCount": record.redrive_count,
        "RedriveStatus": "NOT_REDRIVABLE" if has_succeeded or is_express else "REDRIVABLE_BY_MAP_RUN",
        "RedriveStatusReason": _reason(record),
        "StartDate": write_instant(record.started_at),
        "StateMachineArn": arns.machine(record.machine),
        "Status": record.status.value,
        "StopDate": None if record.stopped_at is None else write_instant(record.stopped_at),
    }
    return {name: value for name, value in members.items() if value is not None}


def _reason(record: Execution) -> str | None:
    if record.status is ExecutionStatus.SUCCEEDED:
        return "Execution is SUCCEEDED and cannot be redriven"
    return "Express executions cannot be redriven" if record.type is MachineType.EXPRESS else None


def _flat(results: list[Json]) -> list[Json]:
    """Return the results, with the members of each array in its place."""
    return [each for result in results for each in (result if isinstance(result, list) else [result])]
