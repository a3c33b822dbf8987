"""The thread that flushes."""

from __future__ import annotations

import threading

import pytest

from jobtable.jobs.report.buffer import Flusher


def test_a_failing_flush_is_tried_again_and_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    outcomes = iter([OSError("away"), OSError("away"), None, OSError("away again")])
    turn = threading.Semaphore(0)

    def flush() -> None:
        outcome = next(outcomes)
        turn.release()
        if outcome is not None:
            raise outcome

    flusher = Flusher(flush, 3600, "log of job 1")
    for _ in range(4):
        flusher.wake()
        turn.acquire()
    flusher.close()
    assert [record.getMessage() for record in caplog.records] == [
        "could not store the log of job 1; will retry: away",
        "could not store the log of job 1; will retry: away again",
    ]


def test_closing_while_it_is_woken_ends_it_at_once() -> None:
    for _ in range(50):
        flusher = Flusher(lambda: None, 3600, "log")
        flusher.wake()
        flusher.close()
        assert not flusher.is_current
