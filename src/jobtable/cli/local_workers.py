"""Workers that a command starts on this machine, and that end with it."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Self

import typer

from jobtable.cli.worker_process import worker_command, worker_environment
from jobtable.errors import TaskError
from jobtable.settings import Settings

_DRAIN_SECONDS = 2.0
_PATIENCE_SECONDS = 30.0


class LocalWorkers:
    """Worker processes while the block runs. At its end they give back what they have not finished.

    They are of this process's group, so Ctrl-C reaches them too.
    """

    def __init__(
        self, count: int, settings: Settings, queue: str, *, preload: Sequence[str] = (), inline: bool = False
    ) -> None:
        if settings.store.startswith("memory:"):
            raise typer.BadParameter("a store in memory is this process's alone, and workers are others: give --store")
        self._count = count
        self._command = worker_command(settings, [queue], slots=1, drain_seconds=_DRAIN_SECONDS)
        self._command += ["--inline"] if inline else []
        self._environment = worker_environment(settings)
        for module in preload:
            self._command += ["--preload", module]
        self._started: list[subprocess.Popen[bytes]] = []
        self._complaints: IO[str]

    def __enter__(self) -> Self:
        # A file, and not a pipe, because nobody reads it while they work.
        self._complaints = tempfile.TemporaryFile("w+")
        for _ in range(self._count):
            self._started.append(
                subprocess.Popen(
                    self._command, env=self._environment, stdout=subprocess.DEVNULL, stderr=self._complaints
                )
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._started:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        for worker in self._started:
            try:
                worker.wait(timeout=_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        self._complaints.close()

    def check(self) -> None:
        """Raise if no worker is left that could go on."""
        if any(worker.poll() is None for worker in self._started):
            return
        self._complaints.seek(0)
        said = self._complaints.read().strip().splitlines() or [f"exit code {self._started[0].returncode}"]
        raise TaskError(f"every worker has ended: {said[-1]}")
