"""What a task tells and keeps through its context."""

from __future__ import annotations

import io
import logging
import math
import multiprocessing
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs.runs import AwayBackend, Run, run_in_memory, run_on

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import (
    BackendUnavailable,
    IncompleteBatchError,
    JobtableError,
    LeaseLostError,
    ObjectStoreError,
    ObjectStoreUnavailable,
    ValueRefusedError,
)
from jobtable.jobs.report.checkpoints import Checkpoint
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.report.log_lines import LONGEST_MESSAGE_BYTES, JobLogHandler
from jobtable.jobs.report.recording import stored_number
from jobtable.jobs.stored.entities import Job, JobMetric, JobStatus
from jobtable.jobs.stored.field_types import LogLevel
from jobtable.jobs.stored.locations import JobObjects
from jobtable.jobs.submit.definition import NewJob
from jobtable.model.expressions import attribute_of
from jobtable.objects import ObjectInfo, Source
from jobtable.store import Backoff, Store
from jobtable.store.backend import Request, Response
from jobtable.testing import FakeClock

NEVER = 3600.0
"""Seconds between flushes where a test flushes itself."""


@pytest.fixture
def run(each_store: Store) -> Run:
    return run_on(each_store)


def metrics(run: Run, job_id: str | None = None) -> list[JobMetric]:
    return list(run.jobs.queries.list_metrics(job_id or run.job_id))


# --- logs -------------------------------------------------------------------------------------------------------------


def test_lines_are_stored_in_order_with_level_source_and_exception(run: Run) -> None:
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        context.log("first")
        context.debug("second", source="loader")
        context.warning("third")
        context.error("fourth", exception=ValueError("no"))
        assert run.messages() == []
    lines = list(run.logs.lines(run.job_id))
    assert [(line.message, line.log_level, line.source) for line in lines] == [
        ("first", LogLevel.INFO, None),
        ("second", LogLevel.DEBUG, "loader"),
        ("third", LogLevel.WARNING, None),
        ("fourth", LogLevel.ERROR, None),
    ]
    assert lines[3].exception == "ValueError: no"


def test_the_thread_flushes_by_itself() -> None:
    run = run_in_memory()
    with JobContext(run.jobs, run.lease, flush_seconds=0.01) as context:
        context.log("soon")
        while not run.messages():
            time.sleep(0.01)


def test_any_text_can_be_logged() -> None:
    run = run_in_memory()
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        context.log("a lone \ud800 surrogate")
        context.log("ü" * LONGEST_MESSAGE_BYTES, exception="x" * 1_000_000)
        context.log("")
        context.log({"not": "text"})
    odd, cut, empty, other = run.logs.lines(run.job_id)
    assert odd.message == "a lone \\ud800 surrogate"
    assert cut.message.endswith(f"ü ... [cut here: {2 * LONGEST_MESSAGE_BYTES:,} bytes]")
    assert len(cut.message.encode()) <= LONGEST_MESSAGE_BYTES
    assert (cut.exception or "").endswith("[cut here: 1,000,000 bytes]")
    assert (empty.message, other.message) == ("", "{'not': 'text'}")


def test_many_large_lines_fit_into_their_transactions() -> None:
    run = run_in_memory()
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        for number in range(30):
            context.log(f"{number} " + "x" * 250_000)
    assert [int(message.split()[0]) for message in run.messages()] == list(range(30))


def test_an_unknown_level_is_refused() -> None:
    run = run_in_memory()
    with (
        JobContext(run.jobs, run.lease) as context,
        pytest.raises(ValueRefusedError, match="unknown log level 'LOUD'; choose one of DEBUG, INFO"),
    ):
        context.log("x", "LOUD")


def test_python_s_logging_goes_to_the_job() -> None:
    run = run_in_memory()
    logger = logging.getLogger("tests.training")
    logger.setLevel(logging.DEBUG)
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        handler = JobLogHandler(context, logging.INFO)
        logger.addHandler(handler)
        logger.debug("not wanted")
        logger.info("epoch %d", 3)
        try:
            math.fmod(1, 0)
        except ValueError:
            logger.exception("failed")
        logger.log(55, "worse")
        logger.removeHandler(handler)
    lines = list(run.logs.lines(run.job_id))
    assert [(line.message, line.log_level, line.source) for line in lines] == [
        ("epoch 3", LogLevel.INFO, "tests.training"),
        ("failed", LogLevel.ERROR, "tests.training"),
        ("worse", LogLevel.CRITICAL, "tests.training"),
    ]
    assert "Traceback" in (lines[1].exception or "")
    assert (lines[1].exception or "").endswith("ValueError: math domain error")


class Talking(EmbeddedBackend):
    """Logs whatever it does."""

    def execute(self, operation: str, request: Request) -> Response:
        logging.getLogger("tests.backend").warning("doing %s", operation)
        return super().execute(operation, request)


def test_a_store_that_logs_does_not_make_itself_work() -> None:
    run = run_on(Store(Talking(None)))
    logger = logging.getLogger("tests.backend")
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        handler = JobLogHandler(context)
        logger.addHandler(handler)
        context.log("mine")
        context.flush()
        context.flush()
        logger.removeHandler(handler)
    assert run.messages() == ["mine"]


def test_a_forked_process_logs_its_own_lines_and_none_of_its_parent_s(tmp_path: Path) -> None:
    store = Store(EmbeddedBackend(tmp_path / "jobs.db"))
    run = run_on(store)
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        context.log("parent")

        def log_in_child() -> None:
            context.log("child")

        child = multiprocessing.get_context("fork").Process(target=log_in_child)
        child.start()
        child.join()
        assert child.exitcode == 0
        assert run.messages() == ["child"]
    assert run.messages() == ["child", "parent"]
    store.close()


# --- a store that is slow or away -------------------------------------------------------------------------------------


@pytest.fixture
def away() -> tuple[AwayBackend, Run]:
    backend = AwayBackend()
    clock = FakeClock()
    return backend, run_on(Store(backend, clock=clock, backoff=Backoff(attempts=2, clock=clock)), clock)


def test_a_failed_flush_keeps_the_lines_and_close_says_what_is_left(away: tuple[AwayBackend, Run]) -> None:
    backend, run = away
    context = JobContext(run.jobs, run.lease, flush_seconds=NEVER)
    for number in range(150):
        context.log(f"{number}")
    backend.is_away = True
    with pytest.raises(BackendUnavailable):
        context.flush()
    with pytest.raises(IncompleteBatchError, match=r"could not store 150 log lines and metrics .*is away"):
        context.close()
    backend.is_away = False
    context.close()
    assert run.messages() == [f"{number}" for number in range(150)]


# --- progress and metrics ---------------------------------------------------------------------------------------------


def test_the_last_progress_of_a_flush_is_stored(run: Run) -> None:
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        for percent in range(100):
            context.progress(percent, f"epoch {percent}")
        context.flush()
        context.progress(150)
    history = [(each.progress, each.message) for each in run.jobs.queries.list_statuses(run.job_id)]
    assert history[-2:] == [(99, "epoch 99"), (100, None)]
    assert run.jobs.queries.get_job(run.job_id).progress == 100


def test_a_long_message_of_progress_is_cut(run: Run) -> None:
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        context.progress(50, "\N{SNOWMAN}" * 200_000)
        context.checkpoint(b"state")
    message = run.jobs.queries.get_job(run.job_id).message or ""
    assert message.endswith("[cut here: 600,000 bytes]")
    assert len(message.encode()) <= 16 << 10


def test_progress_that_the_job_has_no_room_for_is_told_in_the_log_and_holds_up_nothing() -> None:
    run = run_in_memory({"large": "x" * 370_000})
    longer = attribute_of(Job.description).set("of another program" * 1_600)
    run.jobs.store.update(Job.key(job_id=run.job_id), longer)
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        context.progress(50, "m" * 15_000)
        context.checkpoint(b"state")
        context.progress(60, "short")
        context.checkpoint(b"state")
    assert run.jobs.queries.get_job(run.job_id).progress == 60
    (line,) = run.messages()
    assert f"the progress of job {run.job_id} cannot be stored: " in line


def test_metrics_are_stored_under_their_names(run: Run) -> None:
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        for step in range(3):
            context.metric("loss", 1 / (step + 1), step=step, epoch=1, unit="nats")
            context.metric("accuracy", step)
    assert [(each.metric_name, each.value, each.step, each.epoch, each.unit) for each in metrics(run)] == [
        ("accuracy", 0, None, None, None),
        ("accuracy", 1, None, None, None),
        ("accuracy", 2, None, None, None),
        ("loss", 1, 0, 1, "nats"),
        ("loss", 0.5, 1, 1, "nats"),
        ("loss", 1 / 3, 2, 1, "nats"),
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e126, -1e300])
def test_a_value_that_the_table_cannot_hold_becomes_a_warning(value: float) -> None:
    run = run_in_memory()
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        context.metric("loss", value, step=7, epoch=2)
        context.metric("loss", 0.5)
    assert [each.value for each in metrics(run)] == [0.5]
    (line,) = run.logs.lines(run.job_id)
    assert line.log_level is LogLevel.WARNING
    assert line.message == f"metric loss is {value} at epoch 2, step 7, which is not stored as a metric"


@given(st.floats())
def test_every_other_number_is_stored_as_it_is_or_as_the_zero_that_it_nearly_is(value: float) -> None:
    stored = stored_number(value)
    if stored is not None:
        metric = JobMetric.model_validate(
            {"job_id": "j", "metric_name": "m", "timestamp": "2025-01-01", "value": stored, "child_job_id": "c"}
        )
        codec = JobMetric.__schema__.codec
        assert codec.decode(codec.encode(metric)).value == stored
        assert stored == value or abs(value) < 1e-130


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"name": "loss", "value": "high"}, "metric loss must be a number, not 'high'"),
        ({"name": "loss", "value": 1, "step": 0.5}, "the step must be a whole number, not 0.5"),
        ({"name": "loss", "value": 1, "epoch": 10**40}, "an item holds at most 38 digits"),
        ({"name": "x" * 2000, "value": 1}, "1024"),
    ],
)
def test_what_is_no_metric_is_refused_at_once_and_spoils_nothing(told: dict[str, object], message: str) -> None:
    run = run_in_memory()
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        with pytest.raises(ValueRefusedError, match=message):
            context.metric(**told)  # type: ignore[arg-type]  # that is the test
        context.metric("loss", 1)
    assert len(metrics(run)) == 1


def test_a_metric_that_is_rolled_up_stands_under_the_other_job_too(each_store: Store) -> None:
    rule = {"job_id": "group-1", "metrics": ["val_loss"]}
    run = run_on(each_store, config={"roll_up": rule, "metrics_ttl_seconds": 60, "logs_ttl_seconds": 30})
    run.jobs.open_group(NewJob(name="group", job_id="group-1"))
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        context.metric("val_loss", 0.5, epoch=1)
        context.metric("val_loss", 0.25, epoch=2)
        context.metric("train_loss", 0.125)
        context.log("x")
    assert [(each.value, each.child_job_id) for each in metrics(run, "group-1")] == [
        (0.5, run.job_id),
        (0.25, run.job_id),
    ]
    best = run.jobs.queries.find_best_metric("group-1", "val_loss")
    assert best is not None
    assert (best.value, best.child_job_id, best.time_to_live) == (0.25, run.job_id, None)
    now = math.ceil(run.clock.seconds())
    assert {each.time_to_live for each in metrics(run)} == {now + 60}
    assert {line.time_to_live for line in run.logs.lines(run.job_id)} == {now + 30}


# --- checkpoints and artifacts ----------------------------------------------------------------------------------------


def test_resuming_from_the_last_or_the_best_checkpoint(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"state 3")
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        assert context.resume() is None
        context.log("before")
        context.checkpoint(b"state 1", step=1, metrics={"loss": 0.5, "bad": math.nan}, is_best=True)
        assert run.messages() == [
            "before",
            "metric bad of a checkpoint cannot be stored as a number at epoch 0, step 1",
        ]
        context.checkpoint(b"state 2", step=2, is_best=True, optimizer_state=False)
        run.clock.set(run.clock.now().replace(year=2024))
        third = context.checkpoint(path, step=3, epoch=1)
    resumed = JobContext(run.jobs, run.lease)
    latest, best = resumed.resume(), resumed.resume(best=True)
    assert latest is not None
    assert best is not None
    assert latest.record == third
    assert third.s3_key.endswith(".pt")
    assert latest.save_to(tmp_path / "resumed.pt").read_bytes() == b"state 3"
    assert (best.read(), best.record.step) == (b"state 2", 2)
    records = list(run.jobs.queries.list_checkpoints(run.job_id))
    assert [(each.step, each.is_best) for each in records] == [(1, False), (2, True), (3, False)]
    assert records[0].metrics == {"loss": 0.5}
    assert [(each.model_state, each.optimizer_state) for each in records[:2]] == [(True, True), (True, False)]


@pytest.mark.parametrize("away_seconds", [30, 300])
@pytest.mark.parametrize(
    ("away", "use"),
    [
        ("objects", lambda context, saved, folder: context.checkpoint(b"more")),
        ("objects", lambda context, saved, folder: context.artifact("model", b"weights")),
        ("objects", lambda context, saved, folder: saved.read()),
        ("objects", lambda context, saved, folder: saved.open().close()),
        ("objects", lambda context, saved, folder: saved.save_to(folder / "resumed.pt")),
        ("store", lambda context, saved, folder: context.checkpoint(b"more")),
        ("store", lambda context, saved, folder: context.artifact("model", b"weights")),
        ("store", lambda context, saved, folder: context.resume()),
        ("store", lambda context, saved, folder: context.close()),
    ],
)
def test_a_task_waits_for_what_is_away_for_a_while(
    away: str,
    use: Callable[[JobContext, Checkpoint, Path], object],
    away_seconds: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock()
    run = run_on(Store(EmbeddedBackend(None), clock=clock, backoff=Backoff(attempts=1)), clock)
    context = JobContext(run.jobs, run.lease, flush_seconds=NEVER)
    context.checkpoint(b"state")
    context.log("kept")
    saved = context.resume()
    assert saved is not None
    back_at = clock.monotonic() + away_seconds

    def unless_away(call: Callable[..., Any], *arguments: Any) -> Any:
        if clock.monotonic() < back_at:
            raise (BackendUnavailable if away == "store" else ObjectStoreUnavailable)("no connection")
        return call(*arguments)

    place = run.jobs.store.backend if away == "store" else run.jobs.objects
    for verb in ("execute",) if away == "store" else ("put", "get", "open"):
        monkeypatch.setattr(place, verb, partial(unless_away, getattr(place, verb)))
    with pytest.raises(JobtableError, match="no connection") if away_seconds > 60 else nullcontext():
        use(context, saved, tmp_path)
    monkeypatch.undo()
    context.close()
    assert run.messages() == ["kept"]


def test_a_damaged_checkpoint_is_noticed(tmp_path: Path) -> None:
    run = run_in_memory()
    context = JobContext(run.jobs, run.lease)
    record = context.checkpoint(b"state")
    run.jobs.objects.put(record.s3_key, b"other")
    saved = context.resume()
    assert saved is not None
    for read in (saved.read, lambda: saved.save_to(tmp_path / "x")):
        with pytest.raises(ObjectStoreError, match=r"is damaged .*resume from another one"):
            read()
    assert list(tmp_path.iterdir()) == []


def test_only_the_last_checkpoints_and_the_best_are_kept(run: Run) -> None:
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        for step in range(6):
            context.checkpoint(f"state {step}".encode(), step=step, is_best=step == 1, keep_last=2)
    assert [each.step for each in run.jobs.queries.list_checkpoints(run.job_id)] == [1, 4, 5]
    kept = {run.jobs.objects.get(found.key) for found in run.jobs.objects.list("jobs")}
    assert kept == {b"state 1", b"state 4", b"state 5"}


def test_an_object_store_that_does_not_remove_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_in_memory()
    context = JobContext(run.jobs, run.lease, flush_seconds=NEVER)

    def fail(key: str) -> None:
        raise ObjectStoreError("away")

    monkeypatch.setattr(run.jobs.objects, "delete", fail)
    for number in range(3):
        context.checkpoint(b"x", step=number, keep_last=1)
        context.artifact("a", b"x")
    assert [each.step for each in run.jobs.queries.list_checkpoints(run.job_id)] == [2]
    run.lose()
    with pytest.raises(LeaseLostError):
        context.checkpoint(b"x")


def test_a_stream_that_object_storage_does_not_take_is_not_put_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_in_memory()
    tries: list[str] = []

    def fail(key: str, source: Source) -> ObjectInfo:
        tries.append(key)
        raise ObjectStoreUnavailable("away")

    monkeypatch.setattr(run.jobs.objects, "put", fail)
    with pytest.raises(ObjectStoreUnavailable):
        run.jobs.recording.artifacts(run.lease).put("a stream", io.BytesIO(b"x"))
    assert len(tries) == 1


def test_how_many_checkpoints_are_kept_stands_in_the_definition() -> None:
    run = run_in_memory({"keep_checkpoints": 1})
    context = JobContext(run.jobs, run.lease)
    for step in range(3):
        context.checkpoint(b"x", step=step)
    assert [each.step for each in run.jobs.queries.list_checkpoints(run.job_id)] == [2]
    with pytest.raises(ValueRefusedError, match="keep_last must be at least 1, not 0"):
        context.checkpoint(b"x", keep_last=0)


def test_there_is_one_best_checkpoint_whoever_writes_it() -> None:
    run = run_in_memory()
    contexts = [JobContext(run.jobs, run.lease) for _ in range(4)]

    def save(context: JobContext) -> None:
        for step in range(5):
            context.checkpoint(b"x", step=step, is_best=True)

    threads = [threading.Thread(target=save, args=(context,)) for context in contexts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = list(run.jobs.queries.list_checkpoints(run.job_id))
    assert len(records) == 20
    assert [each.is_best for each in records] == [False] * 19 + [True]


def test_an_artifact_takes_the_place_of_the_one_with_its_name(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "loss.png"
    path.write_bytes(b"second")
    context = JobContext(run.jobs, run.lease)
    context.artifact("plots/loss.png", b"first")
    kept = context.artifact("plots/loss.png", str(path))
    assert (kept.content_type, kept.size_bytes) == ("image/png", 6)
    assert [run.jobs.objects.get(found.key) for found in run.jobs.objects.list("jobs")] == [b"second"]
    with pytest.raises(ValueRefusedError, match="is a folder"):
        context.artifact("all", tmp_path)
    with pytest.raises(ValueRefusedError, match="is a folder"):
        context.checkpoint(tmp_path)


# --- a lease that is lost ---------------------------------------------------------------------------------------------


def test_a_worker_without_its_lease_keeps_nothing_and_is_told_to_stop(run: Run) -> None:
    context = JobContext(run.jobs, run.lease, flush_seconds=NEVER)
    kept = context.artifact("model", b"mine")
    before = context.checkpoint(b"mine")
    assert not context.should_stop()
    run.lose()
    context.log("a line is always welcome")
    with pytest.raises(LeaseLostError):
        context.checkpoint(b"stale", is_best=True, keep_last=1)
    assert context.should_stop()
    with pytest.raises(LeaseLostError):
        context.artifact("model", b"stale")
    with pytest.raises(LeaseLostError):
        context.progress(60)
    context.close()
    assert list(run.jobs.queries.list_checkpoints(run.job_id)) == [before]
    assert {found.key for found in run.jobs.objects.list("jobs")} == {kept.s3_key, before.s3_key}
    assert run.messages() == ["a line is always welcome"]


def test_progress_of_a_worker_without_its_lease_is_refused(run: Run) -> None:
    context = JobContext(run.jobs, run.lease, flush_seconds=NEVER)
    run.lose()
    context.progress(50)
    with pytest.raises(LeaseLostError):
        context.flush()
    assert context.should_stop()
    context.close()
    history = run.jobs.store.query(JobStatus.key(job_id=run.job_id))
    assert all(each.progress != 50 for each in history)


def test_should_stop_asks_the_worker() -> None:
    run = run_in_memory()
    answers = iter([False, True])
    context = JobContext(run.jobs, run.lease, should_stop=lambda: next(answers))
    assert [context.should_stop(), context.should_stop()] == [False, True]


# --- which objects are named ------------------------------------------------------------------------------------------


def test_objects_that_a_record_names_are_told_from_orphans() -> None:
    run = run_in_memory()
    context = JobContext(run.jobs, run.lease)
    named = [context.checkpoint(b"x").s3_key, context.artifact("a/b.txt", b"x").s3_key]
    orphans = [
        f"jobs/{run.job_id}/checkpoints/step-0-other",
        f"jobs/{run.job_id}/artifacts/0123/a/b.txt",
        f"jobs/{run.job_id}/log/1.txt",
        f"jobs/{run.job_id}/log/odd.txt",
        f"jobs/{run.job_id}/log/123456789.txt",
        f"jobs/{run.job_id}/other",
        "jobs/gone/checkpoints/step-1",
        "jobs/gone/log/1.parts/00000",
    ]
    objects = JobObjects(run.jobs.store)
    assert [key for key in named + orphans if objects.is_referenced(key)] == named
    assert objects.is_referenced("journeys/1/log")
    assert objects.is_referenced(f"jobs/{run.job_id}/log/1.parts/00000")


def test_the_definition_of_reports_is_checked() -> None:
    for name in ("metrics_ttl_seconds", "logs_ttl_seconds", "keep_checkpoints"):
        run = run_in_memory({name: "long"})
        with pytest.raises(ValueRefusedError, match=f"{name} in job_config must be a positive .*, not 'long'"):
            JobContext(run.jobs, run.lease)


def test_the_context_knows_its_run() -> None:
    run = run_in_memory()
    context = JobContext(run.jobs, run.lease)
    assert (context.job_id, context.attempt, context.epoch) == (run.job_id, 1, 1)
    assert context.params == context.definition.params == {"x": 1}
    assert context.jobs is run.jobs
