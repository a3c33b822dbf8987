"""The slots of a worker that runs each job in a process of its own."""

from __future__ import annotations

import contextlib
import logging
import pickle
import sys
from collections.abc import Callable, Sequence
from functools import partial

from jobtable.errors import JobtableError, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.captured_output import OutputCapture
from jobtable.jobs.verbs import WorkVerbs
from jobtable.jobs.worker.forkserver import ForkServer, ServerLostError
from jobtable.jobs.worker.holding import Held, Slots, SlotSetup
from jobtable.jobs.worker.job_process import Request
from jobtable.jobs.worker.processes import JobProcess
from jobtable.store.retries import insist

_LOG = logging.getLogger("jobtable.worker")
_NEEDED_BY_A_STORE = frozenset(
    {"model", "store", "embedded", "dynamodb", "objects", "jobs", "connection", "app", "settings"}
    | {"clock", "errors", "exports", "files"}
)
"""The engine, the packages below it, and what opens them."""

_PAUSE_SECONDS = 1.0
"""How long a job that could not be started is held before its release."""


class ProcessSlots(Slots):
    """Runs up to `count` jobs at once."""

    def __init__(self, setup: SlotSetup, *, open_jobs: Callable[[], WorkVerbs], preload: Sequence[str] = ()) -> None:
        super().__init__(setup)
        _check_picklable(open_jobs)
        self._open_jobs = open_jobs
        self._preload = (*own_modules(open_jobs), *preload)
        self._server = ForkServer(self._preload)
        self._processes: set[JobProcess] = set()
        self._drain_seconds: float | None = None

    def room(self) -> int:
        """How many more jobs can start now."""
        return self._count - len(self._running)

    def start(self, leases: Sequence[Lease], claimed_at: float) -> None:
        """Run claimed jobs, each in its thread and process."""
        for lease in leases:
            held = self._heartbeats.hold(lease, claimed_at)
            self._start_thread(partial(self.run_now, held), f"job {lease.job.job_id}")

    def drain(self, grace_seconds: float) -> None:
        """Tell all jobs to end, and release those that do not in time."""
        with self._lock:
            self._drain_seconds = grace_seconds
            processes = list(self._processes)
        for process in processes:
            process.end("drain", grace_seconds=grace_seconds)

    def close(self) -> None:
        """End the process that starts others."""
        self._server.close()

    def run_now(self, held: Held) -> None:
        """Run one job in a process and wait for its end, in this thread."""
        problems: list[Exception] = []
        with contextlib.ExitStack() as cleanup:
            capture = OutputCapture(self._jobs, held.lease)
            cleanup.callback(self._close_capture, capture, held, problems)
            try:
                process = self._start_process(held, capture)
            except ServerLostError as error:
                self._replace_server()
                self._jobs.clock.sleep(_PAUSE_SECONDS)  # so that the job is not claimed over and over
                self._conclusions.release(held, f"{error}; it was not started")
                return
            outcome = self._wait(process)
            if process.raised is not None and not process.is_lost:
                self._tell_failure(process.raised, capture, problems)
            if process.output_problem is not None:
                problems.append(process.output_problem)
        if problems and outcome is not None:
            outcome = outcome.without(f"could not store all of its output: {problems[0]}")
        if process.is_lost:
            # As if the whole worker were lost: the recovery counts that, so it cannot repeat forever.
            self._conclusions.lose(held, "its lease, or the process that started it, was lost")
        elif outcome is None:
            reason = process.unopened or "its worker stopped before it ended"
            self._conclusions.release(held, reason, is_unopened=process.unopened is not None)
        else:
            self._conclusions.finish(held, outcome)

    def _start_process(self, held: Held, capture: OutputCapture) -> JobProcess:
        with self._lock:
            server = self._server
        process = JobProcess(
            server,
            Request(self._open_jobs, held.lease, capture.key),
            clock=self._jobs.clock,
            feed=capture.feed,
            is_held=partial(self._heartbeats.is_held, held),
        )
        capture.on_flushed = process.answer
        held.on_wish = process.end
        with self._lock:
            self._processes.add(process)
            drain_seconds = self._drain_seconds
        if drain_seconds is not None:
            process.end("drain", grace_seconds=drain_seconds)
        return process

    def _wait(self, process: JobProcess) -> Outcome | None:
        try:
            return process.wait()
        finally:
            with self._lock:
                self._processes.discard(process)

    def _tell_failure(self, message: str, capture: OutputCapture, problems: list[Exception]) -> None:
        """Log what the task raised, here in the worker, after what it printed."""
        try:
            capture.fail(message)
        except (JobtableError, OSError) as error:
            problems.append(error)

    def _close_capture(self, capture: OutputCapture, held: Held, problems: list[Exception]) -> None:
        """Store the rest of the output; a stopping worker does not wait, because it may be killed."""

        def goes_on() -> bool:
            return self._drain_seconds is None and self._heartbeats.is_held(held)

        what = f"store the last output of job {held.lease.job.job_id}"
        try:
            insist(capture.close, what, self._jobs.clock, goes_on=goes_on)
        except (JobtableError, OSError) as error:
            capture.give_up()
            problems.append(error)
        for problem in problems:
            _LOG.warning("could not %s: %s", what, problem)

    def _replace_server(self) -> None:
        with self._lock:
            if not self._server.is_alive():
                _LOG.warning("the process that starts jobs has died; starting another one")
                self._server.close()
                self._server = ForkServer(self._preload)


def _check_picklable(open_jobs: Callable[[], WorkVerbs]) -> None:
    """Reject what the process of a job could not import, before any job fails."""
    try:
        text = pickle.dumps(open_jobs)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        told = f"cannot pass open_jobs to the process of a job: {error}; use functools.partial(open_jobs, URL)"
        raise ValueRefusedError(told) from error
    if b"__main__" in text:
        raise ValueRefusedError(
            f"{open_jobs} is defined in the main script, which the process of a job does not import; "
            "move it into a module, or use functools.partial(jobtable.app.open_jobs, URL)"
        )


def own_modules(open_jobs: Callable[[], WorkVerbs]) -> list[str]:
    """Return the modules that this process loaded to use its store, which each job needs as well.

    Others, such as the server with all its pages, would only delay the jobs.
    """
    opener = open_jobs.func if isinstance(open_jobs, partial) else open_jobs
    return [
        name
        for name in sys.modules
        if name.startswith("jobtable.")
        and (name == opener.__module__ or name.split(".")[1] in _NEEDED_BY_A_STORE)
        and not name.endswith(".__main__")
    ]
