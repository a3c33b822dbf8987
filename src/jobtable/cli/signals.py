"""How a command that runs on is told to end."""

from __future__ import annotations

import signal
import time

_LOOK_SECONDS = 0.1


class StopSignal:
    """Whether the signal to end has come.

    It is no threading.Event. A signal that the system hands to another thread does not wake the main one from waiting
    for a lock, and only that one runs handlers; and a handler that sets an event may interrupt the very thread that has
    its lock.
    """

    def __init__(self) -> None:
        self._has_come = False

    def come(self) -> None:
        """Note that it has."""
        self._has_come = True

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has come, or no longer than so many seconds; says whether it has."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self._has_come:
            left = _LOOK_SECONDS if until is None else until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, _LOOK_SECONDS))
        return True


def signalled() -> StopSignal:
    """Tells of the first SIGTERM or SIGINT; the second one ends the process at once."""
    stop = StopSignal()

    def on_signal(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.come()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop
