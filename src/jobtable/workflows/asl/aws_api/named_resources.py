"""The ARNs and names in requests."""

from __future__ import annotations

from dataclasses import dataclass

from jobtable.workflows.asl.arns import Arns, StatesArn, find_states_arn, has_refused_characters
from jobtable.workflows.asl.aws_api.refusals import invalid, invalid_arn, invalid_name


def check_name(name: str) -> str:
    """Return the name of a machine, an execution or an activity, or raise OperationRefused."""
    if has_refused_characters(name):
        raise invalid_name(name)
    return name


@dataclass(frozen=True)
class MachineArn:
    """The ARN of a machine, of one of its versions or aliases, or of a distributed Map in it."""

    text: str
    name: str
    qualifier: str | None
    """The number of a version, or the name of an alias."""
    label: str | None
    """Of a distributed Map."""
    arns: Arns

    @property
    def version(self) -> int | None:
        """The version that it names."""
        is_version = self.qualifier is not None and self.qualifier.isascii() and self.qualifier.isdecimal()
        return int(self.qualifier or 0) if is_version else None


@dataclass(frozen=True)
class ExecutionArn:
    """The ARN of an execution."""

    text: str
    machine: str
    """Of a distributed Map's children `MACHINE/LABEL`."""
    name: str
    is_express: bool


@dataclass(frozen=True)
class MapRunArn:
    """The ARN of a run of a distributed Map."""

    text: str
    machine: str
    """`MACHINE/LABEL`, under which the children run."""
    run_id: str


def read_machine_arn(text: str, *, may_be_labeled: bool = False) -> MachineArn:
    """Return the parts of a machine's ARN, or raise OperationRefused."""
    found = _read(text, "stateMachine", parts=(1, 2))
    name, _, label = found.name.partition("/")
    if label and not may_be_labeled:
        raise invalid(
            "This operation does not support qualified state machine ARNs that refer to a Distributed Map state",
            "API_DOES_NOT_SUPPORT_LABELED_ARNS",
        )
    qualifier = found.parts[1] if len(found.parts) == 2 else None
    return MachineArn(text, name, qualifier, label or None, found.arns)


def read_execution_arn(text: str) -> ExecutionArn:
    """Return the parts of an execution's ARN, or raise OperationRefused."""
    found = _read(text, "execution", "express", parts=(2, 3))
    return ExecutionArn(text, found.parts[0], found.parts[1], found.kind == "express")


def read_activity_arn(text: str) -> str:
    """Return the name of an activity from its ARN, or raise OperationRefused."""
    return _read(text, "activity", parts=(1,)).name


def read_map_run_arn(text: str) -> MapRunArn:
    """Return the parts of a map run's ARN, or raise OperationRefused."""
    found = _read(text, "mapRun", parts=(2,))
    return MapRunArn(text, found.parts[0], found.parts[1])


def _read(text: str, *kinds: str, parts: tuple[int, ...]) -> StatesArn:
    if not text.startswith("arn:"):
        raise invalid_arn(f"Invalid ARN prefix: {text}")
    found = find_states_arn(text)
    if found is None:
        raise invalid_arn(text)
    if found.kind not in kinds:
        raise invalid_arn(f"Resource type not valid in this context: {found.kind}")
    if len(found.parts) not in parts or not all(found.parts):
        raise invalid_arn(text)
    return found
