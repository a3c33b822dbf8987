"""Shell completion of ids: the newest ones, if the store answers soon. It prints nothing else."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from itertools import islice

import typer

from jobtable.app import Services
from jobtable.cli.framework import arguments_of
from jobtable.cli.options import chosen_settings, give
from jobtable.jobs.read.listing import JobFilter, newest_first
from jobtable.settings import Settings

_PATIENCE_SECONDS = 1.5
MOST = 100
"""Maximum number of ids offered."""
_OPTIONS = ("server", "token", "store", "objects")

Listed = Callable[[Services], Iterator[str]]


def completed(listed: Listed) -> Callable[[typer.Context, str], list[str]]:
    """Return a completer that offers the first listed ids which start with the typed text."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found: list[str] = []
        # No error may disturb the line being typed; the command itself will report it.
        with contextlib.suppress(Exception):
            look = threading.Thread(target=_look, args=(_settings(ctx), listed, found), daemon=True)
            look.start()
            look.join(_PATIENCE_SECONDS)
        return [each for each in list(found) if each.startswith(incomplete)]

    return complete


def _look(settings: Settings, listed: Listed, found: list[str]) -> None:
    with contextlib.suppress(Exception), Services.from_settings(settings) as services:
        found.extend(islice(listed(services), MOST))


def _settings(ctx: typer.Context) -> Settings:
    """Return the settings of the typed command, whose callbacks have not run. Completion creates no store."""
    typed = {name: value for params in arguments_of(ctx) for name, value in params.items() if value}
    give(**{name: typed[name] for name in _OPTIONS if name in typed})
    return chosen_settings(None)


complete_job = completed(lambda services: (job.job_id for job in newest_first(services.store, JobFilter(), chunk=MOST)))
