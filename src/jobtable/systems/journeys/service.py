"""The verbs of journeys: create a journey, and find what belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import ConditionFailedError, NotFoundError, TransactionFailedError, missing
from jobtable.jobs.engine import Jobs
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern
from jobtable.systems.journeys import creation
from jobtable.systems.journeys.default_stages import default_stages
from jobtable.systems.journeys.entities import (
    JobExecution,
    JobReport,
    Journey,
    LogEntry,
    SecondBrainRule,
    StageDefinition,
)
from jobtable.systems.journeys.example.rule_book import example_rules
from jobtable.systems.journeys.journey_template import DEFAULT_TEMPLATE, JourneyTemplate
from jobtable.systems.journeys.parts import Buckets, JourneyStatus, Priority, RuleStatus, is_running
from jobtable.systems.journeys.rules import change_rule_status
from jobtable.systems.journeys.running.flow import checked_number, executions_of, find_latest_execution


@dataclass(frozen=True)
class CompleteJourney:
    """A journey with its stages in order, its rules by stage and priority, and its latest executions."""

    journey: Journey
    stages: list[StageDefinition]
    rules: list[SecondBrainRule]
    recent_executions: list[JobExecution]


class Journeys:
    """Journeys and everything under them, in one store."""

    def __init__(self, store: Store, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._store = store
        self._clock = clock

    @classmethod
    def of(cls, jobs: Jobs) -> Self:
        return cls(jobs.store, clock=jobs.clock)

    def create_journey(
        self, journey: Journey, stages: Sequence[StageDefinition] | None = None, rules: Sequence[SecondBrainRule] = ()
    ) -> None:
        """Store a new journey with its rules and stages (by default the six), all or nothing; see `creation.create`."""
        if stages is None:
            stages = default_stages(journey.journey_id, journey.created_at)
        creation.create(self._store, journey, stages, rules)

    def create_from_template(
        self, journey: Journey, template: JourneyTemplate = DEFAULT_TEMPLATE, *, with_example_rules: bool = False
    ) -> None:
        """Store a new journey with the stages of a template; DefinitionError if a class is missing or lacks a step."""
        stages = template.stages(journey.journey_id, journey.created_at)
        rules = example_rules(journey.journey_id, journey.created_by, journey.created_at) if with_example_rules else []
        self.create_journey(journey, stages, rules)

    @access_pattern("Get specific journey by ID")
    def get_journey(self, journey_id: str) -> Journey:
        """Return a journey, or raise NotFoundError."""
        return self._store.get(Journey.key(journey_id=journey_id))

    @access_pattern("Pattern 2: List All Journeys", index="GSI1")
    def list_journeys(self, status: JourneyStatus | None = None, *, newest_first: bool = False) -> Query[Journey]:
        """Yield all journeys by creation, or those with a status; a status is a filter, so all are read."""
        has_status = is_running(Journey.status) if status is JourneyStatus.RUNNING else Journey.status == status
        where = None if status is None else has_status
        return self._store.query(Journey.by_creation(), where=where, newest_first=newest_first)

    @access_pattern("Pattern 1: Get Complete Journey Information")
    def get_complete_journey(
        self, journey_id: str, *, recent_executions: int = 20, consistent: bool = False
    ) -> CompleteJourney:
        """Return a journey with its stages, its rules and its latest executions, last stage first.

        Without `consistent` it costs half, and may be a moment old.
        """
        journey = self._store.get(Journey.key(journey_id=journey_id), consistent=consistent)
        # Rules and stages are neighbours in the partition: one query reads both.
        under = self._store.collection(
            SecondBrainRule.key(journey_id=journey_id),
            until=StageDefinition.key(journey_id=journey_id),
            consistent=consistent,
        )
        stages, rules = [], []
        for item in under:
            if isinstance(item, StageDefinition):
                stages.append(item)
            elif isinstance(item, SecondBrainRule):
                rules.append(item)
        order = {stage.stage_id: stage.order for stage in stages}
        rules.sort(key=lambda rule: (order.get(rule.stage_id, len(order) + 1), rule.stage_id, *_rank(rule)))
        executions: list[JobExecution] = []
        if recent_executions:
            of_journey = JobExecution.key(journey_id=journey_id)
            query = self._store.query(of_journey, newest_first=True, limit=recent_executions, consistent=False)
            executions = list(query)
        return CompleteJourney(journey, stages, rules, executions)

    @access_pattern("List all stages for a journey in order", index="GSI1")
    def list_stages(self, journey_id: str) -> Query[StageDefinition]:
        """Yield the stages of a journey, in order."""
        return self._store.query(StageDefinition.by_order(journey_id=journey_id))

    def get_stage(self, journey_id: str, stage_id: str) -> StageDefinition:
        """Return a stage by its id, or raise NotFoundError."""
        stages = self._store.query(
            StageDefinition.key(journey_id=journey_id), where=StageDefinition.stage_id == stage_id
        )
        found = stages.first()
        if found is None:
            raise NotFoundError(f"journey {journey_id} has no stage {stage_id}")
        return found

    @access_pattern("Get all rules for a journey", index="GSI1")
    def list_rules(self, journey_id: str) -> list[SecondBrainRule]:
        """Return all rules of a journey by stage and priority, critical first."""
        rules = self._store.query(SecondBrainRule.by_priority(journey_id=journey_id))
        return sorted(rules, key=lambda rule: (rule.stage_id, *_rank(rule)))

    @access_pattern("Pattern 4: Get Stage-Specific Rules")
    def list_stage_rules(self, journey_id: str, stage_id: str) -> list[SecondBrainRule]:
        """Return the rules of one stage by priority, critical first."""
        return sorted(self._store.query(SecondBrainRule.key(journey_id=journey_id, stage_id=stage_id)), key=_rank)

    def list_rules_of_priority(self, journey_id: str, stage_id: str, priority: Priority) -> Query[SecondBrainRule]:
        """Yield the rules of one stage with this priority, by index."""
        selection = SecondBrainRule.by_priority(journey_id=journey_id, stage_id=stage_id, priority=priority)
        return self._store.query(selection)

    def change_rule_status(self, rule: SecondBrainRule, status: RuleStatus) -> SecondBrainRule:
        """Switch a rule on or off; ConflictError if it changed since it was read."""
        return change_rule_status(self._store, rule, status, self._clock.now())

    def create_execution(
        self, stage: StageDefinition, job_id: str, *, triggered_by: str = "user", s3_config: Buckets | None = None
    ) -> JobExecution:
        """Store and count a new execution of a stage with the next, unique number; repeated calls return the first."""
        of_job = JobExecution.job_id == job_id
        there = self._store.query(executions_of(stage), where=of_job, newest_first=True).first()
        if there is not None:
            return there
        number, now = checked_number(stage, self.next_execution_number(stage)), self._clock.now()
        execution = JobExecution(
            job_id=job_id,
            journey_id=stage.journey_id,
            order=stage.order,
            stage_id=stage.stage_id,
            execution_number=number,
            triggered_by=triggered_by,
            s3_config=s3_config,
            created_at=now,
            updated_at=now,
        )
        key, counted = Journey.key(journey_id=stage.journey_id), Journey.aggregates["total_jobs"].increment()
        try:
            with self._store.transaction() as tx:
                tx.add(execution)
                tx.update(key, counted, Journey.updated_at.set(now), when=Journey.creation.missing())
        except TransactionFailedError as error:
            if any(isinstance(failure.current, Journey) for failure in error.failures):
                raise creation.incomplete(stage.journey_id) from error
            raise
        return execution

    def next_execution_number(self, stage: StageDefinition) -> int:
        """Take the next number from the journey's counter of the stage."""
        try:
            return self._count_up(stage)
        except ConditionFailedError:
            # A journey from another program has no counters: start after the executions that exist.
            latest = find_latest_execution(self._store, stage)
            self._store.update(Journey.key(journey_id=stage.journey_id), Journey.execution_counts.set_if_missing({}))
            count = Journey.execution_counts[stage.stage_id]
            last = latest.execution_number if latest else 0
            self._store.update(Journey.key(journey_id=stage.journey_id), count.set_if_missing(last))
            return self._count_up(stage)

    def _count_up(self, stage: StageDefinition) -> int:
        count, now = Journey.execution_counts[stage.stage_id], self._clock.now()
        counted = (count.increment(), Journey.updated_at.set(now))
        journey = self._store.update(Journey.key(journey_id=stage.journey_id), *counted, when=count.exists())
        return (journey.execution_counts or {})[stage.stage_id]

    @access_pattern("Pattern 5: Get Jobs for Specific Stage")
    def list_stage_executions(self, stage: StageDefinition, *, newest_first: bool = False) -> Query[JobExecution]:
        """Yield all executions of a stage, by number."""
        return self._store.query(executions_of(stage), newest_first=newest_first)

    @access_pattern("List jobs for journey")
    def list_executions(self, journey_id: str) -> Query[JobExecution]:
        """Yield all executions of a journey, by stage and number."""
        return self._store.query(JobExecution.key(journey_id=journey_id))

    @access_pattern("Get a job by its ID", index="GSI1")
    def get_execution(self, job_id: str) -> JobExecution:
        """Return the execution with this job id, or raise NotFoundError."""
        # Its logs follow it in the index, so the first item is nearly always the execution.
        first = self._store.collection(JobExecution.by_job(job_id=job_id)).first()
        if isinstance(first, JobExecution):
            return first
        found = self._store.query(JobExecution.by_job(job_id=job_id)).first()
        if found is None:
            raise missing("journey execution", job_id)
        return found

    def add_logs(self, entries: Iterable[LogEntry]) -> int:
        """Store log entries, each on its own; return their number."""
        return self._store.batch_put(entries)

    @access_pattern("Pattern 3: Get All Logs for a Job", index="GSI1")
    def list_job_logs(self, job_id: str) -> Query[LogEntry]:
        """Yield all log entries of a job, oldest first."""
        return self._store.query(LogEntry.by_job(job_id=job_id))

    @access_pattern("Pattern 6: Get Recent Job Logs", index="GSI1")
    def list_recent_job_logs(self, job_id: str, *, limit: int = 100) -> Query[LogEntry]:
        """Yield the latest log entries of a job, newest first."""
        return self._store.query(LogEntry.by_job(job_id=job_id), newest_first=True, limit=limit)

    @access_pattern("Get the logs of one step of a job")
    def list_step_logs(self, journey_id: str, job_id: str, step: str) -> Query[LogEntry]:
        """Yield the log entries of one step, oldest first."""
        return self._store.query(LogEntry.key(journey_id=journey_id, job_id=job_id, step=step))

    def add_report(self, report: JobReport) -> None:
        """Store the catalogue entry of a report, or raise AlreadyExistsError."""
        self._store.add(report)

    @access_pattern("List all reports for a job", index="GSI1")
    def list_job_reports(self, job_id: str) -> Query[JobReport]:
        """Yield the reports of a job, oldest first."""
        return self._store.query(JobReport.by_job(job_id=job_id))


def _rank(rule: SecondBrainRule) -> tuple[int, int]:
    return rule.priority.rank, rule.index
