"""The object keys of an execution's logs, reports and files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from jobtable.errors import ValueRefusedError
from jobtable.objects import key_parts, object_key
from jobtable.systems.journeys.parts import Buckets

ROOT = "journeys"
"""The first part of every object key of a journey."""
DEFAULT_BUCKETS = Buckets(logs_bucket="transformation-journey-logs", reports_bucket="transformation-journey-reports")


class ObjectKind(StrEnum):
    """What an object of an execution is."""

    LOG = "logs"
    REPORT = "reports"
    FILE = "files"


@dataclass(frozen=True)
class ExecutionFolder:
    """The folder of an execution."""

    journey_id: str
    stage_id: str
    job_id: str

    def prefix(self, kind: ObjectKind) -> str:
        """Return the prefix of the keys of one kind."""
        return object_key(ROOT, self.journey_id, "stages", self.stage_id, "executions", self.job_id, kind.value)

    def log(self, step_id: str, run: int | None = None) -> str:
        """Return the key of a step's full log as a run of the execution stored it."""
        return f"{self.prefix(ObjectKind.LOG)}/{object_key(*_folder_of(run), f'{step_id}.json')}"

    def report(self, name: str, run: int | None = None) -> str:
        """Return the key of a report as a run stored it; the report of a step has the step's name."""
        return f"{self.prefix(ObjectKind.REPORT)}/{object_key(*_folder_of(run), f'{name}.json')}"

    def file(self, step_id: str, *name: str) -> str:
        """Return the key of a file that a step wrote."""
        return f"{self.prefix(ObjectKind.FILE)}/{object_key(step_id, *name)}"


def _folder_of(run: int | None) -> tuple[str, ...]:
    """Each run after the first has its own folder, so a worker presumed dead overwrites nothing of its successor."""
    return () if run is None else (f"run-{run}",)


@dataclass(frozen=True)
class ExecutionObject:
    """What an object key says about its object."""

    folder: ExecutionFolder
    kind: ObjectKind
    rest: tuple[str, ...]
    """The parts after the kind: `step.json`, in the folder of a later run, or the step and the name of a file."""


def journey_prefix(journey_id: str) -> str:
    """Return the prefix of all object keys of a journey."""
    return object_key(ROOT, journey_id)


def parse_key(key: str) -> ExecutionObject | None:
    """Read an object key, or return None if no execution makes such keys."""
    match key_parts(key):
        case (root, journey_id, "stages", stage_id, "executions", job_id, kind, *rest) if root == ROOT and rest:
            if kind in set(ObjectKind):
                return ExecutionObject(ExecutionFolder(journey_id, stage_id, job_id), ObjectKind(kind), tuple(rest))
    return None


def location(bucket: str, key: str) -> str:
    """Return the location of an object as records name it: `s3://BUCKET/KEY`."""
    return f"s3://{bucket}/{key}"


def key_of(s3_location: str) -> str:
    """Return the object key of a location."""
    scheme, _, rest = s3_location.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket or not key:
        raise ValueRefusedError(f"{s3_location!r} must be a location of an object, as in s3://BUCKET/KEY")
    return key
