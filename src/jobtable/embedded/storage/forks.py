"""No SQLite connection crosses a fork: all are closed before it, and opened again when they are needed.

A child that inherited a connection would share locks with its parent that the kernel knows nothing of.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something that must be still while its process forks."""

    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


_registered: weakref.WeakValueDictionary[int, Forkable] = weakref.WeakValueDictionary()
"""By their ids, in whose order they are paused: two threads that fork do not wait for each other."""
_paused = threading.local()
"""Of each thread that forks: what it has paused, as `storages`."""


def register(storage: Forkable) -> None:
    """Call the storage around every later fork, as long as it is in use."""
    _registered[id(storage)] = storage


def unregister(storage: Forkable) -> None:
    """Forget a closed storage."""
    _registered.pop(id(storage), None)


def _before() -> None:
    _paused.storages = []
    # Their references are taken in one step: an iteration would fail where another thread opens a storage meanwhile.
    found = (reference() for reference in _registered.valuerefs())
    for storage in sorted((one for one in found if one is not None), key=id):
        storage.before_fork()
        _paused.storages.append(storage)


def _after_in_parent() -> None:
    while _paused.storages:
        _paused.storages.pop().after_fork_in_parent()


def _after_in_child() -> None:
    while _paused.storages:
        _paused.storages.pop().after_fork_in_child()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
