"""A worker beside a command that waits for its jobs, so that one command is enough on a laptop."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import typer

from jobtable.app import open_jobs
from jobtable.jobs.worker import Worker
from jobtable.settings import Settings

_PAUSE_SECONDS = 0.1
T = TypeVar("T")


@contextmanager
def local_worker(
    settings: Settings, queues: Sequence[str], *, slots: int = 1, preload: Sequence[str] = ()
) -> Iterator[threading.Event]:
    """Run jobs of the queues while the block runs; then let those that run end. The event tells that it has failed."""
    if settings.server is not None:
        raise typer.BadParameter(f"{settings.server} has workers of its own: add --submit-only, and they do the work")
    if settings.store.startswith("memory:"):
        raise typer.BadParameter("a store in memory is this process's alone, and jobs run in others: give --store")
    sys.path.insert(0, str(Path.cwd()))
    worker = Worker(
        partial(open_jobs, settings.store, settings.objects),
        queues,
        slots=slots,
        lease_seconds=settings.lease_seconds,
        preload=preload,
    )
    ended = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            worker.run()
        except BaseException as error:
            failures.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=work, name="local worker")
    thread.start()
    try:
        yield ended
    except BaseException:
        worker.drain(at_once=True)
        raise
    else:
        worker.drain()
    finally:
        thread.join()
    if failures:
        raise failures[0]


def poll(look: Callable[[], T], is_done: Callable[[T], bool], show: Callable[[T], None], ended: threading.Event) -> T:
    """Look again and again until it is done, or until the worker has ended; gives what was seen last."""
    while True:
        seen = look()
        show(seen)
        if is_done(seen) or ended.wait(_PAUSE_SECONDS):
            return seen
