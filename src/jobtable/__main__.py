"""The command `jobtable`, also run by `python -m jobtable`."""

from __future__ import annotations

import os
import signal
import sys

_INTERRUPTED = 130


def run() -> None:
    """Run the command line. While it loads and after it ends, Ctrl-C exits at once: there is nothing to clean up."""
    handles_signal = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a script may ignore it
    if handles_signal:
        signal.signal(signal.SIGINT, _exit_at_once)
    from jobtable.cli.main import run as run_command  # noqa: PLC0415 - it takes a moment

    if handles_signal:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run_command()
    except KeyboardInterrupt:  # before the command handles it itself
        sys.exit(_INTERRUPTED)
    finally:
        if handles_signal:
            signal.signal(signal.SIGINT, _exit_at_once)


def _exit_at_once(signum: int, frame: object) -> None:
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    run()
