"""How a command that runs on is told to end."""

from __future__ import annotations

import signal
import threading


def signalled() -> threading.Event:
    """An event that the first SIGTERM or SIGINT sets; the second one ends the process at once."""
    stop = threading.Event()

    def on_signal(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop
