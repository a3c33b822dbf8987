"""The command line in this process, as a real process, and the commands that serve APIs of AWS as ones that go on."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from jobtable import connect
from jobtable.app import open_jobs
from jobtable.cli.main import app
from jobtable.jobs.worker.holding import WorkerReport
from jobtable.jobs.worker.worker import Worker

CTRL_C = b"\x03"
JOBTABLE = Path(sys.executable).parent / "jobtable"


class ServeProcess:
    """A running server: its endpoint, and how it is ended."""

    def __init__(self, *arguments: str, of: str = "dynamodb", folder: Path | None = None) -> None:
        command = [str(JOBTABLE), of, "serve", "--port", "0", *arguments]
        # No terminal width or colour of the person who runs the tests gets into what is compared.
        environment = os.environ | {"NO_COLOR": "1", "TERM": "dumb"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder
        )
        assert self.process.stdout is not None
        self.greeting = self.process.stdout.readline()
        found = re.search(r"http://\S+", self.greeting)
        if found is None:
            _, complaints = self.process.communicate(timeout=120)
            pytest.fail(f"the server did not start: {self.greeting}{complaints}")
        self.url = found[0]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal and wait; gives the exit code and what was printed since the greeting."""
        self.process.send_signal(number)
        printed, complaints = self.process.communicate(timeout=120)
        return self.process.returncode, printed, complaints


@pytest.fixture
def serve() -> Iterator[Callable[..., ServeProcess]]:
    """Start a server with some arguments; it ends with the test."""
    started: list[ServeProcess] = []

    def start(*arguments: str, **options: Any) -> ServeProcess:
        started.append(ServeProcess(*arguments, **options))
        return started[-1]

    yield start
    for server in reversed(started):  # one whose store is gone waits for it
        if server.process.poll() is None:
            server.stop(signal.SIGKILL)


def run_in_terminal(
    folder: Path,
    *command: str,
    awaited: bytes = b"",
    act: Callable[[], object] = lambda: None,
    answer: bytes = b"",
    **variables: str,
) -> tuple[int, str]:
    """Run a command in a terminal, and when it says something, or what is awaited, act and type the answer.

    Gives its code and what was shown.
    """
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(JOBTABLE), *command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "200"} | variables,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY),  # noqa: PLW1509 - it takes no lock
    ) as process:
        os.close(theirs)
        try:
            shown = some = _read(ours)
            while some and awaited not in shown:
                some = _read(ours)
                shown += some
            act()
            # A signal that comes just before the command begins to read would be seen only after what it reads.
            time.sleep(0.2)
            os.write(ours, answer)
            while some := _read(ours):
                shown += some
        except BaseException:  # the test has taken too long, and is not to wait for the command on top of it
            process.kill()
            raise
    os.close(ours)
    return process.returncode, shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # how Linux tells that nobody writes any more
        return b""


class CommandLine:
    """The command line on one store, in this process."""

    def __init__(self, folder: Path) -> None:
        self.store = f"file:{folder / 'jobs.db'}"

    def make_store(self) -> None:
        """Make the store, with nothing in it."""
        connect(self.store).close()

    def run(self, *arguments: str, code: int = 0) -> Result:
        """Run a command, which is expected to end with this code."""
        result = CliRunner().invoke(app, list(arguments), env={"JOBTABLE_STORE": self.store, "TERM": "dumb"})
        assert result.exit_code == code, f"{result.exit_code}: {result.output}"
        return result

    def json(self, *arguments: str, code: int = 0) -> Any:
        """What a command prints as JSON."""
        return json.loads(self.run(*arguments, "--json", code=code).stdout)

    def work(self) -> WorkerReport:
        """Run everything that is in the default queue."""
        return Worker(partial(open_jobs, self.store), ["default"], mode="inline", until_empty=True).run()


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line on a new store, in a new folder."""
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path)
