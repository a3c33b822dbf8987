"""The watch over album executions beside a command that runs on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from jobtable.app import Services
from jobtable.cli.output import say


@contextmanager
def watched(services: Services) -> Iterator[None]:
    """Look after album executions while the block runs."""
    is_over = threading.Event()
    thread = threading.Thread(target=services.album_watch.keep, args=(is_over, say), name="watch over executions")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
