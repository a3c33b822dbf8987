"""How a command opens its store, and says so if that takes long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module

from jobtable.app import Services
from jobtable.cli.output import say
from jobtable.connection import connect, store_file
from jobtable.errors import StorageLocked
from jobtable.settings import Settings
from jobtable.store import Store

_SECONDS_WITHOUT_WORD = 1.0
_LOADED_WHEN_OPENED = ("jobtable.embedded", "jobtable.objects")


def store_of(settings: Settings) -> Store:
    """Open the store alone that the settings name."""
    with _saying_in_terminal(settings):
        return connect(settings.store)


def services_of(settings: Settings, *, is_dry_run: bool = False) -> Services:
    """Open the services that the settings name. A dry run creates nothing."""
    with _saying_in_terminal(settings):
        return Services.from_settings(settings, creates=not is_dry_run)


def wait_for_store(settings: Settings) -> None:
    """Wait while another program keeps the store's file locked, for a command that runs until it is stopped.

    It says so once, with or without a terminal, for readers of its log.
    """
    if not _is_file(settings):
        return
    with _saying(settings):
        while True:
            with suppress(StorageLocked):
                connect(settings.store).close()
                return


def _is_file(settings: Settings) -> bool:
    return settings.server is None and settings.store.startswith("file:")


def _saying_in_terminal(settings: Settings) -> AbstractContextManager[None]:
    """Say in a terminal, once, that the command waits for a locked file."""
    is_seen = sys.stderr is not None and sys.stderr.isatty()  # None: it is closed
    return _saying(settings) if _is_file(settings) and is_seen else nullcontext()


@contextmanager
def _saying(settings: Settings) -> Iterator[None]:
    for module in _LOADED_WHEN_OPENED:  # takes seconds on a busy machine, which is no wait for a lock
        import_module(module)
    word = f"Waiting for {store_file(settings.store)}, which another program keeps locked ..."
    timer = threading.Timer(_SECONDS_WITHOUT_WORD, say, [word])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
