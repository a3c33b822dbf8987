"""Workers while a command waits: started by it on this machine, or those of its server."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import IO, Any, Self, TypeVar

from jobtable.app import Services
from jobtable.cli.background import beside
from jobtable.cli.job_waiting import say_what_nobody_serves
from jobtable.cli.output import say
from jobtable.errors import TaskError
from jobtable.settings import Settings, variable

_DRAIN_SECONDS = 5.0
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
_SERVER_PAUSE_SECONDS = 0.5
_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 1.0, 60.0
T = TypeVar("T")


def look_until(
    look: Callable[[], T], is_done: Callable[[T], bool], show: Callable[[T], None], wait: Callable[[], None]
) -> T:
    """Look, show and wait until it is done; return what was seen last."""
    while True:
        seen = look()
        show(seen)
        if is_done(seen):
            return seen
        wait()


class LocalWorkers:
    """Worker processes while the block runs. At its end they release their unfinished jobs.

    They also do so when this process is killed: each reads from a pipe whose other end is here. Their messages go to
    stderr, or are kept for `check` if they are quiet.
    """

    def __init__(
        self,
        settings: Settings,
        queues: Sequence[str],
        *,
        count: int = 1,
        slots: int = 1,
        preload: Sequence[str] = (),
        inline: bool = False,
        small: Sequence[str] = (),
        quiet: bool = True,
    ) -> None:
        """Serve the queues with `count` workers; one more serves those of `small` jobs, in its own process."""
        command = _command(settings, queues, slots=slots, preload=preload, inline=inline)
        beside = _command(settings, small, slots=1, preload=preload, inline=True)
        self._commands = [command] * count + ([beside] if small else [])
        self._environment = _environment(settings)
        self._count = count
        self._is_quiet = quiet
        self._is_over = False
        self._started: list[subprocess.Popen[bytes]] = []
        self._said: IO[str] | None = None

    def __enter__(self) -> Self:
        if self._is_quiet:
            # A file, not a pipe: nothing reads it while they work.
            self._said = tempfile.TemporaryFile("w+")
        self._started = [self._start(command) for command in self._commands]
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._terminate()
        try:
            self._wait()
        except KeyboardInterrupt:
            self.hurry()
            self._wait()
            raise
        finally:
            if self._said is not None:
                self._said.close()

    def hurry(self) -> None:
        """Send stopping workers a second signal: they wait no longer for their jobs."""
        if self._is_over:
            self._terminate()

    def check(self) -> None:
        """Raise if every worker of some queue exited."""
        crews = (self._started[: self._count], self._started[self._count :])
        if all(any(worker.poll() is None for worker in crew) for crew in crews if crew):
            return
        said: list[str] = []
        if self._said is not None:
            self._said.seek(0)
            said = self._said.read().strip().splitlines()
        code = next(worker.returncode for worker in self._started if worker.returncode is not None)
        raise TaskError(f"every worker exited: {said[-1] if said else f'code {code}'}")

    def replace_dead(self) -> bool:
        """Replace each worker that exited, and say so; return whether any did."""
        dead = [(place, worker) for place, worker in enumerate(self._started) if worker.poll() is not None]
        for place, worker in dead:
            say(f"The worker exited with code {worker.returncode}; restarting it.")
            self._started[place] = self._start(self._commands[place])
        return bool(dead)

    def poll(self, look: Callable[[], T], is_done: Callable[[T], bool], show: Callable[[T], None]) -> T:
        """Look until it is done; return what was seen last, or raise if every worker exited."""

        def wait() -> None:
            self.check()
            time.sleep(_PAUSE_SECONDS)

        return look_until(look, is_done, show, wait)

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        # In its own session: Ctrl-C in a terminal reaches it once, from here.
        return subprocess.Popen(
            command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,
        )

    def _terminate(self) -> None:
        for worker in self._started:
            worker.terminate()

    def _wait(self) -> None:
        for worker in self._started:
            try:
                worker.wait(timeout=_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            if worker.stdin is not None:
                worker.stdin.close()


def _command(
    settings: Settings, queues: Sequence[str], *, slots: int, preload: Sequence[str], inline: bool
) -> list[str]:
    through = [] if settings.server is None else [f"--server={settings.server}"]
    command = [sys.executable, "-m", "jobtable", *through, "worker", "--until-stdin-closes", f"--slots={slots}"]
    command += [f"--lease-seconds={settings.lease_seconds}", f"--drain-seconds={_DRAIN_SECONDS}"]
    command += [f"--queue={queue}" for queue in dict.fromkeys(queues)]
    command += [f"--preload={module}" for module in preload]
    return command + (["--inline"] if inline else [])


def _environment(settings: Settings) -> dict[str, str]:
    """Pass URLs and tokens as variables: they may hold secrets, and everyone can read command lines."""
    if settings.server is None:
        told = {variable("store"): settings.store, variable("objects"): settings.objects}
    else:
        told = {variable("token"): settings.token}
    return {**os.environ, **{name: value for name, value in told.items() if value is not None}}


def kept_alive(workers: LocalWorkers) -> AbstractContextManager[None]:
    """Replace workers that die while the block runs."""

    def keep(is_over: threading.Event) -> None:
        for seconds in looks(workers.replace_dead):
            if is_over.wait(seconds):
                return

    return beside(keep, "watch over the worker")


def looks(replace_dead: Callable[[], bool]) -> Iterator[float]:
    """Yield the seconds before each check of the workers: ever more while they keep dying."""
    seconds = _LOOK_SECONDS
    while True:
        yield seconds
        seconds = min(2 * seconds, _LONGEST_LOOK_SECONDS) if replace_dead() else _LOOK_SECONDS


class ServerWorkers:
    """The workers of the server, which work whether or not a command waits."""

    def __init__(self, services: Services, queues: Sequence[str]) -> None:
        self._services = services
        self._queues = queues

    def __enter__(self) -> Self:
        say_what_nobody_serves(self._services.jobs, self._queues)
        return self

    def __exit__(self, *_: object) -> None:
        return

    def check(self) -> None:
        """Do nothing: whether a worker is left is unknown here."""

    def poll(self, look: Callable[[], T], is_done: Callable[[T], bool], show: Callable[[T], None]) -> T:
        """Look until it is done; return what was seen last."""
        return look_until(look, is_done, show, partial(self._services.store.clock.sleep, _SERVER_PAUSE_SECONDS))


def workers_for(
    services: Services, settings: Settings, queues: Sequence[str], **options: Any
) -> LocalWorkers | ServerWorkers:
    """Return the workers for the queues: local ones, or those of the server that the command uses."""
    if settings.server is not None:
        return ServerWorkers(services, [*queues, *options.get("small", ())])
    return LocalWorkers(settings, queues, **options)
