"""What is done in the background while a command runs on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from jobtable.app import Services
from jobtable.cli.output import say


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


def watched(services: Services) -> AbstractContextManager[None]:
    """Look after album executions while the block runs."""
    watch = services.album_watch
    return beside(lambda is_over: watch.keep(is_over.wait, say), "watch over executions")
