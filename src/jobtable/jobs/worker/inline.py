"""Runs a task in this process; the slots of a worker that runs small, fast jobs so, in batches."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import PydanticSerializationError, from_json, to_json

from jobtable.errors import BudgetExceededError, JobtableError, TaskError, kind_and_text
from jobtable.jobs import tasks
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.report.log_lines import headline_and_trace
from jobtable.jobs.submit.definition import Definition
from jobtable.jobs.worker.holding import Held, Slots, SlotSetup, Wish

if TYPE_CHECKING:
    from jobtable.jobs.worker.process_slots import ProcessSlots

MOST_RESULT_BYTES = 390_000
"""An item has at most 400 KB, and the job's item holds more than its result."""
_MOST_MESSAGE_CHARACTERS = 1_000
_MOST_TRACEBACK_CHARACTERS = 6_000
BATCH_SIZE = 99
"""How many jobs a thread claims at once: three transactions of the engine."""
_FINISH_SECONDS = 0.2
"""Jobs that have ended are stored at least this often, even while the rest of their batch still runs."""
_OWN_FILES = (__file__, tasks.__file__)


@dataclass(frozen=True)
class Report:
    """How a task ended, as far as its own process knows."""

    kind: Literal["returned", "raised", "terminated", "unopened"]
    """"unopened": the task did not start because the store could not be opened."""
    result: bytes = b"null"
    """What the task returned, as JSON."""
    message: str | None = None
    is_retryable: bool = True
    knew_of_stop: bool = False
    """Whether should_stop() has told the task to end."""
    has_stopped: bool = False
    """Whether the task ended itself early, by StopTask."""
    is_suspended: bool = False
    """Whether the task suspended itself, by SuspendTask."""
    until: datetime | None = None
    """When a suspended task starts again by itself."""

    def outcome(self) -> Outcome:
        """Return the outcome of a run without interference."""
        if self.has_stopped:
            return Outcome.stopped(self.message, from_json(self.result))
        if self.is_suspended:
            return Outcome.suspended(self.until, self.message)
        if self.kind == "returned":
            return Outcome.completed(from_json(self.result), self.message)
        result = from_json(self.result)
        return Outcome.failed(self.message or "it was terminated", retryable=self.is_retryable, result=result)

    def without_last_lines(self, error: JobtableError) -> Report:
        """Return the same report, which also says why the last lines are missing."""
        told = f"could not store its last log lines: {error}"
        return replace(self, message="\n\n".join(filter(None, [self.message, told])))


class StopFlag:
    """Whether the task was asked to end, and whether it noticed."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.was_seen = False

    def ask(self) -> None:
        self._asked.set()

    def should_stop(self) -> bool:
        """Return whether the task was asked to end, and note that it knows."""
        if self._asked.is_set():
            self.was_seen = True
        return self.was_seen


class Terminated(BaseException):
    """SIGTERM arrived: unwinds the task, past handlers of Exception."""


def run_task(definition: Definition, stop: StopFlag, context: Callable[[], JobContext]) -> Report:
    """Run a job's task and return how it ended, whatever it raises; make the context only if the task takes it."""
    try:
        task = _task_of(definition)
        result = task.call(context() if task.takes_context else None, definition.params)
    except Terminated:
        return Report("terminated", knew_of_stop=stop.was_seen)
    except tasks.StopTask as stopped:
        told = _shortened(stopped.message, _MOST_TRACEBACK_CHARACTERS)
        return replace(_returned(stopped.result, stop), message=told, has_stopped=True)
    except tasks.SuspendTask as suspended:
        why = None if suspended.message is None else _shortened(suspended.message, _MOST_MESSAGE_CHARACTERS)
        return Report("returned", message=why, knew_of_stop=stop.was_seen, is_suspended=True, until=suspended.until)
    except tasks.FailTask as failed:
        told = _shortened(failed.message, _MOST_TRACEBACK_CHARACTERS)
        returned = _returned(failed.result, stop)
        return replace(returned, kind="raised", message=told, is_retryable=False)
    except (TaskError, BudgetExceededError) as error:  # which another attempt would only meet again
        return Report("raised", message=describe(error), is_retryable=False, knew_of_stop=stop.was_seen)
    except MemoryError as error:
        limit = "" if definition.memory_mb is None else f"; its limit is {definition.memory_mb:,.0f} MB"
        return Report("raised", message=f"out of memory{limit}\n\n{describe(error)}", knew_of_stop=stop.was_seen)
    except BaseException as error:  # sys.exit() and KeyboardInterrupt end a task like any error
        return Report("raised", message=describe(error), knew_of_stop=stop.was_seen)
    return _returned(result, stop)


def _task_of(definition: Definition) -> tasks.Task:
    if definition.problem is not None:
        raise TaskError(definition.problem)
    return tasks.resolve(definition.task or "")


def _returned(result: object, stop: StopFlag) -> Report:
    try:
        text = to_json(result, fallback=_plain)
    except (PydanticSerializationError, TypeError, ValueError) as error:
        problem = f"could not store its result: {error}; a task must return JSON values"
        return Report("raised", message=problem, is_retryable=False)
    if len(text) > MOST_RESULT_BYTES:
        problem = (
            f"its result is too large: {len(text):,} bytes of JSON, and an item holds {MOST_RESULT_BYTES:,}; "
            "keep it with job.artifact() and return its name"
        )
        return Report("raised", message=problem, is_retryable=False)
    return Report("returned", text, knew_of_stop=stop.was_seen)


def _plain(value: Any) -> Any:
    """Convert arrays and scalars of numpy and the like into lists and numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a JSON type")


def describe(error: BaseException) -> str:
    """Return the type, message and traceback of an error, bounded, without the frames of this package."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in _OWN_FILES:
        trace = trace.tb_next
    headline = _shortened(kind_and_text(error), _MOST_MESSAGE_CHARACTERS)
    if trace is None:
        return headline
    text = "".join(traceback.format_exception(type(error), error, trace)).rstrip()
    return f"{headline}\n\n{_shortened(text, _MOST_TRACEBACK_CHARACTERS)}"


def _shortened(text: str, most: int) -> str:
    """Shorten a text to its start and, mostly, its end, where a traceback says what happened."""
    if len(text) <= most:
        return text
    head = most // 3
    return f"{text[:head]}\n[... {len(text) - most:,} characters ...]\n{text[head - most :]}"


class InlineSlots(Slots):
    """Runs batches of jobs, each batch in a thread.

    Only tasks marked `inline`, without limits of time or memory, run in the worker's process, which could not enforce
    them. Other jobs of a batch run in processes, one after the other.
    """

    def __init__(
        self, setup: SlotSetup, *, open_processes: Callable[[], ProcessSlots], is_draining: Callable[[], bool]
    ) -> None:
        super().__init__(setup)
        self._open_processes = open_processes
        self._is_draining = is_draining
        self._processes: ProcessSlots | None = None
        self._opening = threading.Lock()

    def room(self) -> int:
        """How many more jobs can be taken now."""
        return BATCH_SIZE if len(self._running) < self._count else 0

    def start(self, leases: Sequence[Lease], claimed_at: float) -> None:
        """Run claimed jobs one after the other in one thread."""
        batch = []
        for lease in leases:
            stop = StopFlag()
            batch.append((self._heartbeats.hold(lease, claimed_at, partial(_ask, stop)), stop))
        self._start_thread(partial(self._run, batch), "batch of jobs")

    def drain(self, grace_seconds: float) -> None:
        """Let inline jobs finish, release those that have not started, and tell jobs in processes to end."""
        with self._opening:
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
                self._conclusions.release(held, "its worker stopped before it started")
            elif not self._heartbeats.is_held(held):
                self._conclusions.lose(held, "its lease could not be renewed before it started")
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
        with self._opening:
            if self._processes is None:
                self._processes = self._open_processes()
            return self._processes


def _ask(stop: StopFlag, wish: Wish) -> None:
    stop.ask()


def _not_begun(wish: Wish) -> Outcome:
    """Return the outcome of a job that was asked to end before its turn in the batch."""
    told = "it was asked to end before it started"
    return Outcome.cancelled(told) if wish == "cancel" else Outcome.stopped(told)


def _may_run_here(definition: Definition) -> bool:
    if definition.timeout_seconds is not None or definition.memory_mb is not None:
        return False
    try:
        return tasks.resolve(definition.task or "").is_inline
    except TaskError:
        return True  # running it reports the error
