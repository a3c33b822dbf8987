"""What is done in the background while a command runs on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Protocol

from jobtable.app import Services
from jobtable.cli.output import say
from jobtable.system import declared


@contextmanager
def beside(work: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Let a thread work while the block runs. It ends when the event is set that it is given."""
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,), name=name)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


class Upkeep(Protocol):
    """What a system needs to have done beside a server or a worker."""

    def keep(self, wait: Callable[[float], bool], say: Callable[[str], None]) -> None:
        """Go on until `wait(seconds)` returns True; `say` shows a line to the person who watches."""


def _keep(upkeep: Upkeep, is_over: threading.Event) -> None:
    upkeep.keep(is_over.wait, say)


@contextmanager
def kept_up(services: Services, queues: Collection[str] | None = None) -> Iterator[None]:
    """Run the upkeep of the systems while the block runs: of all, or of those that have one of the queues."""
    with ExitStack() as running:
        for system, path in declared("upkeep"):
            if queues is None or not set(queues).isdisjoint(system.queues):
                work = partial(_keep, services.get(system.load(path)))
                running.enter_context(beside(work, f"upkeep of {system.name}"))
        yield
