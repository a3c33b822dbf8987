"""What a job's process writes: lines within a budget, all of it in the full text."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace

import pytest
from tests.jobs.runs import AwayBackend, Run, run_in_memory, run_on

from jobtable.errors import IncompleteBatchError
from jobtable.jobs.report.log_text import UPLOAD_SECONDS, TextSpool
from jobtable.jobs.report.output import OutputCapture
from jobtable.objects import ObjectInfo, Source
from jobtable.store import Backoff, Store
from jobtable.testing import FakeClock

NEVER = 3600.0


def text_of(run: Run) -> str:
    return b"".join(run.logs.full_text(run.job_id)).decode("utf-8", "replace")


def test_lines_of_both_streams_are_told_apart_and_kept_whole(each_store: Store) -> None:
    run = run_on(each_store)
    with OutputCapture(run.jobs, run.lease, flush_seconds=NEVER) as capture:
        capture.feed(b"one\ntw")
        capture.feed(b"oops \xff\n", "stderr")
        capture.feed(b"o\n\n")
    assert [(line.message, line.source) for line in run.logs.lines(run.job_id)] == [
        ("one", "stdout"),
        ("oops \ufffd", "stderr"),
        ("two", "stdout"),
    ]
    assert b"".join(run.logs.full_text(run.job_id)) == b"one\noops \xff\ntwo\n\n"


def test_lines_over_the_budget_stand_in_the_full_text_only() -> None:
    run = run_in_memory()
    with OutputCapture(run.jobs, run.lease, flush_seconds=NEVER, lines_at_once=3, lines_per_second=2) as capture:
        capture.feed(b"".join(b"%d\n" % number for number in range(10)))
        run.clock.advance(1)
        capture.feed(b"10\n11\n12\n")
    note = "{} lines of output were left out here; the full text has them"
    assert run.messages() == ["0", "1", "2", note.format(7), "10", "11", "12"]
    assert text_of(run).split() == [str(number) for number in range(13)]


def test_of_a_progress_bar_the_last_state_is_told() -> None:
    run = run_in_memory()
    with OutputCapture(run.jobs, run.lease, flush_seconds=NEVER) as capture:
        for percent in range(100):
            capture.feed(b"\r%3d%%" % percent, "stderr")
        capture._flush()
        assert run.messages() == [" 98%"]
        capture.feed(b"\r100%\n", "stderr")
    assert run.messages() == [" 98%", "100%"]
    assert text_of(run).count("\r") == 101


def test_a_flood_is_bounded_and_says_what_it_has_left_out() -> None:
    run = run_in_memory()
    spool = TextSpool(10_000, 5_000)
    with OutputCapture(run.jobs, run.lease, flush_seconds=NEVER, lines_at_once=5, spool=spool) as capture:
        for _ in range(100):
            capture.feed(b"y\n" * 5_000)
    note = "499,975 lines of output were left out here; the full text has them"
    assert run.messages() == ["y"] * 5 + [note] + ["y"] * 20
    text = text_of(run)
    assert text == "y\n" * 5_000 + "\n[985,000 bytes of output were left out here]\n" + "y\n" * 2_500


def test_the_end_is_told_even_when_the_budget_is_spent() -> None:
    run = run_in_memory()
    with OutputCapture(run.jobs, run.lease, flush_seconds=NEVER, lines_at_once=1, lines_per_second=0) as capture:
        capture.feed(b"first\n" + b"flood\n" * 100_000)
        capture._flush()
        capture.feed(b"Traceback:\n\n" + b"10%\r20%\r\n" + b"MemoryError")
    messages = run.messages()
    assert messages[:2] == ["first", "100,000 lines of output were left out here; the full text has them"]
    assert messages[-4:] == ["flood", "Traceback:", "20%", "MemoryError"]
    assert len(messages) == 22


def test_a_failure_is_told_behind_what_the_budget_left_out() -> None:
    run = run_in_memory()
    with OutputCapture(run.jobs, run.lease, flush_seconds=NEVER, lines_at_once=1, lines_per_second=0) as capture:
        capture.feed(b"0\n1\n2\n3")
        capture.fail("ValueError: no\n\nTraceback\n  line")
    assert run.messages() == ["0", "1", "2", "3", "ValueError: no"]
    *printed, headline, trace, line = text_of(run).splitlines()
    assert (printed, trace, line) == (["0", "1", "2", "3"], "Traceback", "  line")
    assert headline.endswith("ERROR    ValueError: no")


@pytest.mark.parametrize(("given", "kept"), [(60, 60), (None, None), ("soon", None)])
def test_printed_lines_expire_with_those_that_are_logged(given: object, kept: int | None) -> None:
    run = run_in_memory()
    lease = replace(run.lease, job=run.lease.job.replace(job_config={"logs_ttl_seconds": given}))
    with OutputCapture(run.jobs, lease, flush_seconds=NEVER) as capture:
        capture.feed(b"printed\n")
    (line,) = run.logs.lines(run.job_id)
    assert line.time_to_live == (None if kept is None else math.ceil(run.clock.seconds() + kept))


def test_a_line_without_an_end_is_told_in_pieces() -> None:
    run = run_in_memory()
    with OutputCapture(run.jobs, run.lease, flush_seconds=NEVER) as capture:
        for _ in range(10):
            capture.feed(b"x" * 10_000)
    assert "".join(run.messages()) == "x" * 100_000
    assert len(run.messages()) == 7
    assert text_of(run) == "x" * 100_000


def test_what_cannot_be_stored_is_kept_until_it_can() -> None:
    backend, clock = AwayBackend(), FakeClock()
    run = run_on(Store(backend, clock=clock, backoff=Backoff(attempts=2, clock=clock)), clock)
    capture = OutputCapture(run.jobs, run.lease, flush_seconds=NEVER)
    capture.feed(b"kept")
    backend.is_away = True
    with pytest.raises(IncompleteBatchError, match="1 log lines"):
        capture.close()
    backend.is_away = False
    record = capture.close()
    assert record is not None
    assert capture.close() == record
    assert run.messages() == ["kept"]
    assert text_of(run) == "kept"


def test_neither_a_job_nor_its_lines_wait_for_object_storage_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = run_in_memory()
    put = run.jobs.objects.put
    asked, may_answer, has_answered = threading.Event(), threading.Event(), threading.Event()

    def answer_late(key: str, source: Source) -> ObjectInfo:
        asked.set()
        may_answer.wait()
        has_answered.set()
        return put(key, source)

    monkeypatch.setattr(run.jobs.objects, "put", answer_late)
    with OutputCapture(run.jobs, run.lease, flush_seconds=0.01) as capture:
        try:
            capture.feed(b"before\n")
            run.clock.advance(UPLOAD_SECONDS)
            asked.wait()
            capture.feed(b"after\n")
            while run.messages() != ["before", "after"]:
                time.sleep(0.01)
            assert not has_answered.is_set()
        finally:
            may_answer.set()
    assert text_of(run) == "before\nafter\n"
