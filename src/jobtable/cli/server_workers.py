"""The workers of a server: a command that has started something there waits for them as for its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self, TypeVar

from jobtable.app import Services
from jobtable.cli.job_waiting import say_what_nobody_serves
from jobtable.cli.local_workers import LocalWorkers, look_until
from jobtable.settings import Settings

_PAUSE_SECONDS = 0.5
T = TypeVar("T")


class ServerWorkers:
    """Nothing is started while the block runs: the work is done elsewhere, whether somebody waits here or not."""

    def __init__(self, services: Services, queues: Sequence[str]) -> None:
        self._services = services
        self._queues = queues

    def __enter__(self) -> Self:
        say_what_nobody_serves(self._services.jobs, self._queues)
        return self

    def __exit__(self, *_: object) -> None:
        return

    def check(self) -> None:
        """Whether a worker is left, nobody here can say."""

    def poll(self, look: Callable[[], T], is_done: Callable[[T], bool], show: Callable[[T], None]) -> T:
        """Look again and again until it is done; gives what was seen last."""
        return look_until(look, is_done, show, partial(self._services.store.clock.sleep, _PAUSE_SECONDS))


def workers_for(
    services: Services, settings: Settings, queues: Sequence[str], **options: Any
) -> LocalWorkers | ServerWorkers:
    """Who works on the queues while a command waits: workers beside it, or those of the server that it speaks to."""
    if settings.server is not None:
        return ServerWorkers(services, queues)
    return LocalWorkers(settings, queues, **options)
