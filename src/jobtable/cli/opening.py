"""Opening what a command works on, with a word to the person who waits for it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from jobtable.app import Services
from jobtable.cli.output import say
from jobtable.connection import connect, store_file
from jobtable.settings import Settings
from jobtable.store import Store

_SECONDS_WITHOUT_WORD = 1.0


def store_of(settings: Settings) -> Store:
    """The store alone that the settings name; to be used in a `with` statement."""
    with _telling_of_wait(settings):
        return connect(settings.store)


def services_of(settings: Settings, *, is_dry_run: bool = False) -> Services:
    """The services that the settings name; to be used in a `with` statement. A dry run creates nothing."""
    with _telling_of_wait(settings):
        return Services.from_settings(settings, creates=not is_dry_run)


@contextmanager
def _telling_of_wait(settings: Settings) -> Iterator[None]:
    """Tell a person at a terminal, once, that a file is waited for: it opens in a moment unless somebody locks it."""
    is_file = settings.server is None and settings.store.startswith("file:")
    if not is_file or sys.stderr is None or not sys.stderr.isatty():  # None: it is closed
        yield
        return
    word = f"Waiting for {store_file(settings.store)}, which another program keeps locked or is writing to ..."
    timer = threading.Timer(_SECONDS_WITHOUT_WORD, say, [word])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
