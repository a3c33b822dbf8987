"""Journeys on a job engine to test with, and a loop that runs their jobs in this process, as a worker would."""

from __future__ import annotations

from dataclasses import dataclass

from tests.running import NEVER
from tests.systems.journeys.access_patterns import START, journey
from tests.systems.journeys.stages import Killed, Scripted, script

from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import main
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.objects import ObjectStore
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.systems.journeys.entities import JobExecution, Journey, SecondBrainRule, StageDefinition, journeys
from jobtable.systems.journeys.execution_records import ExecutionRecords
from jobtable.systems.journeys.journey_template import path_of
from jobtable.systems.journeys.parts import StepDefinition
from jobtable.systems.journeys.runner import QUEUE, JourneyRunner
from jobtable.systems.journeys.running import aggregates
from jobtable.systems.journeys.service import Journeys

STEPS = ("first", "second", "third")


def stage(journey_id: str, order: int, stage_id: str, *, can_skip: bool = False) -> StageDefinition:
    """A stage that Scripted runs."""
    return StageDefinition(
        journey_id=journey_id,
        stage_id=stage_id,
        name=stage_id.capitalize(),
        order=order,
        can_skip=can_skip,
        estimated_duration="1m",
        implementation=path_of(Scripted),
        steps=[StepDefinition(step_id=step, name=step, estimated_duration="1m") for step in STEPS],
        created_at=START,
        updated_at=START,
    )


@dataclass(frozen=True)
class World:
    """An engine with a journey J1 of the stages one and two."""

    jobs: Jobs
    runner: JourneyRunner
    verbs: Journeys
    records: ExecutionRecords

    def work(self, most: int = 100) -> int:
        """Run the jobs that are ready; gives how many runs there were. A killed one is left as a dead worker does."""
        ran = 0
        while ran < most and (leases := self.jobs.claim(QUEUE, limit=1, instance_id="test", lease_seconds=60)):
            ran += 1
            try:
                self._run(leases[0])
            except Killed:
                self.jobs.release(leases[0], "its worker died")
        return ran

    def _run(self, lease: Lease) -> None:
        made: list[JobContext] = []

        def context() -> JobContext:
            made.append(JobContext(self.jobs, lease, flush_seconds=NEVER))
            return made[0]

        report = run_task(lease.job.definition, StopFlag(), context)
        for each in made:
            each.close()
        if report.message is not None and report.message.startswith("Killed"):
            raise Killed
        self.jobs.finish(lease, report.outcome())

    def journey(self) -> Journey:
        """The journey as it is now."""
        return self.verbs.get_journey("J1")

    def executions(self, stage_id: str) -> list[JobExecution]:
        """The executions of a stage, by number."""
        return list(self.verbs.list_stage_executions(self.verbs.get_stage("J1", stage_id)))

    def check_sums(self) -> None:
        """The sums of the journey equal a recount."""
        executions = self.jobs.store.query(JobExecution.key(journey_id="J1"))
        rules = self.jobs.store.query(SecondBrainRule.key(journey_id="J1"))
        assert self.journey().aggregates == aggregates.recount(executions, rules)


def world_on(store: Store, objects: ObjectStore | None = None) -> World:
    """A world on a store, with the tables and the journey in it."""
    store.tables.create(main, journeys)
    jobs = Jobs(store, objects or MemoryObjectStore(store.clock))
    verbs = Journeys(store, clock=store.clock)
    verbs.create_journey(journey("J1"), [stage("J1", 1, "one"), stage("J1", 2, "two", can_skip=True)])
    script()
    return World(jobs, JourneyRunner(jobs), verbs, ExecutionRecords(store, jobs.objects, store.clock))
