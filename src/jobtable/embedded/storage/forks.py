"""No SQLite connection crosses a fork: all are closed before it, and opened again when they are needed.

A child that inherited a connection would share locks with its parent that the kernel knows nothing of.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import Protocol


class Forkable(Protocol):
    """Something that must be still while its process forks."""

    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


_registered: weakref.WeakSet[Forkable] = weakref.WeakSet()
_paused: list[Forkable] = []
_lock = threading.RLock()
"""Held by a thread that forks, and by one that opens a storage: until that is registered, nobody would pause it."""


def held_back() -> AbstractContextManager[object]:
    """`with held_back():` no other thread forks meanwhile."""
    return _lock


def register(storage: Forkable) -> None:
    """Call the storage around every later fork, as long as it is in use."""
    with _lock:
        _registered.add(storage)


def unregister(storage: Forkable) -> None:
    """Forget a closed storage."""
    with _lock:
        _registered.discard(storage)


def _before() -> None:
    _lock.acquire()
    for storage in list(_registered):
        storage.before_fork()
        _paused.append(storage)


def _after_in_parent() -> None:
    while _paused:
        _paused.pop().after_fork_in_parent()
    _lock.release()


def _after_in_child() -> None:
    while _paused:
        _paused.pop().after_fork_in_child()
    _lock.release()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
