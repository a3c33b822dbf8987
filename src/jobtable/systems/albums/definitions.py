"""What an execution goes through: steps that workers run, and steps at which a person is asked."""

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
"""The longest time to wait for an answer: one beyond the end of the calendar could not be stored."""


@dataclass(frozen=True)
class Step:
    """A step that a worker runs: the task `module:function` gets the job's context and the `execution_id`.

    A step may run again after a crash, so running it twice must leave the same behind as running it once.
    """

    name: str
    task: str


@dataclass(frozen=True)
class HumanStep:
    """A step at which a person is asked whether the albums are right. No worker is held while the execution waits."""

    name: str
    expires_in: timedelta
    on_timeout: str = FAIL
    """What follows when nobody answers: "fail", "continue" with the next step, or the name of a later step."""
    deliver: str | None = None
    """`module:function` that gets the task and its token, to send them to whoever answers.

    It gets them once; but if the process dies over it, it gets them again, with a new token in place of the first.
    """


AnyStep: TypeAlias = Step | HumanStep


@dataclass(frozen=True)
class CostRates:
    """What an execution is estimated to cost."""

    per_step: float = 0.0
    per_second: float = 0.0

    def of(self, seconds: float) -> float:
        """The cost of one step that ran that long."""
        return self.per_step + seconds * self.per_second


@dataclass(frozen=True)
class WorkflowDefinition:
    """The steps of a workflow type, in order.

    As step functions each step is a job of its own. As durable functions one job runs all steps up to the next
    question to a person, and resumes behind the last finished one.
    """

    workflow_type: WorkflowType
    steps: tuple[AnyStep, ...]
    rates: CostRates = CostRates()
    max_attempts: int = 3
    """How often a job of the execution is tried."""

    def __post_init__(self) -> None:
        names = [step.name for step in self.steps]
        if not names or len(set(names)) != len(names) or not all(names):
            raise DefinitionError(f"a workflow has steps, each with a name of its own: {names}")
        if not isinstance(self.steps[0], Step):
            raise DefinitionError(f"{names[0]}: a workflow begins with a step that a worker runs")
        if self.max_attempts < 1:
            raise DefinitionError(f"max_attempts is {self.max_attempts}: a job is tried at least once")
        for position, step in enumerate(self.steps):
            if not isinstance(step, HumanStep):
                continue
            if step.on_timeout not in (FAIL, CONTINUE, *names[position + 1 :]):
                raise DefinitionError(f"{step.name}: on_timeout names a later step, {FAIL!r} or {CONTINUE!r}")
            if not timedelta(0) < step.expires_in <= LONGEST_WAIT:
                raise DefinitionError(
                    f"{step.name}: expires_in is {step.expires_in}: give a time above 0, of {LONGEST_WAIT.days} days "
                    "at most"
                )

    def step(self, name: str | None) -> AnyStep:
        """The step with a name."""
        return self.steps[self.position(name)]

    def position(self, name: str | None) -> int:
        """The place of a step."""
        for position, step in enumerate(self.steps):
            if step.name == name:
                return position
        raise DefinitionError(f"the definition has no step {name!r}: it was changed while an execution was at it")

    def after(self, name: str) -> AnyStep | None:
        """The step behind another one; None behind the last."""
        position = self.position(name) + 1
        return self.steps[position] if position < len(self.steps) else None

    def after_timeout(self, step: HumanStep) -> AnyStep | None:
        """Where an execution goes on that got no answer; only where on_timeout is not "fail"."""
        return self.after(step.name) if step.on_timeout == CONTINUE else self.step(step.on_timeout)

    def segment(self, first: str) -> list[Step]:
        """The steps that the job which begins with this one runs."""
        segment: list[Step] = []
        for step in self.steps[self.position(first) :]:
            if not isinstance(step, Step):
                break
            segment.append(step)
            if self.workflow_type is WorkflowType.STEP_FUNCTIONS:
                break
        return segment


def load_definition(path: str) -> WorkflowDefinition:
    """The definition that `module:NAME` names, or DefinitionError."""
    found = _load(path, "workflow definition")
    if not isinstance(found, WorkflowDefinition):
        raise DefinitionError(f"{path} is no WorkflowDefinition")
    return found


def load_sender(path: str) -> Callable[[ValidationTask, str], object]:
    """The function `module:NAME` that sends a task and its token to whoever answers, or DefinitionError."""
    found: Callable[[ValidationTask, str], object] = _load(path, "function to send a token with")
    return found


def _load(path: str, what: str) -> Any:
    module_name, _, name = current_path(path).partition(":")
    try:
        return getattr(importlib.import_module(module_name), name)
    except (Exception, SystemExit) as error:  # whatever a module raises while it is imported
        told = kind_and_text(error)
        raise DefinitionError(f"there is no {what} {path!r}: write module:NAME ({told})") from error
