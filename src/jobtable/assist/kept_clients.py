"""The clients that a provider keeps open."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """What has connections."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class KeptClients(Generic[C]):
    """Clients that are made when they are first used and closed with their owner. None crosses a fork.

    `make` must not refer to the owner, or both stay for ever.
    """

    def __init__(self, owner: object, make: Callable[..., C]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._kept: dict[tuple[int, Hashable], C] = {}
        # Without it, the collector may find the sockets first, which then warn that nobody has closed them.
        weakref.finalize(owner, _close_own, self._kept).atexit = False

    def get(self, *parameters: Hashable) -> C:
        """Return the client of this process with these parameters."""
        with self._lock:
            key = os.getpid(), parameters
            if key not in self._kept:
                self._kept[key] = self._make(*parameters)
            return self._kept[key]

    def close(self) -> None:
        """Close the clients of this process."""
        with self._lock:
            _close_own(self._kept)


def _close_own(kept: dict[tuple[int, Hashable], C]) -> None:
    for key in [each for each in kept if each[0] == os.getpid()]:
        kept.pop(key).close()
