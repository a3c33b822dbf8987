"""What handlers must not do, what is too large, too late or over, and what is deleted at the end."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python.concurrency.models import BatchResult
from aws_durable_execution_sdk_python.config import CompletionConfig, Duration, MapConfig
from tests.workflows.durable.driving import Driver, JumpingClock
from tests.workflows.durable.handlers import Event, effect, note

from jobtable.app import Services
from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    TaskClosedError,
    TokenRefusedError,
    ValueRefusedError,
)
from jobtable.workflows.durable.durable_service import DurableService
from jobtable.workflows.durable.entities import DurableExecution, DurableStatus
from jobtable.workflows.functions import DurableConfig, function

HOUR = Duration.from_hours(1)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


# --- other paths ----------------------------------------------------------------------------------------------------


@function(inline=True)
@durable_execution
def changing(event: Event, context: DurableContext) -> str:
    """Take the path that a file names."""
    first, second = json.loads(Path(event["effects"]).with_name("path").read_text())
    context.step(effect(event, first), name=first)
    if second == "wait":
        context.wait(Duration.from_seconds(1), name="pause")
    else:
        context.step(effect(event, second), name=second)
    context.step(effect(event, "last"), name="last")
    return "ended"


@pytest.mark.parametrize(
    ("after", "named"),
    [
        (("charge", "wait"), ("reserve", "charge")),
        (("reserve", "pack"), ("WAIT", "STEP")),
    ],
)
def test_a_handler_that_changed_between_replays_fails_and_says_where(
    driver: Driver, tmp_path: Path, after: tuple[str, str], named: tuple[str, str]
) -> None:
    (tmp_path / "path").write_text(json.dumps(("reserve", "wait")))
    driver.service.start("changing", {"effects": str(tmp_path / "effects")}, name="run")
    assert driver.work_once()
    (tmp_path / "path").write_text(json.dumps(after))
    execution = driver.run_to_end("changing")
    assert execution.status is DurableStatus.FAILED
    assert all(word in execution.error["ErrorMessage"] for word in named)
    assert (tmp_path / "effects").read_text().splitlines() == ["reserve"]


# --- large payloads -------------------------------------------------------------------------------------------------


@function(inline=True)
@durable_execution
def sized(event: Event, context: DurableContext) -> str:
    """Have a step's result and an own result of the sizes that the event names."""
    text = context.step(lambda _: "s" * event["step"], name="large")
    context.wait(Duration.from_seconds(1))
    return "r" * event["result"] if event["result"] else str(len(text))


def run_sized(driver: Driver, **sizes: Any) -> DurableExecution:
    driver.service.start("sized", {"step": 1, "result": 0, **sizes}, name="run")
    return driver.run_to_end("sized")


def test_payloads_over_the_limit_of_an_item_are_kept(driver: Driver) -> None:
    execution = run_sized(driver, step=200_000, result=5_000_000, more="x" * 1_000_000)
    assert execution.status is DurableStatus.SUCCEEDED
    assert driver.service.output_of(execution) == json.dumps("r" * 5_000_000)
    assert json.loads(driver.service.input_of(execution) or "")["more"] == "x" * 1_000_000
    events = list(driver.service.history("sized", "run"))
    step = next(event for event in events if event["EventType"] == "StepSucceeded")
    assert step["StepSucceededDetails"]["Result"]["Payload"] == json.dumps("s" * 200_000)
    assert events[-1]["ExecutionSucceededDetails"]["Result"]["Payload"] == json.dumps("r" * 5_000_000)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"step": 300_000}, "STEP output payload size must be less than or equal to 262144 bytes."),
        ({"result": 6_300_000}, "Execution output payload size must be less than or equal to 6291456 bytes."),
    ],
)
def test_what_is_too_large_fails_the_execution(driver: Driver, sizes: dict[str, int], message: str) -> None:
    execution = run_sized(driver, **sizes)
    assert execution.status is DurableStatus.FAILED
    assert message in execution.error["ErrorMessage"]


def test_an_input_over_six_megabytes_is_refused(driver: Driver) -> None:
    with pytest.raises(ValueRefusedError, match="more than 6,291,456 bytes"):
        driver.service.start("sized", {"text": "x" * 6_291_456}, name="run")
    with pytest.raises(NotFoundError):
        driver.service.get("sized", "run")


# --- time-outs and stops --------------------------------------------------------------------------------------------


@function(inline=True, durable=DurableConfig(execution_timeout_seconds=60, retention_days=2))
@durable_execution
def short_lived(event: Event, context: DurableContext) -> str:
    context.step(effect(event, "first"), name="first")
    awaited = context.create_callback(name="answer")
    note(event, f"callback {awaited.callback_id}")
    return str(awaited.result())


def start_short(driver: Driver, name: str = "run") -> str:
    """Run it until it waits; return the id of its callback."""
    driver.service.start("short_lived", {"effects": str(driver.effects)}, name=name)
    assert driver.work_once()
    return driver.effects.read_text().splitlines()[-1].removeprefix("callback ")


def test_an_execution_times_out_while_it_waits(driver: Driver) -> None:
    callback_id = start_short(driver)
    while driver.jump():
        driver.work_once()
    execution = driver.service.get("short_lived", "run")
    assert execution.status is DurableStatus.TIMED_OUT
    assert execution.ended_at is not None
    assert timedelta(seconds=60) <= execution.ended_at - execution.started_at < timedelta(seconds=90)
    assert list(driver.service.history("short_lived", "run"))[-1]["EventType"] == "ExecutionTimedOut"
    with pytest.raises(TaskClosedError, match="its execution has ended"):
        driver.service.succeed_callback(callback_id, "late")


@function(inline=True, durable=DurableConfig(execution_timeout_seconds=60))
@durable_execution
def interrupted(event: Event, context: DurableContext) -> str:
    """Something happens to the execution while its step runs."""
    context.step(lambda _: WHILE_IT_RUNS[event["act"]](), name="long")
    context.step(effect(event, "never"), name="never")
    return "impossible"


WHILE_IT_RUNS: dict[str, Callable[[], object]] = {}


@pytest.mark.parametrize(("act", "status"), [("stop", DurableStatus.STOPPED), ("time", DurableStatus.TIMED_OUT)])
def test_a_handler_records_nothing_after_the_end_of_its_execution(
    driver: Driver, clock: JumpingClock, act: str, status: DurableStatus
) -> None:
    WHILE_IT_RUNS["stop"] = lambda: driver.service.stop("interrupted", "run").status.value
    WHILE_IT_RUNS["time"] = lambda: clock.jump_to(clock.now() + timedelta(seconds=61))
    driver.service.start("interrupted", {"effects": str(driver.effects), "act": act}, name="run")
    execution = driver.run_to_end("interrupted")
    assert execution.status is status
    assert not driver.effects.exists()
    assert {each.ended_at for each in driver.service.operations("interrupted", "run")} <= {None}


def test_an_execution_that_waits_is_stopped_once(driver: Driver) -> None:
    callback_id = start_short(driver)
    stopped = driver.service.stop("short_lived", "run", error={"ErrorMessage": "sold out"})
    assert (stopped.status, stopped.error) == (DurableStatus.STOPPED, {"ErrorMessage": "sold out"})
    assert driver.service.stop("short_lived", "run", error={"ErrorMessage": "again"}) == stopped
    while driver.work_once():
        pass
    assert driver.service.get("short_lived", "run") == stopped
    with pytest.raises(TaskClosedError):
        driver.service.succeed_callback(callback_id, "late")


# --- callbacks ------------------------------------------------------------------------------------------------------


def test_a_callback_is_answered_once_and_never_by_a_forged_id(driver: Driver, tmp_path: Path) -> None:
    callback_id = start_short(driver)
    with Services.open(f"file:{tmp_path}/other.db") as services:
        _ = services.durable
        with pytest.raises(TokenRefusedError, match="Invalid callback id"):  # it has another key
            services.durable.succeed_callback(callback_id, "yes")
    for forged in ("", "x", callback_id[:-4], callback_id[::-1], "A" + callback_id[1:], callback_id + "AAAA"):
        with pytest.raises(TokenRefusedError, match="Invalid callback id"):
            driver.service.succeed_callback(forged, "yes")
    with pytest.raises(ValueRefusedError, match="1048576 bytes"):
        driver.service.succeed_callback(callback_id, "x" * 1_048_577)
    driver.service.succeed_callback(callback_id, "yes")
    for again in (driver.service.succeed_callback, driver.service.fail_callback, driver.service.beat_callback):
        with pytest.raises(TaskClosedError, match="it has succeeded"):
            again(callback_id)
    assert driver.service.output_of(driver.run_to_end("short_lived")) == '"yes"'


def test_a_callback_of_an_earlier_execution_of_that_name_is_closed(driver: Driver) -> None:
    earlier = start_short(driver)
    driver.service.stop("short_lived", "run")
    driver.service.delete("short_lived", "run")
    later = start_short(driver)
    assert earlier != later
    with pytest.raises(TaskClosedError):
        driver.service.succeed_callback(earlier, "yes")
    driver.service.succeed_callback(later, "yes")


# --- names and retention --------------------------------------------------------------------------------------------


def test_every_job_of_an_execution_says_who_started_it(driver: Driver) -> None:
    driver.service.start("invoking", {"effects": str(driver.effects)}, name="run", user="ada")
    assert driver.run_to_end("invoking").created_by == "ada"
    jobs = list(driver.jobs.queries.list_jobs())
    assert {(job.job_type, job.created_by) for job in jobs} == {("durable execution", "ada"), ("function", "ada")}
    assert len(jobs) == 4


def test_a_name_is_free_again_after_the_retention(driver: Driver, clock: JumpingClock) -> None:
    start_short(driver)
    stopped = driver.service.stop("short_lived", "run")
    with pytest.raises(AlreadyExistsError, match="another payload"):
        driver.service.start("short_lived", {"other": 1}, name="run")
    assert stopped.ended_at is not None
    clock.jump_to(stopped.ended_at + timedelta(days=1, hours=23))
    with pytest.raises(AlreadyExistsError):
        driver.service.start("short_lived", {"other": 1}, name="run")
    clock.jump_to(stopped.ended_at + timedelta(days=2, seconds=1))
    later = driver.service.start("short_lived", {"other": 1}, name="run")
    assert later.execution_id != stopped.execution_id
    assert list(driver.service.operations("short_lived", "run")) == []


def test_what_is_over_is_deleted_with_its_objects(services: Services, clock: JumpingClock, driver: Driver) -> None:
    run_sized(driver, step=200_000)
    start_short(driver)
    with pytest.raises(ConflictError, match="is running"):
        driver.service.delete("short_lived", "run")
    assert list(services.objects.list("durable"))
    service = DurableService(services.engine, random=Always())
    clock.jump_to(clock.now() + timedelta(days=13))
    service.delete_some_expired("sized")
    assert service.get("sized", "run").status is DurableStatus.SUCCEEDED
    clock.jump_to(clock.now() + timedelta(days=2))
    service.delete_some_expired("sized")
    with pytest.raises(NotFoundError):
        service.get("sized", "run")
    assert not list(services.objects.list("durable"))
    assert service.get("short_lived", "run").status is DurableStatus.RUNNING


class Always(Random):
    """Chance that always strikes."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0


# --- completion -----------------------------------------------------------------------------------------------------

COMPLETIONS: dict[str, tuple[CompletionConfig, str, int, int]] = {
    "all": (CompletionConfig(tolerated_failure_count=0), "FAILURE_TOLERANCE_EXCEEDED", 0, 1),
    "tolerant": (CompletionConfig(tolerated_failure_count=1), "FAILURE_TOLERANCE_EXCEEDED", 1, 2),
    "percentage": (CompletionConfig(tolerated_failure_percentage=60), "ALL_COMPLETED", 2, 3),
    "first": (CompletionConfig(min_successful=1), "MIN_SUCCESSFUL_REACHED", 1, 1),
}
"""How a map of five items, of which the first, third and fourth fail, ends: why, and what succeeded and failed."""


@function(inline=True)
@durable_execution
def completing(event: Event, context: DurableContext) -> dict[str, Any]:
    def item(child: DurableContext, number: int, index: int, items: Any) -> int:
        child.step(effect(event, f"item {number}"), name="note")
        if number in (0, 2, 3):
            raise ValueError(f"{number} is bad")
        return number

    config: MapConfig[int] = MapConfig(max_concurrency=1, completion_config=COMPLETIONS[event["how"]][0])
    result: BatchResult[int] = context.map(range(5), item, name="items", config=config)
    return {"why": result.completion_reason.value, "succeeded": result.success_count, "failed": result.failure_count}


@pytest.mark.parametrize("how", COMPLETIONS)
def test_a_map_completes_as_it_is_configured(driver: Driver, how: str) -> None:
    driver.service.start("completing", {"effects": str(driver.effects), "how": how}, name="run")
    execution = driver.run_to_end("completing")
    _, why, succeeded, failed = COMPLETIONS[how]
    output = driver.service.output_of(execution)
    assert json.loads(output or "") == {"why": why, "succeeded": succeeded, "failed": failed}
    assert len(driver.effects.read_text().splitlines()) == succeeded + failed
