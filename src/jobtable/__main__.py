"""The command `jobtable`, which is `python -m jobtable` too."""

from __future__ import annotations

import os
import signal
import sys

_INTERRUPTED = 130


def run() -> None:
    """Run the command line. While it is loaded, and at its end, Ctrl-C has nothing to clean up: it ends at once."""
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a job of a script may ignore it
    if is_heeded:
        signal.signal(signal.SIGINT, _end_at_once)
    from jobtable.cli.main import run as run_command  # noqa: PLC0415 - it takes a moment

    if is_heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run_command()
    except KeyboardInterrupt:  # before the command is made ready to handle it itself
        sys.exit(_INTERRUPTED)
    finally:
        if is_heeded:
            signal.signal(signal.SIGINT, _end_at_once)


def _end_at_once(signum: int, frame: object) -> None:
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    run()
