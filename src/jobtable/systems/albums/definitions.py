"""Workflow definitions: steps that workers run, and steps that ask a person."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from jobtable.errors import DefinitionError, kind_and_text
from jobtable.system import current_path
from jobtable.systems.albums.entities import ValidationTask, WorkflowType

FAIL = "fail"
CONTINUE = "continue"
LONGEST_WAIT = timedelta(days=3650)
"""The longest time to wait for an answer; a date after the year 9999 could not be stored."""


@dataclass(frozen=True)
class Step:
    """A step that a worker runs: the task `module:function` gets the job's context and the `execution_id`.

    A step may run again after a crash, so running it twice must have the same effect as running it once.
    """

    name: str
    task: str


@dataclass(frozen=True)
class HumanStep:
    """A step that asks a person to check the albums. No worker is occupied while the execution waits."""

    name: str
    expires_in: timedelta
    on_timeout: str = FAIL
    """What happens if nobody answers: "fail", "continue" with the next step, or the name of a later step."""
    deliver: str | None = None
    """`module:function` that sends the task and its token to the person who answers.

    It is called once, or again with a new token if the process crashes during the call.
    """


AnyStep: TypeAlias = Step | HumanStep


@dataclass(frozen=True)
class CostRates:
    """Rates for the estimated cost of an execution."""

    per_step: float = 0.0
    per_second: float = 0.0

    def of(self, seconds: float) -> float:
        """Return the cost of a step that ran for this long."""
        return self.per_step + seconds * self.per_second


@dataclass(frozen=True)
class WorkflowDefinition:
    """The steps of a workflow type, in order.

    With step functions each step is a job of its own. With durable functions one job runs all steps up to the next
    question to a person, and resumes after the last finished step.
    """

    workflow_type: WorkflowType
    steps: tuple[AnyStep, ...]
    rates: CostRates = CostRates()
    max_attempts: int = 3
    """Maximum number of attempts of each job."""

    def __post_init__(self) -> None:
        names = [step.name for step in self.steps]
        if not names or len(set(names)) != len(names) or not all(names):
            raise DefinitionError(f"a workflow needs steps with unique names, not {names}")
        if not isinstance(self.steps[0], Step):
            raise DefinitionError(f"{names[0]}: the first step of a workflow must be one that a worker runs")
        if self.max_attempts < 1:
            raise DefinitionError(f"max_attempts must be at least 1, not {self.max_attempts}")
        for position, step in enumerate(self.steps):
            if not isinstance(step, HumanStep):
                continue
            if step.on_timeout not in (FAIL, CONTINUE, *names[position + 1 :]):
                raise DefinitionError(f"{step.name}: on_timeout must be {FAIL!r}, {CONTINUE!r} or a later step")
            if not timedelta(0) < step.expires_in <= LONGEST_WAIT:
                raise DefinitionError(
                    f"{step.name}: expires_in must be positive and at most {LONGEST_WAIT.days} days, "
                    f"not {step.expires_in}"
                )

    def step(self, name: str | None) -> AnyStep:
        """Return the step with a name."""
        return self.steps[self.position(name)]

    def position(self, name: str | None) -> int:
        """Return the position of a step."""
        for position, step in enumerate(self.steps):
            if step.name == name:
                return position
        raise DefinitionError(f"the definition has no step {name!r}; it was changed while an execution was at it")

    def after(self, name: str) -> AnyStep | None:
        """Return the step after another one; None after the last."""
        position = self.position(name) + 1
        return self.steps[position] if position < len(self.steps) else None

    def after_timeout(self, step: HumanStep) -> AnyStep | None:
        """Return the step after an unanswered one whose on_timeout is not "fail"."""
        return self.after(step.name) if step.on_timeout == CONTINUE else self.step(step.on_timeout)

    def segment(self, first: str) -> list[Step]:
        """Return the steps of the job that starts with this one."""
        segment: list[Step] = []
        for step in self.steps[self.position(first) :]:
            if not isinstance(step, Step):
                break
            segment.append(step)
            if self.workflow_type is WorkflowType.STEP_FUNCTIONS:
                break
        return segment


def load_definition(path: str) -> WorkflowDefinition:
    """Return the definition that `module:NAME` names, or raise DefinitionError."""
    found = _load(path, "workflow definition")
    if not isinstance(found, WorkflowDefinition):
        raise DefinitionError(f"{path} is not a WorkflowDefinition")
    return found


def load_sender(path: str) -> Callable[[ValidationTask, str], object]:
    """Return the function `module:NAME` that sends a task and its token, or raise DefinitionError."""
    found: Callable[[ValidationTask, str], object] = _load(path, "function that sends a token")
    return found


def _load(path: str, what: str) -> Any:
    module_name, _, name = current_path(path).partition(":")
    try:
        return getattr(importlib.import_module(module_name), name)
    except (Exception, SystemExit) as error:  # anything that importing a module may raise
        raise DefinitionError(f"cannot load the {what} {path!r} as module:NAME: {kind_and_text(error)}") from error
