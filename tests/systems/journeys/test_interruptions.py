"""Every verb of journeys, interrupted and done again, or with something else in between."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.interruptions import Fault, Surroundings, Verb, check_repetition, dies_after, interleaved
from tests.systems.journeys.access_patterns import journey, rule
from tests.systems.journeys.stages import fail, script
from tests.systems.journeys.worlds import World, stage

from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.transitions import SETTLING_TIME
from jobtable.jobs.stored.entities import main
from jobtable.objects.orphans import sweep
from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.archives.restore import Existing
from jobtable.systems.journeys.entities import JobExecution, JobReport, journeys
from jobtable.systems.journeys.execution_records import ExecutionRecords
from jobtable.systems.journeys.parts import LogCounts, Priority, ReportType, RuleStatus
from jobtable.systems.journeys.rules import add_rule
from jobtable.systems.journeys.runner import QUEUE, JourneyRunner
from jobtable.systems.journeys.running.flow import ExtraWrites
from jobtable.systems.journeys.running.stage_run import no_fence
from jobtable.systems.journeys.service import Journeys

Act = Callable[[Jobs, Any], object]


def world(jobs: Jobs) -> World:
    records = ExecutionRecords(jobs.store, jobs.objects, jobs.clock)
    return World(jobs, JourneyRunner(jobs), Journeys(jobs.store, clock=jobs.clock), records)


def check(jobs: Jobs) -> None:
    """Sums equal a recount, and nothing is left of what is gone."""
    items = jobs.store.backend.execute("Scan", {"TableName": journeys.name})["Items"]
    found = world(jobs).verbs.list_journeys().first()
    assert found is not None or items == []
    if found is not None and found.creation is None:
        world(jobs).check_sums()
    names = {execution.job_id for execution in jobs.store.query(JobExecution.key(journey_id="J1"))}
    assert {job.job_id.partition("-end-")[0] for job in jobs.queries.list_jobs()} <= names


def keep_up(jobs: Jobs) -> None:
    """What a worker does besides running jobs: who waits for a job is told of its end."""
    jobs.clock.sleep(SETTLING_TIME.total_seconds() + 1)
    if jobs.queries.list_queues().first() is not None:
        jobs.promote_due(QUEUE)


HERE = Surroundings((main, journeys), check, keep_up)


def created(jobs: Jobs) -> None:
    script()
    stages = [stage("J1", 1, "one"), stage("J1", 2, "two", can_skip=True)]
    world(jobs).verbs.create_journey(journey("J1"), stages, [rule("J1", "one", 1, Priority.HIGH)])


def running(jobs: Jobs) -> None:
    created(jobs)
    world(jobs).runner.run("J1")


def failed(jobs: Jobs) -> None:
    created(jobs)
    script(one__second=fail)
    world(jobs).runner.run("J1")
    world(jobs).work()


def paused(jobs: Jobs) -> None:
    created(jobs)
    script(one__second=lambda step: world(jobs).runner.pause("J1"))
    world(jobs).runner.run("J1")
    world(jobs).work()


def of_runner(verb: str, *given: str) -> Act:
    return lambda jobs, _: getattr(world(jobs).runner, verb)("J1", *given)


def a_rule(jobs: Jobs) -> Any:
    created(jobs)
    return world(jobs).verbs.list_rules("J1")[0]


def switch_off(jobs: Jobs, given: Any) -> object:
    return world(jobs).verbs.change_rule_status(given, RuleStatus.INACTIVE)


def switch_a_rule(jobs: Jobs, _: object) -> object:
    return switch_off(jobs, world(jobs).verbs.list_rules("J1")[0])


def add_another_rule(jobs: Jobs, _: object) -> None:
    add_rule(jobs.store, rule("J1", "one", 2, Priority.HIGH))


def create_execution(jobs: Jobs, _: object) -> object:
    verbs = world(jobs).verbs
    return verbs.create_execution(verbs.get_stage("J1", "one"), "JOB-1")


def delete(jobs: Jobs, _: object) -> object:
    return JourneyBackups(world(jobs).runner).delete_journey("J1", stop=True)


VERBS = {
    "run": Verb(of_runner("run"), created),
    "pause": Verb(of_runner("pause"), running, refused="it is paused"),
    "cancel": Verb(of_runner("cancel"), running, refused="it is cancelled"),
    "retry": Verb(of_runner("retry"), failed, refused="it is running"),
    "resume": Verb(of_runner("resume"), paused, refused="it is running"),
    "skip": Verb(of_runner("skip", "two"), created),
    "switch a rule off": Verb(switch_off, a_rule, refused="changed meanwhile"),
    "add a rule": Verb(add_another_rule, created, refused="cannot add rule"),
    "delete": Verb(delete, running, refused="there is no journey"),
}


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_was_interrupted_may_be_repeated(name: str, fault: Fault) -> None:
    check_repetition(VERBS[name], HERE, fault)


def run_to_its_end(jobs: Jobs) -> str:
    running(jobs)
    world(jobs).work()
    first = jobs.store.query(JobExecution.key(journey_id="J1")).first()
    assert first is not None
    return first.job_id


def report(jobs: Jobs, job_id: str) -> JobReport:
    told = {"notes": ["a"], "share": float("nan")}
    return world(jobs).records.create_job_report("J1", job_id, ReportType.CUSTOM, "Notes", told, call_id="call")


def sweep_orphans(jobs: Jobs) -> None:
    keep_up(jobs)
    sweep(jobs.objects, world(jobs).records.is_referenced, prefix="journeys", grace=timedelta(0), clock=jobs.clock)


@pytest.mark.parametrize("fault", list(Fault))
def test_a_report_that_is_stored_again_is_there_once(fault: Fault) -> None:
    check_repetition(Verb(report, run_to_its_end), Surroundings(HERE.tables, check, sweep_orphans), fault)


def test_an_execution_that_is_created_again_is_there_once() -> None:
    with HERE.world() as jobs:
        created(jobs)
        assert create_execution(jobs, None) == create_execution(jobs, None)
        check(jobs)


INTERLEAVINGS: dict[str, tuple[Callable[[Jobs], Any], Act, Act]] = {
    "run, and delete": (created, of_runner("run"), delete),
    "retry, and delete": (failed, of_runner("retry"), delete),
    "delete, and add a rule": (created, delete, add_another_rule),
    "delete, and create an execution": (created, delete, create_execution),
}


@pytest.mark.parametrize("name", INTERLEAVINGS)
def test_nothing_is_left_of_what_is_deleted_at_the_same_time(name: str) -> None:
    assert list(interleaved(HERE, *INTERLEAVINGS[name]))


def take_number(jobs: Jobs, taken: list[int]) -> None:
    verbs = world(jobs).verbs
    taken.append(verbs.next_execution_number(verbs.get_stage("J1", "one")))


def nothing_taken(jobs: Jobs) -> list[int]:
    created(jobs)
    return []


def test_no_two_executions_of_a_stage_get_the_same_number() -> None:
    def check_numbers(jobs: Jobs) -> None:
        counts = world(jobs).journey().execution_counts or {}
        assert counts["one"] == 2  # one was taken, and another one is that of the execution

    assert list(interleaved(Surroundings(HERE.tables, check_numbers), nothing_taken, of_runner("run"), take_number))


def begun(jobs: Jobs) -> JobExecution:
    """A journey that is paused, while a worker is still at a step that has logged; not at the time of any other."""
    jobs.clock.sleep(60)
    running(jobs)
    (execution,) = world(jobs).executions("one")
    begun = world(jobs).runner.flow.begin(execution, [], no_fence)
    assert begun is not None
    world(jobs).runner.pause("J1")
    return begun


def set_aside(jobs: Jobs, execution: JobExecution) -> None:
    logged = LogCounts(total_logs=3, info_count=3)
    written = ExtraWrites([JobExecution.metrics.set(execution.metrics + logged)], logged)
    world(jobs).runner.flow.set_aside(execution, written, no_fence)


def test_what_a_stage_that_is_set_aside_has_logged_is_counted_whoever_else_changes_its_journey() -> None:
    assert list(interleaved(HERE, begun, of_runner("cancel"), set_aside))


# --- exports and imports ----------------------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A journey that has run to its end, as a file."""
    path = tmp_path / "journey.zip"
    with HERE.world() as jobs:
        running(jobs)
        world(jobs).work()
        JourneyBackups(world(jobs).runner).get_journey_complete("J1", path)
    return path


def test_a_journey_that_is_deleted_while_it_is_imported_is_not_shown_as_whole(archive: Path) -> None:
    def bring_in(jobs: Jobs, _: object) -> object:
        return JourneyBackups(world(jobs).runner).import_journey_complete(archive)

    def check_sums(jobs: Jobs) -> None:
        found = world(jobs).verbs.list_journeys().first()
        if found is not None and found.creation is None:
            world(jobs).check_sums()

    assert list(interleaved(Surroundings(HERE.tables, check_sums), lambda jobs: None, bring_in, delete))


def merge(archive: Path) -> Act:
    return lambda jobs, _: JourneyBackups(world(jobs).runner).import_journey_complete(archive, Existing.MERGE)


def test_a_journey_that_is_begun_while_another_is_merged_into_it_goes_on_behind_that(archive: Path) -> None:
    def check_numbers(jobs: Jobs) -> None:
        check(jobs)
        numbers = [each.execution_number for each in world(jobs).executions("one")]
        assert len(set(numbers)) == len(numbers)

    assert list(interleaved(Surroundings(HERE.tables, check_numbers), created, of_runner("run"), merge(archive)))


@pytest.mark.parametrize("other", [set_aside, switch_a_rule], ids=["a stage is set aside", "a rule is switched"])
def test_what_changes_while_a_journey_is_merged_is_counted(archive: Path, other: Act) -> None:
    assert list(interleaved(HERE, begun, merge(archive), other))


@pytest.mark.parametrize("writes", [3, 6])
def test_a_journey_that_is_half_deleted_meanwhile_is_not_exported(tmp_path: Path, writes: int) -> None:
    def delete_half(jobs: Jobs, _: object) -> None:
        assert dies_after(jobs.store, jobs.objects, writes, lambda *given: delete(Jobs(*given, clock=jobs.clock), None))

    def export(jobs: Jobs, items: int) -> None:
        exported = JourneyBackups(world(jobs).runner).get_journey_complete("J1", tmp_path / "journey.zip")
        assert exported.items == items

    def completed(jobs: Jobs) -> int:
        run_to_its_end(jobs)
        return JourneyBackups(world(jobs).runner).get_journey_complete("J1", tmp_path / "journey.zip").items

    assert list(interleaved(Surroundings(HERE.tables), completed, export, delete_half))


def test_nothing_is_left_of_a_journey_that_is_imported_while_it_is_deleted(archive: Path) -> None:
    def replace(jobs: Jobs, _: object) -> object:
        return JourneyBackups(world(jobs).runner).import_journey_complete(archive, Existing.REPLACE)

    assert list(interleaved(HERE, created, delete, replace))
