"""The process of one job: opens the store, runs the task, reports how it ended."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import FrameType

from jobtable.clock import SYSTEM_CLOCK
from jobtable.errors import JobtableError
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.captured_output import Flushed, LineSender
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.report.log_lines import JobLogHandler
from jobtable.jobs.verbs import WorkVerbs
from jobtable.jobs.worker.inline import Report, StopFlag, Terminated, describe, run_task
from jobtable.store.retries import insist, is_passing

_HEADROOM_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Request:
    """What the process of a job gets; picklable."""

    open_jobs: Callable[[], WorkVerbs]
    lease: Lease
    output_key: str
    """By which its worker recognises the lines that it logs."""


def main(control: Connection) -> int:
    """Run the job that comes over the connection, send back its report, and return the exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    _reseed()
    stop = StopFlag()
    try:
        report = _run(control, stop)
    except Terminated:
        report = Report("terminated", knew_of_stop=stop.was_seen)
    except BaseException as error:  # the worker must hear of everything
        report = Report("raised", message=describe(error))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdout.flush()
    sys.stderr.flush()
    control.send(report)
    return 0


def _run(control: Connection, stop: StopFlag) -> Report:
    request: Request = control.recv()
    sender = LineSender((sys.stdout, sys.stderr), request.output_key)
    threading.Thread(target=_listen, args=(control, stop, sender), name="control", daemon=True).start()
    definition = request.lease.job.definition
    if definition.memory_mb is not None:
        _limit_memory(definition.memory_mb)
    try:
        jobs = insist(request.open_jobs, "open the store of the job", SYSTEM_CLOCK)
    except JobtableError as error:
        if not is_passing(error):
            raise
        return Report("unopened", message=f"could not open its store, so it was not started: {error}")
    context = JobContext(jobs, request.lease, should_stop=stop.should_stop, sender=sender)
    with _logging_into(context):
        report = run_task(definition, stop, lambda: context)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the task has ended; store all of its log
    try:
        context.close()
        jobs.store.close()
        jobs.objects.close()
    except JobtableError as error:
        return report.without_last_lines(error)
    return report


@contextlib.contextmanager
def _logging_into(context: JobContext) -> Iterator[None]:
    """Send what the task logs with Python's logging, from INFO on, to the job's log."""
    root = logging.getLogger()
    handler = JobLogHandler(context)
    root.addHandler(handler)
    if root.level == logging.WARNING:  # as it is where nobody has chosen a level
        root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _listen(control: Connection, stop: StopFlag, sender: LineSender) -> None:
    """Forward what the worker says; when it is gone, kill this process group."""
    try:
        while True:
            said = control.recv()
            if isinstance(said, Flushed):
                sender.hear(said)
            else:
                stop.ask()
    except (EOFError, OSError):
        os.killpg(0, signal.SIGKILL)


def _reseed() -> None:
    """Reseed numpy, which does not do so itself after a fork."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def _limit_memory(memory_mb: float) -> None:
    """Refuse allocations far beyond the limit; the worker ends a job that is just beyond it."""
    most = int(memory_mb * 1024 * 1024) + _HEADROOM_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _terminate(signum: int, frame: FrameType | None) -> None:
    raise Terminated
