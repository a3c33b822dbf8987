"""Stages to test with: what each step does comes with the journey's parameters."""

from __future__ import annotations

from typing import Any, ClassVar

from jobtable.errors import Throttled
from jobtable.systems.journeys.stage import Stage


class Killed(BaseException):
    """The process died here."""


class Scripted(Stage):
    """Each step notes that it ran, and then does what `script` says."""

    ran: ClassVar[list[str]] = []
    script: ClassVar[dict[str, Any]] = {}

    def first(self) -> None:
        self._play("first")

    def second(self) -> None:
        self._play("second")

    def third(self) -> None:
        self._play("third")

    def _play(self, step: str) -> None:
        Scripted.ran.append(f"{self.definition.stage_id}.{step}")
        act = Scripted.script.get(f"{self.definition.stage_id}.{step}")
        if act is not None:
            act(self)


def script(**acts: Any) -> None:
    """Say what steps do (`one__second=...` for the step second of the stage one), and forget what ran."""
    Scripted.ran = []
    Scripted.script = {name.replace("__", "."): act for name, act in acts.items()}


def fail(stage: Stage) -> None:
    """What a step does that fails."""
    stage.log_info("about to fail")
    raise RuntimeError("it does not work")


def die(stage: Stage) -> None:
    """What a step does whose process is killed."""
    stage.log_info("about to die")
    raise Killed


def fail_passingly(stage: Stage) -> None:
    """What a step does that may work when it is tried again."""
    raise Throttled("too fast")
