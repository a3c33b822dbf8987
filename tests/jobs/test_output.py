"""What a process prints and logs: sent in one order, stored within a budget."""

from __future__ import annotations

import io
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from queue import SimpleQueue

import pytest
from tests.jobs.runs import AwayBackend, Run, run_in_memory, run_on

from jobtable.errors import IncompleteBatchError, JobtableError
from jobtable.jobs.report.captured_output import Flushed, LineSender, OutputCapture
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.report.log_lines import LONGEST_MESSAGE_BYTES, OWN_LINE
from jobtable.jobs.report.log_text import UPLOAD_SECONDS, TextSpool
from jobtable.objects import ObjectInfo, Source
from jobtable.store import Backoff, Store
from jobtable.testing import FakeClock

NEVER = 3600.0


class Task:
    """A task as its worker sees it: a pipe that it prints to, and a context that sends through the same pipe."""

    def __init__(self, run: Run, capture: OutputCapture, end: int) -> None:
        self.stdout = io.TextIOWrapper(os.fdopen(end, "wb"), line_buffering=True)
        self.sender = LineSender([self.stdout], capture.key)
        self.context = JobContext(run.jobs, run.lease, flush_seconds=NEVER, sender=self.sender)
        self.capture = capture
        capture.on_flushed = self.sender.hear

    def print(self, text: str, end: str = "\n") -> None:
        self.stdout.write(text + end)


@contextmanager
def task_of(run: Run, *, lines_at_once: int = 1000, lines_per_second: float = 100) -> Iterator[Task]:
    """A task whose output is captured; when the block ends, all of it is stored."""
    limits = {"lines_at_once": lines_at_once, "lines_per_second": lines_per_second}
    with OutputCapture(run.jobs, run.lease, flush_seconds=NEVER, **limits) as capture:  # type: ignore[arg-type]
        ours, theirs = os.pipe()

        def drain() -> None:
            while data := os.read(ours, 1 << 16):
                capture.feed(data)

        drainer = threading.Thread(target=drain)
        drainer.start()
        task = Task(run, capture, theirs)
        try:
            yield task
        finally:
            task.stdout.close()
            os.close(task.sender._fd)
            drainer.join()
            os.close(ours)


def text_of(run: Run) -> str:
    return b"".join(run.logs.full_text(run.job_id)).decode("utf-8", "replace")


def test_lines_are_stored_in_the_order_in_which_they_were_printed_and_logged() -> None:
    run = run_in_memory()
    with task_of(run) as task:
        for number in range(50):
            task.print(f"printed {number}")
            task.context.log(f"logged {number}")
        task.print("half a line", end="")
        task.context.log("after it")
    expected = [f"{how} {number}" for number in range(50) for how in ("printed", "logged")]
    assert run.messages() == [*expected, "half a line", "after it"]
    assert [line.split(" INFO     ")[-1] for line in text_of(run).splitlines()] == run.messages()


def test_a_line_keeps_its_level_source_exception_and_time(each_store: Store) -> None:
    run = run_on(each_store, config={"logs_ttl_seconds": 60})
    with task_of(run) as task:
        task.context.log("lögged\nin two \x1e lines\r", "WARNING", source="mine", exception=ValueError("no\ud800"))
        task.context.flush()
        (line,) = run.logs.lines(run.job_id)
    assert (line.message, line.log_level, line.source) == ("lögged\nin two \x1e lines\r", "WARNING", "mine")
    assert line.exception == "ValueError: no\\ud800"
    assert line.time_to_live is not None
    assert text_of(run).splitlines()[1:] == ["in two ", " lines", "ValueError: no\\ud800"]


def test_what_is_flushed_or_closed_is_stored() -> None:
    run = run_in_memory()
    with task_of(run) as task:
        task.context.log("one")
        assert run.messages() == []
        task.context.flush()
        assert run.messages() == ["one"]
        task.context.log("two")
        task.context.checkpoint(b"state")
        assert run.messages() == ["one", "two"]
        task.context.log("three")
        task.context.close()
        task.context.log("four")
        assert run.messages() == ["one", "two", "three", "four"]


def test_threads_that_flush_at_once_all_wait_for_an_answer() -> None:
    run = run_in_memory()
    with task_of(run) as task:
        task.context.log("one")
        hear, answers = task.sender.hear, SimpleQueue[Flushed]()
        task.capture.on_flushed = answers.put
        threads = [threading.Thread(target=task.sender.flush) for _ in range(2)]
        for thread in threads:
            thread.start()
        waiting = [answers.get() for _ in threads]
        assert all(thread.is_alive() for thread in threads)
        for answer in waiting:
            hear(answer)
        for thread in threads:
            thread.join()


def test_a_flush_that_fails_says_so_and_loses_nothing() -> None:
    backend, clock = AwayBackend(), FakeClock()
    run = run_on(Store(backend, clock=clock, backoff=Backoff(attempts=2, clock=clock)), clock)
    with task_of(run) as task:
        task.context.log("kept")
        backend.is_away = True
        with pytest.raises(IncompleteBatchError, match=r"could not store the log of job .*: .*the store is away"):
            task.context.flush()
        backend.is_away = False
        task.context.flush()
        assert run.messages() == ["kept"]


def test_a_worker_that_stores_nothing_any_more_lets_nobody_wait() -> None:
    run = run_in_memory()
    with task_of(run) as task:
        task.sender.hear(Flushed(None, "its output cannot be stored", is_passing=False))
        task.context.log("lost")
        with pytest.raises(JobtableError, match="its output cannot be stored"):
            task.context.flush()


def test_long_lines_of_many_threads_arrive_whole_among_the_output_of_others() -> None:
    run = run_in_memory()
    noise = "for _ in range(300): print('noise' * 100, flush=True)"
    with task_of(run) as task, ThreadPoolExecutor(4) as threads:
        other = subprocess.Popen([sys.executable, "-c", noise], stdout=task.stdout.fileno())
        list(threads.map(lambda number: task.context.log(f"{number} " + "ü" * 5_000), range(40)))
        other.wait()
    logged = [message for message in run.messages() if "noise" not in message]
    assert sorted(logged) == sorted(f"{number} " + "ü" * 5_000 for number in range(40))
    assert run.messages().count("noise" * 100) == 300


def test_a_message_that_is_cut_in_the_table_is_whole_in_the_full_text() -> None:
    run = run_in_memory()
    with task_of(run) as task:
        task.context.log("ü" * LONGEST_MESSAGE_BYTES)
        task.print("next")
    cut, last = run.messages()
    assert cut.endswith(f"[cut here: {2 * LONGEST_MESSAGE_BYTES:,} bytes]")
    assert last == "next"
    assert text_of(run).splitlines()[0].endswith("INFO     " + "ü" * LONGEST_MESSAGE_BYTES)
    assert text_of(run).splitlines()[1:] == ["next"]


def test_logged_lines_are_stored_however_much_is_printed_around_them() -> None:
    run = run_in_memory()
    with task_of(run, lines_at_once=2, lines_per_second=0) as task:
        for number in range(3):
            task.print("flood\n" * 1_000, end="")
            task.context.log(f"logged {number}")
    note = "{} lines of output were left out here; the full text has them"
    last = ["flood"] * 20
    assert run.messages() == [
        *["flood"] * 2,
        *[note.format(978), *last, "logged 0"],
        *[note.format("1,000"), "logged 1"],
        *[note.format("1,000"), "logged 2"],
    ]
    assert text_of(run).count("flood\n") == 3_000


def test_what_a_program_prints_behind_the_same_mark_is_its_own() -> None:
    run = run_in_memory()
    with task_of(run) as task:
        task.print(OWN_LINE.decode() + '{"json": "sequence"}')
        task.print(OWN_LINE.decode() + task.sender._prefix[1:].decode() + "l1.nonsense")
    assert run.messages() == ['{"json": "sequence"}']


def test_a_task_may_put_something_else_in_the_place_of_its_standard_output() -> None:
    run = run_in_memory()
    with task_of(run) as task, open(os.devnull, "wb") as nowhere:
        os.set_blocking(task.stdout.fileno(), False)
        os.dup2(nowhere.fileno(), task.stdout.fileno())
        for number in range(200):
            task.context.log(f"{number} " + "x" * 1_000)
    assert [int(message.split()[0]) for message in run.messages()] == list(range(200))


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
