"""Workflows of the tests: small steps, and questions that nobody answers."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from typing import TYPE_CHECKING

from jobtable.jobs.tasks import task
from jobtable.systems.albums.definitions import CONTINUE, CostRates, HumanStep, Step, WorkflowDefinition
from jobtable.systems.albums.entities import ValidationTask, WorkflowType
from jobtable.systems.albums.example import STEP_FUNCTIONS

if TYPE_CHECKING:
    from jobtable.jobs.report.context import JobContext

DELIVERED: list[tuple[ValidationTask, str]] = []
RAN: list[str] = []
BROKEN: set[str] = set()
STEP_SECONDS = [2.0]


def forget() -> None:
    """Begin anew: what workflows note, in whichever test, stays for as long as its process."""
    for noted in (DELIVERED, RAN, BROKEN):
        noted.clear()


def deliver(asked: ValidationTask, token: str) -> None:
    DELIVERED.append((asked, token))


def fail_to_deliver(asked: ValidationTask, token: str) -> None:
    raise RuntimeError("the mail server is down")


@task
def one(job: JobContext, execution_id: str) -> int:
    return _run("one", job)


@task
def two(job: JobContext, execution_id: str) -> int:
    return _run("two", job)


@task
def three(job: JobContext, execution_id: str) -> int:
    return _run("three", job)


def _run(name: str, job: JobContext) -> int:
    RAN.append(name)
    if name in BROKEN:
        raise RuntimeError(f"{name} is broken")
    job.jobs.clock.sleep(STEP_SECONDS[0])
    return len(RAN)


@task
def die(job: JobContext, execution_id: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _steps(on_timeout: str = "fail") -> tuple[Step | HumanStep, ...]:
    return (
        Step("one", f"{__name__}:one"),
        Step("two", f"{__name__}:two"),
        HumanStep("ask", timedelta(minutes=5), on_timeout, deliver=f"{__name__}:deliver"),
        Step("three", f"{__name__}:three"),
    )


RATES = CostRates(per_step=1.0, per_second=0.25)
STEP = WorkflowDefinition(WorkflowType.STEP_FUNCTIONS, _steps(), RATES)
DURABLE = WorkflowDefinition(WorkflowType.DURABLE_FUNCTIONS, _steps(), RATES)
STEP_ONCE = WorkflowDefinition(WorkflowType.STEP_FUNCTIONS, _steps(), RATES, max_attempts=1)
DURABLE_ONCE = WorkflowDefinition(WorkflowType.DURABLE_FUNCTIONS, _steps(), RATES, max_attempts=1)
STEP_CONTINUES = WorkflowDefinition(WorkflowType.STEP_FUNCTIONS, _steps(CONTINUE), RATES)
DURABLE_SKIPS = WorkflowDefinition(WorkflowType.DURABLE_FUNCTIONS, _steps("three"), RATES)
TWO_QUESTIONS = WorkflowDefinition(
    WorkflowType.STEP_FUNCTIONS,
    (
        *_steps()[:1],
        HumanStep("ask", timedelta(minutes=5), CONTINUE, deliver=f"{__name__}:deliver"),
        HumanStep("ask-again", timedelta(minutes=5), deliver=f"{__name__}:deliver"),
    ),
)
UNDELIVERED = WorkflowDefinition(
    WorkflowType.STEP_FUNCTIONS,
    (
        *_steps()[:1],
        HumanStep("ask", timedelta(minutes=5), deliver=f"{__name__}:deliver"),
        HumanStep("ask-again", timedelta(minutes=5), deliver=f"{__name__}:fail_to_deliver"),
    ),
)
FATAL = WorkflowDefinition(WorkflowType.STEP_FUNCTIONS, (Step("die", f"{__name__}:die"),), max_attempts=1)
EXAMPLE = WorkflowDefinition(
    WorkflowType.STEP_FUNCTIONS,
    tuple(
        HumanStep(step.name, step.expires_in, deliver=f"{__name__}:deliver") if isinstance(step, HumanStep) else step
        for step in STEP_FUNCTIONS.steps
    ),
)
