"""A worker in a process of its own, started again when it dies."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from jobtable.cli.output import say
from jobtable.settings import Settings, variable

_LOOK_SECONDS = 0.2
_PAUSE_SECONDS = 1.0
_DRAIN_SECONDS = 5.0


def worker_command(settings: Settings, queues: Sequence[str], *, slots: int, drain_seconds: float) -> list[str]:
    """The command of a worker on these queues; where its store is, its environment says."""
    command = [sys.executable, "-m", "jobtable", "worker", f"--slots={slots}"]
    command += [f"--lease-seconds={settings.lease_seconds}", f"--drain-seconds={drain_seconds}"]
    return command + [f"--queue={queue}" for queue in dict.fromkeys(queues)]


def worker_environment(settings: Settings) -> dict[str, str]:
    """The environment of a worker: a store's URL may hold a secret, and everybody can read command lines."""
    environment = {**os.environ, variable("store"): settings.store}
    if settings.objects is not None:
        environment[variable("objects")] = settings.objects
    return environment


class WorkerProcess:
    """Runs `jobtable worker` beside this process while its block runs, then lets it drain."""

    def __init__(self, settings: Settings, queues: Sequence[str]) -> None:
        self._command = worker_command(settings, queues, slots=settings.slots, drain_seconds=_DRAIN_SECONDS)
        self._environment = worker_environment(settings)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="worker")
        self._process = self._start()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._process.terminate()
        self._process.wait()

    def hurry(self) -> None:
        """Let it not wait for jobs that run: a second signal."""
        if self._is_over.is_set():
            self._process.terminate()

    def _start(self) -> subprocess.Popen[bytes]:
        # In a session of its own, so that Ctrl-C in a terminal reaches it once, and from here.
        return subprocess.Popen(self._command, env=self._environment, stdout=subprocess.DEVNULL, start_new_session=True)

    def _keep(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            code = self._process.poll()
            if code is not None:
                say(f"The worker ended with code {code}; it is started again.")
                if not self._is_over.wait(_PAUSE_SECONDS):
                    self._process = self._start()
