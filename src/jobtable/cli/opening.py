"""Opening what a command works on, with a word to the person who waits for it."""

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
    """The store alone that the settings name; to be used in a `with` statement."""
    with _telling_of_wait(settings):
        return connect(settings.store)


def services_of(settings: Settings, *, is_dry_run: bool = False) -> Services:
    """The services that the settings name; to be used in a `with` statement. A dry run creates nothing."""
    with _telling_of_wait(settings):
        return Services.from_settings(settings, creates=not is_dry_run)


def wait_for_store(settings: Settings) -> None:
    """Wait as long as another program keeps the store's file locked, for a command that runs on until it is stopped.

    It is told once, and also where no one looks on: who looks into its log later finds what it was at.
    """
    if not _is_file(settings):
        return
    with _telling(settings):
        while True:
            with suppress(StorageLocked):
                connect(settings.store).close()
                return


def _is_file(settings: Settings) -> bool:
    return settings.server is None and settings.store.startswith("file:")


def _telling_of_wait(settings: Settings) -> AbstractContextManager[None]:
    """Tell a person at a terminal, once, that a file is waited for: it opens in a moment unless somebody locks it."""
    is_seen = sys.stderr is not None and sys.stderr.isatty()  # None: it is closed
    return _telling(settings) if _is_file(settings) and is_seen else nullcontext()


@contextmanager
def _telling(settings: Settings) -> Iterator[None]:
    for module in _LOADED_WHEN_OPENED:  # which takes seconds on a busy machine, and nobody locks anything meanwhile
        import_module(module)
    word = f"Waiting for {store_file(settings.store)}, which another program keeps locked or is writing to ..."
    timer = threading.Timer(_SECONDS_WITHOUT_WORD, say, [word])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
