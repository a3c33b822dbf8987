"""Where the logs, reports and files of an execution lie in object storage: the paths, and back from a path."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from jobtable.errors import ValueRefusedError
from jobtable.objects import key_parts, object_key
from jobtable.systems.journeys.parts import Buckets

ROOT = "journeys"
"""The first part of every key of a journey's objects."""
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
        """What the keys of all objects of a kind begin with."""
        return object_key(ROOT, self.journey_id, "stages", self.stage_id, "executions", self.job_id, kind.value)

    def log(self, step_id: str, run: int | None = None) -> str:
        """The key of a step's full log, as a run of the execution has stored it."""
        return f"{self.prefix(ObjectKind.LOG)}/{object_key(*_folder_of(run), f'{step_id}.json')}"

    def report(self, name: str, run: int | None = None) -> str:
        """The key of a report, as a run has stored it; the report of a step has the step's name."""
        return f"{self.prefix(ObjectKind.REPORT)}/{object_key(*_folder_of(run), f'{name}.json')}"

    def file(self, step_id: str, *name: str) -> str:
        """The key of a file that a step makes."""
        return f"{self.prefix(ObjectKind.FILE)}/{object_key(step_id, *name)}"


def _folder_of(run: int | None) -> tuple[str, ...]:
    """Each run after the first has a folder: a worker that was taken for dead replaces nothing that is not its own."""
    return () if run is None else (f"run-{run}",)


@dataclass(frozen=True)
class ExecutionObject:
    """What the key of an object says about it."""

    place: ExecutionFolder
    kind: ObjectKind
    rest: tuple[str, ...]
    """What follows the kind: `step.json`, in the folder of a later run, or the step and the name of a file."""


def journey_prefix(journey_id: str) -> str:
    """What the keys of all objects of a journey begin with."""
    return object_key(ROOT, journey_id)


def parse_key(key: str) -> ExecutionObject | None:
    """What an object is, or None for a key that no execution makes."""
    match key_parts(key):
        case (root, journey_id, "stages", stage_id, "executions", job_id, kind, *rest) if root == ROOT and rest:
            if kind in set(ObjectKind):
                return ExecutionObject(ExecutionFolder(journey_id, stage_id, job_id), ObjectKind(kind), tuple(rest))
    return None


def location(bucket: str, key: str) -> str:
    """An object's place as records name it: `s3://BUCKET/KEY`."""
    return f"s3://{bucket}/{key}"


def key_of(s3_location: str) -> str:
    """The object's key in a location."""
    scheme, _, rest = s3_location.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket or not key:
        raise ValueRefusedError(f"{s3_location!r} is no location of an object: s3://BUCKET/KEY")
    return key
