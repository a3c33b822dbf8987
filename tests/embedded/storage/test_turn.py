"""The queue of writer processes: in order, and not stopped by a process that dies or stands still."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobtable.embedded.storage.turn import Turn

HOLD = """
import sys
from jobtable.embedded.storage.turn import Turn
turn = Turn(sys.argv[1])
print("asking", flush=True)
with turn:
    print("mine", flush=True)
    sys.stdin.readline()
turn.close()
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@contextmanager
def process(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that asks for the turn, and holds it until it reads a line."""
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout
            assert running.stdout.readline() == "asking\n"
            yield running
        finally:
            running.kill()


def says_mine(running: subprocess.Popen[str]) -> bool:
    assert running.stdout
    return running.stdout.readline() == "mine\n"


def let_go(running: subprocess.Popen[str]) -> None:
    assert running.stdin
    running.stdin.write("\n")
    running.stdin.flush()


def wait_for_tickets(turn: Turn, number: int) -> None:
    while turn._number(8) < number:
        threading.Event().wait(0.005)


def test_processes_are_served_in_the_order_in_which_they_asked(lock: Path) -> None:
    turn = Turn(str(lock))
    with turn, process(lock) as first:
        wait_for_tickets(turn, 1)
        with process(lock) as second:
            wait_for_tickets(turn, 2)
            turn.__exit__()
            assert says_mine(first)
            let_go(first)
            assert says_mine(second)
            let_go(second)
    turn.close()


def test_the_turn_of_a_killed_process_ends(lock: Path) -> None:
    turn = Turn(str(lock))
    with process(lock) as holder:
        assert says_mine(holder)
        holder.send_signal(signal.SIGKILL)
        with turn:
            pass
    turn.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_stops_in_the_line_does_not_stop_the_others(lock: Path, number: signal.Signals) -> None:
    turn = Turn(str(lock))
    turn.__enter__()
    with process(lock) as waiting:
        wait_for_tickets(turn, 1)
        waiting.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitpid(waiting.pid, os.WUNTRACED)
        turn.__exit__()
        turns = 0
        for _ in range(3):
            with turn:
                turns += 1
        assert turns == 3
    turn.close()


def test_a_changed_catalogue_is_announced_to_every_process(lock: Path) -> None:
    one, other = Turn(str(lock)), Turn(str(lock))
    one.announce(7)
    assert other.catalogue_version() == Turn.label(7)
    assert lock.stat().st_mode & 0o777 == 0o600
    one.close()
    other.close()
