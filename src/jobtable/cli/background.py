"""Threads that work beside a command, and the signal that stops it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Protocol

from jobtable.app import Services
from jobtable.cli.output import say
from jobtable.system import declared
from jobtable.workflows.table_and_queues import QUEUES

_LOOK_SECONDS = 0.1


@contextmanager
def beside(work: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run `work` in a thread while the block runs; it must return when its event is set."""
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,), name=name)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


class SystemUpkeep(Protocol):
    """Work of a system, or of the core, that must run beside a server or a worker."""

    def keep(self, wait: Callable[[float], bool], say: Callable[[str], None], /) -> None:
        """Work until `wait(seconds)` returns True; `say` prints a line for people."""


def _keep(upkeep: SystemUpkeep, is_over: threading.Event) -> None:
    upkeep.keep(is_over.wait, say)


@contextmanager
def kept_up(services: Services, queues: Collection[str] | None = None) -> Iterator[None]:
    """Run the upkeep of the inbox and of the systems while the block runs: all, or what has one of the queues."""
    with ExitStack() as running:
        if queues is None or not set(queues).isdisjoint(QUEUES):
            from jobtable.inbox.inbox_watch import InboxWatch  # noqa: PLC0415 - loads all that runs workflows

            running.enter_context(beside(partial(_keep, InboxWatch(services.engine)), "upkeep of the inbox"))
        for system, path in declared("upkeep"):
            if queues is None or not set(queues).isdisjoint(system.queues):
                work = partial(_keep, services.get(system.load(path)))
                running.enter_context(beside(work, f"upkeep of {system.name}"))
        yield


class StopSignal:
    """Whether the signal to stop has arrived.

    A threading.Event will not do. A signal that another thread receives does not wake the main thread, which runs the
    handlers, from waiting for a lock; and a handler that sets an event may interrupt the thread that holds its lock.
    """

    def __init__(self) -> None:
        self._has_come = False

    def come(self) -> None:
        """Note that it has arrived."""
        self._has_come = True

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it arrives, or for at most so many seconds; return whether it has."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self._has_come:
            left = _LOOK_SECONDS if until is None else until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, _LOOK_SECONDS))
        return True


def signalled() -> StopSignal:
    """Return a signal for the first SIGTERM or SIGINT; the second one ends the process at once."""
    stop = StopSignal()

    def on_signal(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.come()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop
