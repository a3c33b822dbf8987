"""A parsed definition: the states of a machine and of the machines inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from jobtable.errors import JobtableError


class Language(StrEnum):
    """The query languages of a state."""

    JSONPATH = "JSONPath"
    JSONATA = "JSONata"


class StateType(StrEnum):
    """The types of states."""

    PASS = "Pass"  # noqa: S105 - a type, no password
    TASK = "Task"
    CHOICE = "Choice"
    WAIT = "Wait"
    SUCCEED = "Succeed"
    FAIL = "Fail"
    PARALLEL = "Parallel"
    MAP = "Map"


@dataclass(frozen=True)
class State:
    """One state. `fields` are the members of its definition as they were written."""

    name: str
    type: StateType
    language: Language
    fields: Mapping[str, Any]
    path: str
    """Its place in the definition, as in `/States/Charge`."""
    branches: tuple[Machine, ...] = ()
    """The branches of a Parallel state, or the one item processor of a Map state."""

    @property
    def next(self) -> str | None:
        """The state after it; None at an end."""
        return self.fields.get("Next")


@dataclass(frozen=True)
class Machine:
    """States and where they start: a whole definition, a branch, or an item processor."""

    start_at: str
    states: Mapping[str, State]
    language: Language
    timeout_seconds: int | None = None
    comment: str = ""
    processor_config: Mapping[str, Any] = field(default_factory=dict)
    """The ProcessorConfig of an item processor: `Mode` INLINE or DISTRIBUTED, `ExecutionType`."""


@dataclass(frozen=True)
class Diagnostic:
    """One fault of a definition, in the words of `ValidateStateMachineDefinition`."""

    severity: str
    """ERROR or WARNING."""
    code: str
    message: str
    location: str
    """The path of the member, as in `/States/Charge/Next`."""


class InvalidDefinitionError(JobtableError):
    """A definition has faults; carries all of them."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        faults = (f"{each.message} at {each.location}" if each.location else each.message for each in diagnostics)
        super().__init__("; ".join(faults))
        self.diagnostics = diagnostics


class StateFault(Exception):
    """A state failed with an error name of the States Language, such as States.TaskFailed."""

    def __init__(self, error: str, cause: str = "", location: str = "") -> None:
        super().__init__(f"{error}: {cause}" if cause else error)
        self.error = error
        self.cause = cause
        self.location = location
        """Of States.QueryEvaluationError: the expression's place, as in `Output/total` or `Choices[1]/Condition`."""
