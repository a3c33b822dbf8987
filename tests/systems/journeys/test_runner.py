"""Journeys on the job engine: in order, durable steps, paused, resumed, cancelled, retried; sums always right."""

from __future__ import annotations

import contextlib
import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from tests.interruptions import dies_after
from tests.jobs.engines import DisturbedBackend
from tests.running import NEVER
from tests.systems.journeys.access_patterns import journey
from tests.systems.journeys.stages import Killed, Scripted, die, fail, fail_passingly, script
from tests.systems.journeys.worlds import World, stage, world_on

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConflictError, NotFoundError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.objects import ObjectStore, sweep
from jobtable.store import Store
from jobtable.systems.journeys.entities import Journey, LogEntry, StageDefinition, journeys
from jobtable.systems.journeys.object_keys import ExecutionFolder, key_of
from jobtable.systems.journeys.parts import Creation, JobExecutionStatus, JourneyStatus, ReportType, StageStatus
from jobtable.systems.journeys.runner import QUEUE, JourneyRunner
from jobtable.systems.journeys.running.flow import JourneyFlow
from jobtable.systems.journeys.running.stage_jobs import END_JOB, STAGE_JOB, JourneyJobs
from jobtable.systems.journeys.running.stage_run import ExecutionLost, StageRun
from jobtable.systems.journeys.running.step_log import RECENT_LINES
from jobtable.systems.journeys.stage import Stage
from jobtable.testing import FakeClock

ALL_STEPS = ["one.first", "one.second", "one.third", "two.first", "two.second", "two.third"]


@pytest.fixture
def world(each_store: Store) -> World:
    return world_on(each_store)


@pytest.fixture
def quick() -> Any:
    with Store(EmbeddedBackend(None)) as store:
        yield world_on(store)


def test_stages_run_in_order_with_everything_recorded(world: World) -> None:
    script(one__first=lambda s: (s.log_warning("look", n=1), s.results.update(found=[1, 2]), s.report("R", results=7)))
    world.runner.run("J1")
    world.work()
    assert Scripted.ran == ALL_STEPS
    journey = world.journey()
    assert (journey.status, journey.overall_progress) == (JourneyStatus.COMPLETED, 100)
    assert journey.execution_counts == {"one": 1, "two": 1}
    (one,) = world.executions("one")
    assert journey.current_jobs["one"] == one.job_id
    assert (one.status, one.progress, one.results) == (JobExecutionStatus.COMPLETED, 100, {"found": [1, 2]})
    assert [run.status for run in one.steps] == [JobExecutionStatus.COMPLETED] * 3
    assert (one.metrics.total_logs, one.metrics.warning_count) == (1, 1)
    assert {each.status for each in world.verbs.list_stages("J1")} == {StageStatus.COMPLETED}
    job = world.jobs.queries.get_job(one.job_id)
    assert (job.status, job.job_stage, job.progress) == (Status.COMPLETED, "one", 100)
    (two,) = world.executions("two")
    assert [child.job_id for child in world.jobs.queries.list_children(job)] == [two.job_id], "one tree"
    types = [record.report_type for record in world.verbs.list_job_reports(one.job_id)]
    assert types == [ReportType.CUSTOM, ReportType.SUMMARY, ReportType.PERFORMANCE, ReportType.TIMELINE]
    world.check_sums()


def test_a_stage_goes_on_behind_its_last_finished_step(world: World) -> None:
    script(one__second=die)
    world.runner.run("J1")
    assert world.work(1) == 1
    (one,) = world.executions("one")
    assert [run.status.value for run in one.steps] == ["completed", "running", "pending"]
    world.check_sums()
    script()
    world.work()
    assert Scripted.ran == ALL_STEPS[1:]
    assert world.journey().status is JourneyStatus.COMPLETED
    world.check_sums()


def test_a_step_goes_on_behind_the_position_that_it_saved(quick: World) -> None:
    seen = []

    def save_and_die(step: Stage) -> None:
        seen.append(step.position)
        step.save({"batch": 7}, percent=40)
        die(step)

    script(one__second=save_and_die)
    quick.runner.run("J1")
    quick.work(1)
    (one,) = quick.executions("one")
    assert (one.steps[1].progress, one.progress) == (40, 46)
    assert quick.journey().overall_progress == 23
    script(one__second=lambda step: seen.append(step.position), one__third=lambda step: seen.append(step.position))
    quick.work()
    assert seen == [None, {"batch": 7}, None]


def test_what_an_interrupted_step_had_logged_is_not_there_twice(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies between the log entries and the end of the step."""
    script(one__first=lambda step: [step.log_info(f"line {n}") for n in range(150)])
    real = StageRun._write

    def dies(run: StageRun, *arguments: Any) -> None:
        raise Killed

    monkeypatch.setattr(StageRun, "_write", dies)
    quick.runner.run("J1")
    quick.work(1)
    (one,) = quick.executions("one")
    assert quick.jobs.store.count(LogEntry.key(journey_id="J1", job_id=one.job_id)) > 0
    monkeypatch.setattr(StageRun, "_write", real)
    quick.work()
    lines = [entry.message for entry in quick.verbs.list_job_logs(one.job_id)]
    assert lines == [f"line {n}" for n in range(50, 150)]
    quick.check_sums()


@pytest.mark.parametrize("how", ["paused", "killed", "both"])
def test_a_step_keeps_what_it_has_logged_and_reported_before_its_position(world: World, how: str) -> None:
    def begin(step: Stage) -> None:
        for n in range(150):
            step.log_warning(f"line {n}")
        step.report("R1", results=1)
        if how == "paused":
            world.runner.pause("J1")
        step.save("here")
        step.log_info("this is logged again")
        step.report("made again", results=1)
        raise Killed

    def go_on(step: Stage) -> None:
        assert step.position == "here"
        step.log_error("line 150")
        step.report("R2", results=1)
        if how == "both":
            script(one__second=end)
            world.runner.pause("J1")
            step.save("there")
        end(step)

    def end(step: Stage) -> None:
        step.log_info("line 151")
        step.report("R3", results=1)

    script(one__second=begin)
    world.runner.run("J1")
    world.work(1)
    world.check_sums()
    (one,) = world.executions("one")
    assert (one.metrics.total_logs, one.metrics.warning_count) == (150, 150)
    script(one__second=go_on)
    for _ in range(2):
        if world.journey().status is JourneyStatus.PAUSED:
            world.runner.resume("J1")
        world.work()
        world.check_sums()
    assert world.journey().status is JourneyStatus.COMPLETED
    expected_lines = [f"line {n}" for n in range(152)]
    full = [line["message"] for line in world.records.get_job_logs("J1", "one", one.job_id, "second")]
    assert full == expected_lines
    assert [entry.message for entry in world.verbs.list_job_logs(one.job_id)] == expected_lines
    made = world.records.get_job_reports("J1", one.job_id, "one", ReportType.CUSTOM)
    assert [report["title"] for report in made] == ["R1", "R2", "R3"]
    (one,) = world.executions("one")
    assert (one.metrics.total_logs, one.metrics.error_count, one.steps[1].reports) == (152, 1, None)


def test_a_failed_step_fails_stage_and_journey_and_a_retry_is_a_new_execution(world: World) -> None:
    script(one__second=fail)
    world.runner.run("J1")
    world.work()
    (one,) = world.executions("one")
    assert (one.status, one.error_message) == (JobExecutionStatus.FAILED, "second: RuntimeError: it does not work")
    assert world.journey().status is JourneyStatus.FAILED
    assert world.jobs.queries.get_job(one.job_id).status is Status.FAILED
    assert world.verbs.get_stage("J1", "one").status is StageStatus.FAILED
    logged = [line["message"] for line in world.records.get_job_logs("J1", "one", one.job_id, "second")]
    assert logged == ["about to fail", "the step failed: RuntimeError: it does not work"]
    (analysis,) = world.records.get_job_reports("J1", one.job_id, "one", ReportType.ERROR_ANALYSIS)
    assert "RuntimeError" in analysis["error"]["trace"]
    world.check_sums()

    script()
    assert world.runner.retry("J1").status is JourneyStatus.RUNNING
    world.work()
    assert [each.execution_number for each in world.executions("one")] == [1, 2]
    assert Scripted.ran == ALL_STEPS
    assert (world.journey().status, world.journey().aggregates.failed_jobs) == (JourneyStatus.COMPLETED, 1)
    world.check_sums()


def test_a_passing_error_is_tried_again_within_the_execution(quick: World) -> None:
    script(one__second=fail_passingly)
    quick.runner.run("J1")
    quick.work(1)
    (one,) = quick.executions("one")
    assert one.status is JobExecutionStatus.RUNNING
    assert quick.jobs.queries.get_job(one.job_id).status is Status.PENDING
    script()
    while quick.journey().status is JourneyStatus.RUNNING:
        quick.jobs.clock.sleep(0.05)
        quick.jobs.promote_due(QUEUE)
        quick.work()
    assert Scripted.ran == ALL_STEPS[1:]
    assert [each.execution_number for each in quick.executions("one")] == [1]


def test_a_paused_journey_stops_behind_its_step_and_goes_on_there(world: World) -> None:
    script(one__second=lambda step: world.runner.pause("J1"))
    world.runner.run("J1")
    world.work()
    (one,) = world.executions("one")
    assert Scripted.ran == ALL_STEPS[:2]
    assert [run.status.value for run in one.steps] == ["completed", "completed", "pending"]
    assert (one.status, world.journey().status) == (JobExecutionStatus.PENDING, JourneyStatus.PAUSED)
    assert world.jobs.queries.get_job(one.job_id).status is Status.STOPPED
    with pytest.raises(ConflictError, match="cannot run journey J1: it is paused"):
        world.runner.run("J1")
    script()
    world.runner.resume("J1")
    world.work()
    assert Scripted.ran == ALL_STEPS[2:]
    assert world.journey().status is JourneyStatus.COMPLETED
    assert len(world.executions("one")) == 1
    world.check_sums()


def test_a_journey_that_is_resumed_before_the_pause_was_noticed_goes_on(quick: World) -> None:
    def pause_and_resume(step: Stage) -> None:
        quick.runner.pause("J1")
        step.progress(10)
        quick.runner.resume("J1")

    script(one__second=pause_and_resume)
    quick.runner.run("J1")
    quick.work()
    assert Scripted.ran == ALL_STEPS
    assert quick.journey().status is JourneyStatus.COMPLETED


@pytest.mark.parametrize(
    ("kept", "status"),
    [
        ({}, JourneyStatus.RUNNING),
        ({"result": None}, JourneyStatus.RUNNING),  # as older programs store it
        ({"result": None, "message": "somebody stopped it"}, JourneyStatus.PAUSED),
    ],
)
def test_a_job_that_stopped_because_of_a_pause_goes_on_by_its_reason(
    quick: World, kept: dict[str, Any], status: JourneyStatus
) -> None:
    script(one__second=lambda step: quick.runner.pause("J1"))
    quick.runner.run("J1")
    quick.work()
    (one,) = quick.executions("one")
    job = quick.jobs.queries.get_job(one.job_id)
    assert (job.status, job.result, job.message) == (Status.STOPPED, {"reason": "paused"}, "the journey is paused")
    quick.jobs.store.put(job.replace(**kept))
    quick.runner.flow.resume("J1", "user")  # and the caller dies before it restarts the job
    assert quick.runner.settle("J1").status is status


def test_progress_is_kept_up_to_date_while_a_step_runs() -> None:
    clock = FakeClock()
    seen: list[tuple[Any, ...]] = []
    with Store(EmbeddedBackend(None, clock=clock), clock=clock) as store:
        world = world_on(store)

        def tell(step: Stage) -> None:
            for percent in (10, 30):
                clock.advance(2)
                step.progress(percent, "on the way")
                step.progress(99)  # a moment later: not worth a write
                (one,) = world.executions("one")
                seen.append((one.steps[1].progress, one.progress, world.journey().overall_progress, one.current_step))

        script(one__second=tell)
        world.runner.run("J1")
        world.work()
        (one,) = world.executions("one")
    assert seen == [(10, 36, 18, "second"), (30, 43, 21, "second")]
    assert (one.steps[1].progress, one.progress) == (None, 100)
    assert round(one.steps[1].duration or 0) == 4


def test_a_pause_between_two_stages_opens_the_next_one_when_it_is_resumed(quick: World) -> None:
    script(one__third=lambda step: quick.runner.pause("J1"))
    quick.runner.run("J1")
    quick.work()
    assert quick.executions("two") == []
    assert quick.journey().status is JourneyStatus.PAUSED
    quick.runner.resume("J1")
    quick.work()
    assert Scripted.ran == ALL_STEPS
    quick.check_sums()


def test_a_cancelled_journey_writes_nothing_more_and_can_be_retried(world: World) -> None:
    script(one__second=lambda step: (step.log_info("x"), world.runner.cancel("J1")))
    world.runner.run("J1")
    world.work()
    (one,) = world.executions("one")
    assert Scripted.ran == ALL_STEPS[:2]
    assert (one.status, world.journey().status) == (JobExecutionStatus.CANCELLED, JourneyStatus.CANCELLED)
    assert [run.status.value for run in one.steps] == ["completed", "cancelled", "pending"]
    assert one.metrics.total_logs == 0
    world.check_sums()
    script()
    world.runner.retry("J1")
    world.work()
    assert [each.execution_number for each in world.executions("one")] == [1, 2]
    assert world.journey().status is JourneyStatus.COMPLETED
    world.check_sums()


def test_what_an_older_program_says_is_in_progress_is_running(quick: World) -> None:
    script(one__second=die)
    quick.runner.run("J1")
    quick.work(1)
    for entity in (quick.journey(), *quick.executions("one")):
        item = type(entity).__schema__.codec.encode(entity)
        item["Data"]["M"]["status"] = {"S": "in_progress"}
        quick.jobs.store.backend.execute("PutItem", {"TableName": journeys.name, "Item": item})
    assert quick.journey().status is JourneyStatus.RUNNING
    script(one__second=fail)
    quick.work()
    assert (quick.executions("one")[0].status, quick.journey().status) == (
        JobExecutionStatus.FAILED,
        JourneyStatus.FAILED,
    )
    quick.check_sums()


@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_a_stage_does_not_fail_that_begins_as_its_journey_ceases(verb: str) -> None:
    backend = DisturbedBackend(EmbeddedBackend(None))
    with Store(backend) as store:
        world = world_on(store)
        world.runner.run("J1")
        # Behind the claim of the stage's job, and before the transaction in which the stage begins.
        backend.disturb(lambda: getattr(world.runner, verb)("J1"), writes=1)
        world.work(1)
        (one,) = world.executions("one")
        job = world.jobs.queries.get_job(one.job_id)
        assert job.status is Status.STOPPED
        assert "Traceback" not in str(job.message)
        getattr(world.runner, "resume" if verb == "pause" else "retry")("J1")
        world.work()
        assert world.journey().status is JourneyStatus.COMPLETED
        world.check_sums()


def test_a_stage_that_may_be_skipped_is_passed_over(quick: World) -> None:
    with pytest.raises(ConflictError, match="stage one of journey J1 cannot be skipped"):
        quick.runner.skip("J1", "one")
    quick.runner.skip("J1", "two")
    quick.runner.run("J1")
    quick.work()
    assert Scripted.ran == ALL_STEPS[:3]
    assert quick.verbs.get_stage("J1", "two").status is StageStatus.SKIPPED
    assert (quick.journey().status, quick.journey().overall_progress) == (JourneyStatus.COMPLETED, 100)


def test_a_job_that_was_ended_from_outside_ends_its_execution(quick: World) -> None:
    """As after a timeout, or when its workers were lost too often: the stage itself could not record it."""
    quick.runner.run("J1")
    (one,) = quick.executions("one")
    quick.jobs.cancel(one.job_id)
    quick.work()
    assert (quick.journey().status, quick.executions("one")[0].status.value) == (JourneyStatus.CANCELLED, "cancelled")
    quick.check_sums()


def test_a_stopped_job_pauses_its_journey(quick: World) -> None:
    quick.runner.run("J1")
    (one,) = quick.executions("one")
    quick.jobs.stop(one.job_id)
    quick.work()
    assert quick.journey().status is JourneyStatus.PAUSED
    quick.runner.resume("J1")
    quick.work()
    assert quick.journey().status is JourneyStatus.COMPLETED


@pytest.mark.parametrize(
    ("verb", "status", "go_on"),
    [("cancel", JourneyStatus.CANCELLED, "retry"), ("stop", JourneyStatus.PAUSED, "resume")],
)
def test_no_stage_begins_in_a_tree_that_was_ended_until_the_journey_goes_on(
    quick: World, verb: str, status: JourneyStatus, go_on: str
) -> None:
    script(one__third=lambda _: getattr(quick.jobs, verb)(quick.executions("one")[0].job_id))
    quick.runner.run("J1")
    quick.work()
    assert Scripted.ran == ALL_STEPS[:3]
    assert quick.journey().status is status
    getattr(quick.runner, go_on)("J1")
    quick.work()
    assert Scripted.ran == ALL_STEPS
    assert quick.journey().status is JourneyStatus.COMPLETED
    quick.check_sums()


def test_the_end_of_a_job_is_recorded_however_often_it_was_begun_anew(quick: World) -> None:
    """Each time no worker has had the job in between."""
    quick.runner.run("J1")
    (one,) = quick.executions("one")
    for _ in range(2):
        quick.jobs.stop(one.job_id)
        quick.work()
        assert quick.journey().status is JourneyStatus.PAUSED
        quick.runner.resume("J1")
    quick.jobs.cancel(one.job_id)
    quick.work()
    assert quick.journey().status is JourneyStatus.CANCELLED
    jobs = JourneyJobs(quick.jobs)
    assert [job.job_type for job in jobs.list_jobs("J1")] == [END_JOB, END_JOB, END_JOB, STAGE_JOB]
    jobs.delete(jobs.list_jobs("J1"))
    assert list(quick.jobs.queries.list_dependents(one.job_id)) == []


def test_the_end_of_a_job_is_recorded_later_if_others_are_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_busy(flow: JourneyFlow, journey_id: str) -> None:
        raise ConflictError(f"could not change journey {journey_id}: it kept changing; try again")

    clock = FakeClock()
    with Store(EmbeddedBackend(None, clock=clock), clock=clock) as store:
        world = world_on(store)
        world.runner.run("J1")
        with monkeypatch.context() as busy:
            busy.setattr(JourneyFlow, "cancel", is_busy)
            world.jobs.cancel(world.executions("one")[0].job_id)
            world.work()
        assert world.journey().status is JourneyStatus.RUNNING
        clock.advance(3600)
        world.jobs.promote_due(QUEUE)
        world.work()
        assert world.journey().status is JourneyStatus.CANCELLED
        world.check_sums()


def test_a_journey_whose_job_was_never_submitted_gets_one(quick: World) -> None:
    """The process died between the records and the job."""
    quick.runner.flow.start("J1", "user")
    assert quick.work() == 0
    quick.runner.run("J1")
    quick.work()
    assert quick.journey().status is JourneyStatus.COMPLETED


@pytest.mark.parametrize("verb", ["run", "retry", "resume"])
def test_a_verb_that_was_interrupted_is_finished_by_the_next(verb: str) -> None:
    """Wherever the process dies: the same again lets the journey go on, and the end of its job is recorded."""
    for writes in range(100):
        with Store(EmbeddedBackend(None)) as store:
            world = world_on(store)
            _make_ready_to(verb, world)
            begin = partial(_do, verb)
            was_interrupted = dies_after(store, world.jobs.objects, writes, begin)
            with contextlib.suppress(ConflictError):  # it runs: the interrupted one had got so far
                begin(store, world.jobs.objects)
            (lease,) = world.jobs.claim(QUEUE, limit=1, instance_id="test", lease_seconds=60)
            assert lease.job.job_id == world.executions("one")[-1].job_id
            world.jobs.finish(lease, Outcome.failed("it was killed", retryable=False))
            world.work()
            assert world.journey().status is JourneyStatus.FAILED
            world.check_sums()
        if not was_interrupted:
            assert writes > 1
            return


def _make_ready_to(verb: str, world: World) -> None:
    if verb == "retry":
        script(one__second=fail)
    if verb == "resume":
        script(one__second=lambda step: world.runner.pause("J1"))
    if verb != "run":
        world.runner.run("J1")
        world.work()


def _do(verb: str, store: Store, objects: ObjectStore) -> None:
    getattr(JourneyRunner(Jobs(store, objects)), verb)("J1")


def test_the_end_of_a_job_is_recorded_though_who_let_it_begin_anew_died(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job that looks after its end was not submitted: the stage itself does that."""
    _make_ready_to("resume", quick)
    with monkeypatch.context() as patched:
        patched.setattr(quick.jobs, "submit_many", _die)
        with pytest.raises(Killed):
            quick.runner.resume("J1")
    script(one__third=die)
    quick.work(1)
    quick.jobs.cancel(quick.executions("one")[0].job_id)
    quick.work()
    assert quick.journey().status is JourneyStatus.CANCELLED


def _die(*_: object) -> None:
    raise Killed


def test_a_worker_that_lost_its_lease_writes_nothing(quick: World) -> None:
    """A step ends after another worker has taken the job over: the step counts once."""
    taken: list[bool] = []

    def lose_the_lease(step: Stage) -> None:
        if not taken:
            taken.append(True)
            quick.jobs.release(lease, "taken for dead")

    script(one__second=lose_the_lease)
    quick.runner.run("J1")
    (lease,) = quick.jobs.claim(QUEUE, limit=1, instance_id="zombie", lease_seconds=60)
    context = JobContext(quick.jobs, lease, flush_seconds=NEVER)
    report = run_task(lease.job.definition, StopFlag(), lambda: context)
    assert report.has_stopped
    (one,) = quick.executions("one")
    assert [run.status.value for run in one.steps] == ["completed", "running", "pending"]
    quick.work()
    assert Scripted.ran == ["one.first", "one.second", *ALL_STEPS[1:]]
    quick.check_sums()


def test_a_worker_that_lost_its_lease_replaces_no_object_of_the_one_that_has_it(quick: World) -> None:
    """Objects are put before the records that name them, so the stale ones are there before their write is refused."""
    left: list[str] = []

    def come_late(step: Stage) -> None:
        step.log_info("by the zombie")
        step.report("by the zombie")
        if not left:
            quick.jobs.release(lease, "taken for dead")
            left.append("the other worker's")
            script(one__second=come_in_time)
            quick.work()
            with contextlib.suppress(ExecutionLost):
                step.write_file("found.txt", source=b"by the zombie")
                left.append("file")

    def come_in_time(step: Stage) -> None:
        step.log_info("in time")
        step.report("in time")
        step.write_file("found.txt", source=b"in time")

    script(one__second=come_late)
    quick.runner.run("J1")
    (lease,) = quick.jobs.claim(QUEUE, limit=1, instance_id="zombie", lease_seconds=60)
    context = JobContext(quick.jobs, lease)
    assert run_task(lease.job.definition, StopFlag(), lambda: context).has_stopped
    assert quick.journey().status is JourneyStatus.COMPLETED
    (one,) = quick.executions("one")
    log = one.steps[1].log
    assert log is not None
    lines = [line["message"] for line in quick.records.get_job_logs("J1", "one", one.job_id, "second")]
    assert (lines, log.lines) == (["in time"], 1)
    made = quick.records.get_job_reports("J1", one.job_id, "one", ReportType.CUSTOM)
    assert [report["title"] for report in made] == ["in time"]
    assert quick.jobs.objects.get(ExecutionFolder("J1", "one", one.job_id).file("second", "found.txt")) == b"in time"
    assert left == ["the other worker's"], "a file is refused before it is put"
    for entry in quick.verbs.list_job_logs(one.job_id):
        assert hashlib.sha256(quick.jobs.objects.get(key_of(entry.s3_location or ""))).hexdigest() == log.sha256
    stale = {found.key for found in quick.jobs.objects.list("journeys")}
    sweep(quick.jobs.objects, quick.records.is_referenced, prefix="journeys", grace=timedelta(0))
    stale -= {found.key for found in quick.jobs.objects.list("journeys")}
    assert stale == {
        ExecutionFolder("J1", "one", one.job_id).log("second"),
        ExecutionFolder("J1", "one", one.job_id).report("second"),
    }
    quick.check_sums()


def test_a_worker_that_lost_its_lease_removes_nothing(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on with a step that was interrupted, when another worker has finished that already."""
    remove = StageRun._remove_leftovers

    def come_late(run: StageRun) -> None:
        monkeypatch.setattr(StageRun, "_remove_leftovers", remove)
        quick.jobs.release(lease, "taken for dead")
        quick.work()
        remove(run)

    script(one__first=die)
    quick.runner.run("J1")
    quick.work(1)
    script(one__first=lambda step: [step.log_info(f"line {n}") for n in range(150)])
    (lease,) = quick.jobs.claim(QUEUE, limit=1, instance_id="zombie", lease_seconds=60)
    monkeypatch.setattr(StageRun, "_remove_leftovers", come_late)
    context = JobContext(quick.jobs, lease, flush_seconds=NEVER)
    assert run_task(lease.job.definition, StopFlag(), lambda: context).has_stopped
    assert quick.journey().status is JourneyStatus.COMPLETED
    (one,) = quick.executions("one")
    assert len(list(quick.verbs.list_step_logs("J1", one.job_id, "first"))) == RECENT_LINES


def test_a_stage_without_its_class_or_a_method_fails_with_the_reason(quick: World) -> None:
    broken = stage("J2", 1, "one").replace(implementation="nowhere:Stage")
    quick.verbs.create_journey(journey("J2"), [broken])
    quick.runner.run("J2")
    lacking = stage("J3", 1, "one")
    lacking = lacking.replace(steps=[lacking.steps[0].replace(step_id="fourth")])
    quick.verbs.create_journey(journey("J3"), [lacking])
    quick.runner.run("J3")
    quick.work()
    for journey_id, reason in (("J2", "cannot load 'nowhere:Stage'"), ("J3", "no method for step fourth")):
        (execution,) = quick.verbs.list_executions(journey_id)
        assert execution.status is JobExecutionStatus.FAILED
        assert reason in (execution.error_message or "")


def test_what_a_step_logs_can_be_followed_in_the_log_of_its_job(quick: World) -> None:
    script(one__first=lambda step: [step.log_warning(f"line {n}") for n in range(500)])
    quick.runner.run("J1")
    quick.work(1)
    (one,) = quick.executions("one")
    lines = [line.message for line in quick.jobs.queries.list_logs(one.job_id)]
    assert lines[:50] == [f"line {n}" for n in range(50)]
    assert len(lines) < 500, "the rest is in the full log alone"
    assert one.steps[0].log is not None
    assert one.steps[0].log.lines == 500


def test_results_that_no_item_can_hold_fail_the_step_with_the_reason(quick: World) -> None:
    script(one__first=lambda step: step.results.update(large="x" * 500_000))
    quick.runner.run("J1")
    quick.work()
    (one,) = quick.executions("one")
    assert one.status is JobExecutionStatus.FAILED
    assert "exceeded the maximum allowed size" in (one.error_message or "")
    assert one.results == {}
    quick.check_sums()


def test_many_starts_at_once_make_one_execution(quick: World) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: JourneyRunner(quick.jobs).run("J1"), range(8)))
    assert len(quick.executions("one")) == 1
    quick.work()
    assert Scripted.ran == ALL_STEPS
    quick.check_sums()


def test_a_stage_runs_as_often_as_its_key_has_digits(quick: World) -> None:
    quick.jobs.store.update(Journey.key(journey_id="J1"), Journey.execution_counts.set({"one": 999, "two": 0}))
    with pytest.raises(ConflictError, match="ran 999 times"):
        quick.runner.run("J1")


def test_what_is_not_there_is_named(quick: World) -> None:
    with pytest.raises(NotFoundError, match="journey J9"):
        quick.runner.run("J9")
    with pytest.raises(NotFoundError, match="journey J1 has no stage nine"):
        quick.runner.skip("J1", "nine")
    with pytest.raises(ConflictError, match="cannot pause journey J1: it is pending, not running"):
        quick.runner.pause("J1")


def test_a_half_created_journey_is_not_run(quick: World) -> None:
    marker = Creation(done=1, total=2, fingerprint="x")
    quick.jobs.store.update(Journey.key(journey_id="J1"), Journey.creation.set(marker))
    with pytest.raises(ConflictError, match="incomplete"):
        quick.runner.run("J1")
    assert quick.jobs.store.count(StageDefinition.key(journey_id="J1")) == 2
