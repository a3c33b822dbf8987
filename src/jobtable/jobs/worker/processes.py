"""One run of one job in a process of its own, watched from start to end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from typing import Literal

from jobtable.clock import Clock
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.report.captured_output import Flushed
from jobtable.jobs.worker.forkserver import PIPE_BYTES, Exit, ForkServer, ServerLostError
from jobtable.jobs.worker.inline import Report
from jobtable.jobs.worker.job_process import Request

_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_GROUP, _RESIDENT_PAGES = 2, 21
"""Positions in /proc/PID/stat, after the name of the process."""


def group_memory_bytes(group: int) -> int:
    """Return the resident memory of a process group; 0 without /proc."""
    if not _PROC.is_dir():
        return 0
    return sum(_memory_in(group, entry) for entry in os.scandir(_PROC) if entry.name.isdigit())


def _memory_in(group: int, entry: os.DirEntry[str]) -> int:
    try:
        with open(f"{entry.path}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # it has ended in the meantime
        return 0
    return int(fields[_RESIDENT_PAGES]) * _PAGE_BYTES if int(fields[_GROUP]) == group else 0


TERMINATION_SECONDS = 5.0
"""How long a process may take to end after SIGTERM, before SIGKILL."""
_TICK_SECONDS = 0.2
_MEGABYTE = 1024 * 1024

Why = Literal["cancel", "stop", "drain", "timeout", "memory", "lost"]


@dataclass(frozen=True)
class _Ending:
    """Why a run is being ended, and when which signal follows."""

    why: Why
    terminate_at: float
    kill_at: float
    detail: str = ""


class JobProcess:
    """Runs a job's task in a forked process, within its limits.

    `feed` gets all that the process prints. While `is_held` is false the job may be another worker's: the process is
    killed. `end` may be called from any thread.
    """

    def __init__(
        self,
        server: ForkServer,
        request: Request,
        *,
        clock: Clock,
        feed: Callable[[bytes], None],
        is_held: Callable[[], bool],
    ) -> None:
        self.lease = request.lease
        self._definition = request.lease.job.definition
        self._server = server
        self._clock = clock
        self._feed = feed
        self._is_held = is_held
        self._lock = threading.Lock()
        self._ending: _Ending | None = None
        self._signalled: set[signal.Signals] = set()
        self._report: Report | None = None
        self._spoke_at: float | None = None
        self._is_server_lost = False
        self.output_problem: Exception | None = None
        self._child = server.fork()
        self._started = clock.monotonic()
        self._exited = threading.Event()
        self._drainer = threading.Thread(target=self._drain, name=f"output of {self.lease.job.job_id}", daemon=True)
        self._send(request)

    @property
    def is_lost(self) -> bool:
        """Whether its lease is lost, or its end unknown: then nothing is written for it."""
        return self._is_server_lost or (self._ending is not None and self._ending.why == "lost")

    @property
    def raised(self) -> str | None:
        """What the task raised, if anything, whatever the outcome of the run."""
        return self._report.message if self._report is not None and self._report.kind == "raised" else None

    @property
    def unopened(self) -> str | None:
        """Why the task did not start, if its store could not be opened."""
        return self._report.message if self._report is not None and self._report.kind == "unopened" else None

    def end(self, why: Why, *, grace_seconds: float | None = None, detail: str = "") -> None:
        """Tell the task to end; SIGTERM and SIGKILL follow if it does not."""
        grace = self._definition.grace_seconds if grace_seconds is None else grace_seconds
        now = self._clock.monotonic()
        if why in ("memory", "lost"):
            ending = _Ending(why, now, now, detail)
        elif why == "timeout":
            ending = _Ending(why, now, now + grace, detail)
        else:
            ending = _Ending(why, now + grace, now + grace + TERMINATION_SECONDS, detail)
        with self._lock:
            if self._ending is None or ending.kill_at < self._ending.kill_at or (why == "lost" and not self.is_lost):
                self._ending = ending
        self._send("stop")

    def answer(self, flushed: Flushed) -> None:
        """Answer the task, which waits until its log is stored."""
        self._send(flushed)

    def wait(self) -> Outcome | None:
        """Watch the process until it ends; return None if the job is unfinished and needs another run."""
        self._drainer.start()
        try:
            while (ended := self._next_event()) is None:
                self._watch()
        finally:
            self._exited.set()
            self._drainer.join()
            self._child.close()
        self._is_server_lost = isinstance(ended, ServerLostError)
        return None if isinstance(ended, ServerLostError) else self._outcome(ended)

    # --- while it runs ----------------------------------------------------------------------------------------------

    def _next_event(self) -> Exit | ServerLostError | None:
        """Return how the process ended, or None if it has not after a moment."""
        control, status = self._child.control, self._child.status
        ready = connection.wait([control, status] if self._spoke_at is None else [status], timeout=_TICK_SECONDS)
        if control in ready:
            self._receive()
        if status not in ready:
            return None
        try:
            ended = self._child.read_exit()
        except ServerLostError as error:
            return error
        if self._spoke_at is None:
            self._receive()
        return ended

    def _receive(self) -> None:
        """Take the process's report, or notice that it ends without one."""
        self._spoke_at = self._clock.monotonic()
        try:
            self._report = self._child.control.recv()
        except (EOFError, OSError):
            return  # its exit code tells more

    def _watch(self) -> None:
        if not self._is_held():
            self.end("lost")
        limit = self._definition.timeout_seconds
        if self._ending is None and limit is not None and self._clock.monotonic() - self._started >= limit:
            self.end("timeout")
        most = self._definition.memory_mb
        if most is not None and (used := group_memory_bytes(self._child.pid)) > most * _MEGABYTE:
            self.end("memory", detail=f"{used / _MEGABYTE:,.0f} MB")
        with self._lock:
            ending = self._ending
        now = self._clock.monotonic()
        is_stuck = self._spoke_at is not None and now - self._spoke_at > TERMINATION_SECONDS
        if is_stuck or (ending is not None and now >= ending.kill_at):
            self._signal(signal.SIGKILL)
        elif ending is not None and now >= ending.terminate_at:
            self._signal(signal.SIGTERM)

    def _signal(self, signum: signal.Signals) -> None:
        if signum not in self._signalled:
            self._signalled.add(signum)
            with contextlib.suppress(ServerLostError):  # its status says so next
                self._server.kill(self._child, signum)

    def _send(self, message: object) -> None:
        with self._lock:
            try:
                self._child.control.send(message)
            except OSError:
                return  # it has ended, and how is known from its exit code

    def _drain(self) -> None:
        """Read what the process prints until its output closes, so that it never waits for a reader."""
        output = self._child.output
        printed = select.poll()  # select() takes no file number above 1,023
        printed.register(output, select.POLLIN)
        while True:
            if printed.poll(_TICK_SECONDS * 1000):
                data = os.read(output, PIPE_BYTES)
                if not data:
                    return
                self._take(data)
            elif self._exited.is_set():
                return  # something that left the group still holds the pipe

    def _take(self, data: bytes) -> None:
        if self.output_problem is None:
            try:
                self._feed(data)
            except Exception as error:  # the worker reports it after the job
                self.output_problem = error
                self.answer(Flushed(None, f"its output cannot be stored: {error}", is_passing=False))

    # --- how it ended -----------------------------------------------------------------------------------------------

    def _outcome(self, ended: Exit) -> Outcome | None:
        why = None if self._ending is None else self._ending.why
        report = self._report
        if why == "lost":
            return None
        if why == "cancel":
            return Outcome.cancelled(self._how_it_ended(report))
        if report is not None and report.kind == "returned" and not (why == "drain" and report.knew_of_stop):
            outcome = report.outcome()
            return Outcome.stopped(outcome.message, outcome.result) if why == "stop" else outcome
        if why == "drain" or (why is None and self.unopened is not None):
            return None
        if why == "stop":
            told = report.message if report is not None and report.kind == "raised" else None
            return Outcome.stopped(told or self._how_it_ended(report))
        if why in ("timeout", "memory"):
            return Outcome.failed(self._over_limit(why))
        if report is not None and report.kind == "raised":
            return report.outcome()
        return Outcome.failed(_unexpected(ended))

    def _how_it_ended(self, report: Report | None) -> str:
        if report is not None and report.kind != "terminated":
            return "it ended when it was asked to"
        return f"it did not end within {self._definition.grace_seconds:g} s and was ended"

    def _over_limit(self, why: Why) -> str:
        if why == "timeout":
            return f"timeout: it ran longer than {self._definition.timeout_seconds:g} s"
        used = "" if self._ending is None else self._ending.detail
        return f"out of memory: it used {used}, and its limit is {self._definition.memory_mb:,.0f} MB"


def _unexpected(ended: Exit) -> str:
    memory = f"it had used up to {ended.most_memory_bytes / _MEGABYTE:,.0f} MB of memory"
    if ended.code >= 0:
        return f"its process ended with exit code {ended.code} before the task returned; {memory}"
    try:
        name = signal.Signals(-ended.code).name
    except ValueError:
        name = f"signal {-ended.code}"
    by_whom = ", perhaps by the system because memory ran out" if ended.code == -signal.SIGKILL else ""
    return f"its process was ended by {name}{by_whom}; {memory}"
