"""Whatever people and crashes do to a journey, in any order: its sums are right, and it can be brought to its end."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.jobs.engines import DisturbedBackend
from tests.systems.journeys.stages import Scripted, die, fail, script
from tests.systems.journeys.worlds import STEPS, world_on

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConflictError
from jobtable.store import Store
from jobtable.systems.journeys.entities import JobExecution
from jobtable.systems.journeys.parts import JobExecutionStatus, JourneyStatus, StageStatus
from jobtable.systems.journeys.stage import Stage

VERBS = st.sampled_from(["run", "pause", "resume", "cancel", "retry"])


def save(stage: Stage) -> None:
    """A step that saves its position."""
    stage.log_warning("saving")
    stage.save(len(Scripted.ran), percent=50)


class JourneyMachine(RuleBasedStateMachine):
    """One journey, with workers that may die at any step."""

    def __init__(self) -> None:
        super().__init__()
        self.backend = DisturbedBackend(EmbeddedBackend(None))
        self.store = Store(self.backend)
        self.world = world_on(self.store)
        self.verbs: dict[str, Any] = {
            "run": self.world.runner.run,
            "pause": self.world.runner.pause,
            "resume": self.world.runner.resume,
            "cancel": self.world.runner.cancel,
            "retry": self.world.runner.retry,
        }

    def teardown(self) -> None:
        script()
        self.backend.disturb(None)
        self.finish()
        self.store.close()

    def act(self, verb: str) -> None:
        with contextlib.suppress(ConflictError):
            self.verbs[verb]("J1")

    @rule(verb=VERBS)
    def someone_acts(self, verb: str) -> None:
        self.act(verb)

    @rule(verb=VERBS, writes=st.integers(0, 6))
    def someone_acts_between_what_others_read_and_write(self, verb: str, writes: int) -> None:
        self.backend.disturb(lambda: self.act(verb), writes=writes)

    @rule()
    def the_second_stage_is_skipped(self) -> None:
        with contextlib.suppress(ConflictError):
            self.world.runner.skip("J1", "two")

    @rule(stage=st.sampled_from(["one", "two"]), step=st.sampled_from(STEPS), what=st.sampled_from([die, fail, save]))
    def a_step_is_to_go_so(self, stage: str, step: str, what: Any) -> None:
        script(**{f"{stage}__{step}": what})

    @rule(
        stage=st.sampled_from(["one", "two"]),
        step=st.sampled_from(STEPS),
        verbs=st.lists(st.sampled_from(["pause", "resume", "cancel", "retry"]), min_size=1, max_size=3),
    )
    def someone_acts_while_a_step_runs(self, stage: str, step: str, verbs: list[str]) -> None:
        def act(running: Stage) -> None:
            for verb in verbs:
                self.act(verb)
            running.save("here")

        script(**{f"{stage}__{step}": act})

    @precondition(lambda self: self.world.journey().status is JourneyStatus.RUNNING)
    @rule(jobs=st.integers(1, 4))
    def workers_work(self, jobs: int) -> None:
        before = _finished(self.executions())
        Scripted.ran = []
        self.world.work(jobs)
        open_stage = {execution.stage_id: execution.job_id for execution in self.executions()}
        again = {(job_id, step) for job_id, step in before if f"{_stage_of(open_stage, job_id)}.{step}" in Scripted.ran}
        assert not again, "a finished step ran again within its execution"

    @invariant()
    def the_sums_are_right(self) -> None:
        self.world.check_sums()

    @invariant()
    def numbers_come_from_the_counter(self) -> None:
        counts = self.world.journey().execution_counts or {}
        for stage_id in ("one", "two"):
            numbers = [execution.execution_number for execution in self.world.executions(stage_id)]
            assert numbers == list(range(1, counts[stage_id] + 1))

    def executions(self) -> list[JobExecution]:
        return list(self.world.verbs.list_executions("J1"))

    def finish(self) -> None:
        """Do what a person would do to get the journey done."""
        following = {
            JourneyStatus.PENDING: "run",
            JourneyStatus.RUNNING: "run",
            JourneyStatus.PAUSED: "resume",
            JourneyStatus.FAILED: "retry",
            JourneyStatus.CANCELLED: "retry",
        }
        for _ in range(10):
            status = self.world.journey().status
            if status is JourneyStatus.COMPLETED:
                break
            self.act(following[status])
            self.world.work()
        assert self.world.journey().status is JourneyStatus.COMPLETED
        stages = {stage.status for stage in self.world.verbs.list_stages("J1")}
        assert stages <= {StageStatus.COMPLETED, StageStatus.SKIPPED}
        self.world.check_sums()


def _finished(executions: list[JobExecution]) -> set[tuple[str, str]]:
    return {
        (execution.job_id, run.step_id)
        for execution in executions
        for run in execution.steps
        if run.status is JobExecutionStatus.COMPLETED and execution.status is JobExecutionStatus.RUNNING
    }


def _stage_of(current: dict[str, str], job_id: str) -> str | None:
    """The stage whose latest execution this is."""
    return next((stage_id for stage_id, latest in current.items() if latest == job_id), None)


TestJourneyMachine = JourneyMachine.TestCase
TestJourneyMachine.settings = settings(max_examples=25, stateful_step_count=15)
