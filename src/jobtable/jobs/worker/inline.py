"""The slots of a worker that runs small, fast jobs in its own process, in batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from jobtable.errors import JobtableError, TaskError
from jobtable.jobs import tasks
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.report.log_lines import headline_and_trace
from jobtable.jobs.submit.definition import Definition
from jobtable.jobs.verbs import WorkVerbs
from jobtable.jobs.worker.conclusions import Conclusions
from jobtable.jobs.worker.heartbeats import Heartbeats, Held, Wish
from jobtable.jobs.worker.process_slots import ProcessSlots
from jobtable.jobs.worker.runner import StopFlag, run_task
from jobtable.jobs.worker.slot_threads import SlotThreads

BATCH_SIZE = 99
"""How many jobs a thread claims at once: three transactions of the engine."""
_FINISH_SECONDS = 0.2
"""Jobs that have ended are stored at least this often, even while the rest of their batch still runs."""


class InlineSlots:
    """Runs batches of jobs, each batch in a thread; `on_free` is called whenever one has ended.

    In the worker's process run only tasks that are marked `inline`, without limits of time or memory, because no one
    could enforce them there. Other jobs of a batch run in processes, one after the other.
    """

    def __init__(
        self,
        count: int,
        jobs: WorkVerbs,
        heartbeats: Heartbeats,
        conclusions: Conclusions,
        on_free: Callable[[BaseException | None], None],
        open_processes: Callable[[], ProcessSlots],
        is_draining: Callable[[], bool],
    ) -> None:
        self._count = count
        self._jobs = jobs
        self._heartbeats = heartbeats
        self._conclusions = conclusions
        self._open_processes = open_processes
        self._is_draining = is_draining
        self._processes: ProcessSlots | None = None
        self._lock = threading.Lock()
        self._threads = SlotThreads(on_free)

    def room(self) -> int:
        """How many more jobs can be taken now."""
        return BATCH_SIZE if len(self._threads) < self._count else 0

    def is_idle(self) -> bool:
        """Whether no job runs."""
        return not self._threads

    def start(self, leases: Sequence[Lease], claimed_at: float) -> None:
        """Run claimed jobs, one after the other in one thread."""
        batch = []
        for lease in leases:
            stop = StopFlag()
            batch.append((self._heartbeats.hold(lease, claimed_at, partial(_ask, stop)), stop))
        self._threads.start(partial(self._run, batch), "batch of jobs")

    def drain(self, grace_seconds: float) -> None:
        """What runs here comes to its end, and what has not begun is given back; jobs in processes are told to end."""
        with self._lock:
            processes = self._processes
        if processes is not None:
            processes.drain(grace_seconds)

    def close(self) -> None:
        """End the process that starts others, if there is one."""
        if self._processes is not None:
            self._processes.close()

    def _run(self, batch: list[tuple[Held, StopFlag]]) -> None:
        ended: list[tuple[Held, Outcome]] = []
        finished_at = self._jobs.clock.monotonic()
        for held, stop in batch:
            definition = held.lease.job.definition
            if self._is_draining():
                self._conclusions.release(held, "its worker stopped before it had begun")
            elif not self._heartbeats.is_held(held):
                self._conclusions.lose(held, "its lease could not be renewed before it began")
            elif held.wish is not None:
                ended.append((held, _not_begun(held.wish)))
            elif _may_run_here(definition):
                ended.append((held, self._call(held, definition, stop)))
            else:
                self._in_process().run_now(held)
            now = self._jobs.clock.monotonic()
            if ended and now - finished_at > _FINISH_SECONDS:
                self._conclusions.finish_many(ended)
                ended, finished_at = [], now
        self._conclusions.finish_many(ended)

    def _call(self, held: Held, definition: Definition, stop: StopFlag) -> Outcome:
        contexts: list[JobContext] = []

        def make_context() -> JobContext:
            contexts.append(JobContext(self._jobs, held.lease, should_stop=stop.should_stop))
            return contexts[0]

        report = run_task(definition, stop, make_context)
        try:
            if report.kind == "raised" and report.message is not None:
                headline, trace = headline_and_trace(report.message)
                (contexts[0] if contexts else make_context()).log(headline, "ERROR", exception=trace)
            for context in contexts:
                context.close()
        except JobtableError as error:
            report = report.without_last_lines(error)
        return report.outcome()

    def _in_process(self) -> ProcessSlots:
        with self._lock:
            if self._processes is None:
                self._processes = self._open_processes()
            return self._processes


def _ask(stop: StopFlag, wish: Wish) -> None:
    stop.ask()


def _not_begun(wish: Wish) -> Outcome:
    """How a job ends that was asked to while those before it in its batch ran."""
    told = "it was asked to end before it had begun"
    return Outcome.cancelled(told) if wish == "cancel" else Outcome.stopped(told)


def _may_run_here(definition: Definition) -> bool:
    if definition.timeout_seconds is not None or definition.memory_mb is not None:
        return False
    try:
        return tasks.resolve(definition.task or "").is_inline
    except TaskError:
        return True  # it cannot run anywhere, and says so
