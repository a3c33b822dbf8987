"""`jobtable dynamodb serve` as a real process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

JOBTABLE = Path(sys.executable).parent / "jobtable"


class ServeProcess:
    """A running server: its endpoint, and how it is ended."""

    def __init__(self, *arguments: str) -> None:
        command = [str(JOBTABLE), "dynamodb", "serve", "--port", "0", *arguments]
        # No terminal width or colour of the person who runs the tests gets into what is compared.
        environment = os.environ | {"NO_COLOR": "1", "TERM": "dumb"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        self.greeting = self.process.stdout.readline()
        found = re.search(r"http://\S+", self.greeting)
        if found is None:
            _, complaints = self.process.communicate(timeout=20)
            pytest.fail(f"the server did not start: {self.greeting}{complaints}")
        self.url = found[0]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal and wait; gives the exit code and what was printed since the greeting."""
        self.process.send_signal(number)
        printed, complaints = self.process.communicate(timeout=30)
        return self.process.returncode, printed, complaints


@pytest.fixture
def serve() -> Iterator[Callable[..., ServeProcess]]:
    """Start a server with some arguments; it ends with the test."""
    started: list[ServeProcess] = []

    def start(*arguments: str) -> ServeProcess:
        started.append(ServeProcess(*arguments))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.stop(signal.SIGKILL)
