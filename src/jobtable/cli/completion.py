"""Ids as the shell completes them: those of the newest, if the store answers soon. It never says a word."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import typer

from jobtable.app import Services
from jobtable.cli.options import chosen_settings, give
from jobtable.jobs.read.listing import JobFilter, newest_first
from jobtable.settings import Settings

_PATIENCE_SECONDS = 1.5
MOST = 100
"""How many ids are offered at most."""
_FLAGS = ("server", "token", "store", "objects")

Listed = Callable[[Services], Iterator[str]]


def completed(listed: Listed) -> Callable[[typer.Context, str], list[str]]:
    """What completes an argument: the first ids that are listed, and begin as what is typed."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found: list[str] = []
        # Whatever goes wrong, the line that is being typed must stay as it is; the command itself will tell.
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
    """The settings of the command that is typed; its callbacks have not run. Who only types makes no store."""
    given = {name: value for params in _params(ctx) for name, value in params.items() if name in _FLAGS and value}
    give(**given)
    return chosen_settings(None)


def _params(ctx: Any) -> Iterator[dict[str, str | None]]:
    """The parameters from the first command to the last."""
    if ctx.parent is not None:
        yield from _params(ctx.parent)
    yield ctx.params


def _job_ids(services: Services) -> Iterator[str]:
    return (job.job_id for job in newest_first(services.store, JobFilter(), chunk=MOST))


complete_job = completed(_job_ids)
